/* The table of what the optimizer can be asked for. */
#ifndef DS_ASSIST_OPERATIONS_OPERATIONS_H
#define DS_ASSIST_OPERATIONS_OPERATIONS_H

#include "controller/assist/api/operation.h"

extern const struct operation scores_get, policies_list, workloads_list, scorers_list, scorer_explain;
extern const struct operation plan_post, apply_post, optimize_post, reset_post;

/* In the order in which they are shown; the argument of each is a struct assist. */
extern const struct operation *const assist_operations[];
extern const size_t n_assist_operations;

#endif
