/* Lists of JSON values. */
#pragma once

#include "exporter/base/def.h"

#include <jansson.h>
#include <stddef.h>

/* Adds a sentence to a list. */
void list_note(json_t *list, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The first element whose member `key` is that text; NULL if there is none. */
const json_t *list_find(const json_t *list, const char *key, const char *text);
/* A new list of the first elements, at most n. */
json_t *list_head(const json_t *list, size_t n);
