/* What a plan says to those who asked. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct fleet_model;
struct solution;

/* An object with all but output_yaml, planHash and applied. */
json_t *answer_make(const struct fleet_model *m, const struct solution *s);
/* A copy of at most max_bytes of JSON: output_yaml is left out and lists are cut if need be, with a note
 * that says so. */
json_t *answer_cut(const json_t *answer, size_t max_bytes);
