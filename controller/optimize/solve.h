/* Solves placement problems: relaxation first (relax.h), whose bound and answer are often enough; then, for
 * problems of a size that it can do, CBC in a process of its own (exact.h), which starts from both.
 *
 * Blocks: for a worker's thread. The same problem and options give the same solution unless a deadline
 * cuts the search. */
#ifndef DS_OPTIMIZE_SOLVE_H
#define DS_OPTIMIZE_SOLVE_H

#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

#include <stdatomic.h>

struct solve_options {
    int64_t deadline_ms;       /* from now */
    const char *cbc;           /* path of the program dynamic-scoring-cbc; NULL: relaxation only */
    const atomic_bool *cancel; /* set by another thread: ends the search early; may be NULL */
};

/* -ENOMEM; -EINVAL for a problem that is not well-formed. A solver that fails is logged at debug level, and
 * the answer of the relaxation stands. */
MUST_USE int solve(struct solution *ret, const struct problem *p, const struct solve_options *o);

#endif
