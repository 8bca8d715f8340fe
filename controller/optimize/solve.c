#include "controller/optimize/solve.h"

#include "controller/optimize/relax.h"

int solve(struct solution *ret, const struct problem *p, const struct solve_options *o)
{
    return relax_solve(ret, p, o);
}
