/* What a plan says to those who asked. */
#ifndef DS_ASSIST_RULES_ANSWER_H
#define DS_ASSIST_RULES_ANSWER_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"

/* An object with all but output_yaml, planHash and applied. */
json_t *answer_make(const struct model *m, const struct solution *s);
/* A copy of at most max_bytes of JSON: output_yaml is left out and lists are cut if need be, with a note that
 * says so. */
json_t *answer_cut(const json_t *answer, size_t max_bytes);

#endif
