/* The engine for problems of any size: Lagrangian relaxation, repair and local search. */
#ifndef DS_OPTIMIZE_RELAX_H
#define DS_OPTIMIZE_RELAX_H

#include "controller/optimize/solve.h"

/* As solve(); the bound is always proven. */
MUST_USE int relax_solve(struct solution *ret, const struct problem *p, const struct solve_options *o);

#endif
