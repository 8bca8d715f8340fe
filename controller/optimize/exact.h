/* The engine for small problems: CBC (https://github.com/coin-or/Cbc), a branch-and-cut solver of integer
 * programs, in the program dynamic-scoring-cbc. A process of its own can be ended at the deadline, cannot
 * take the optimiser down with it, and keeps the solver out of every other role. */
#ifndef DS_OPTIMIZE_EXACT_H
#define DS_OPTIMIZE_EXACT_H

#include "controller/optimize/solve.h"
#include "exporter/base/def.h"

/* The path of dynamic-scoring-cbc, from the heap: beside this program, in ../lib/dynamic-scoring/ from there,
 * or in PATH. -ENOENT, -ENOMEM. */
MUST_USE int exact_find(char **ret);
/* Whether the problem is one that CBC may improve on within seconds. */
bool exact_is_for(const struct problem *p);
/* Improves a solution: its placements are the start, and both bounds count. -ENOMEM; -EIO if the program
 * cannot be started or ends without an answer, with the solution as it was. */
MUST_USE int exact_solve(struct solution *s, const struct problem *p, const struct solve_options *o);

#endif
