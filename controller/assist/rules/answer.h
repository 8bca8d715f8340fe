/* What a plan says to those who asked. */
#ifndef DS_ASSIST_RULES_ANSWER_H
#define DS_ASSIST_RULES_ANSWER_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"

enum answer_status { ANSWER_OPTIMAL, ANSWER_FEASIBLE, ANSWER_INFEASIBLE, ANSWER_STATUSES };

/* "Optimal" */
const char *answer_status_word(enum answer_status s);
enum answer_status answer_status(const struct solution *s);

/* An object with all but output_yaml, planHash and applied. */
json_t *answer_make(const struct model *m, const struct solution *s);
/* A copy of at most max_bytes of JSON: output_yaml is left out and lists are cut if need be, with notes that
 * say so. */
json_t *answer_cut(const json_t *answer, size_t max_bytes);

#endif
