/* The optimiser's work: plans, and what becomes of them. Each function ends with `done`, now or, within a
 * deadline of its own, later. */
#ifndef DS_ASSIST_STATE_PLAN_H
#define DS_ASSIST_STATE_PLAN_H

#include "controller/assist/state/apply.h"

struct assist;

/* Plans; and, unless plan_only or the request says dryRun, applies the plan at once. */
void assist_plan(struct assist *a, json_t *request, bool plan_only, outcome_fn done, void *arg);
/* Applies a plan unless what it was made from has changed. */
void assist_apply(struct assist *a, const char *hash, outcome_fn done, void *arg);
/* Deletes what plans have made in the namespace. */
void assist_reset(struct assist *a, const char *namespace, outcome_fn done, void *arg);

#endif
