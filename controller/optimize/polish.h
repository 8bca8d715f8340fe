/* Small changes of an answer: shifts, swaps, other settings. Among answers of the same worth, lower
 * indices. */
#ifndef DS_OPTIMIZE_POLISH_H
#define DS_OPTIMIZE_POLISH_H

#include "controller/optimize/placing.h"
#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

/* Ends where none of these changes helps, or the search must end. Does nothing to problems so large that
 * looking at all pairs takes seconds. */
void polish(struct placing *x);
/* The same for a solution, which is not infeasible. -ENOMEM. */
MUST_USE int polish_solution(struct solution *s, const struct problem *p);

#endif
