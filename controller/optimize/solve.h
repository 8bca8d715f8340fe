/* The solver. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct opt_problem;
struct solution;

/* Solves a problem: by relaxation, whose bound and answer are often enough, then small ones by branch and
 * bound. Blocks: for a worker's thread. The same problem gives the same solution unless the deadline,
 * counted from now, or `cancel` (set by another thread; may be NULL) ends the search. */
void solve(struct solution *ret, const struct opt_problem *p, int64_t deadline_ms, const atomic_bool *cancel);
