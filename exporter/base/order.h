/* The order of many names. */
#pragma once

#include "exporter/base/str.h"

/* The places of n < 2^32 unique names, none of which is another one followed by a NUL, in the order of
 * str_cmp(); fast if they begin alike. */
uint32_t *str_order(const struct str *list, size_t n) __attribute__((malloc, returns_nonnull));
