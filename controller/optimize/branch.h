/* Closes small problems exactly: branch and bound on top of the dual's bound. */
#ifndef DS_OPTIMIZE_BRANCH_H
#define DS_OPTIMIZE_BRANCH_H

#include "controller/optimize/primal.h"
#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the problem is small enough. */
bool branch_is_for(const struct problem *p);
/* Searches from the prices of a bound, until the best answer is proven or as much has been looked at as is
 * allowed: improves the answer and lowers *bound (of the sum of gains; INT64_MIN: there is no answer that
 * keeps max_moves). */
void branch(struct primal *answers, const double *prices, int64_t *bound);

#endif
