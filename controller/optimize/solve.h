/* Solves placement problems: by relaxation, whose bound and answer are often enough, then small ones by
 * branch and bound. Blocks: for a worker's thread. The same problem gives the same solution unless a
 * deadline cuts the search. */
#ifndef DS_OPTIMIZE_SOLVE_H
#define DS_OPTIMIZE_SOLVE_H

#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

#include <stdatomic.h>

struct solve_options {
    int64_t deadline_ms;       /* from now */
    const atomic_bool *cancel; /* set by another thread: ends the search early; may be NULL */
};

/* -EINVAL for a problem that is not well-formed. */
MUST_USE int solve(struct solution *ret, const struct problem *p, const struct solve_options *o);

#endif
