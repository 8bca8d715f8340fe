/* Patterns: sets of workloads that fit a setting. A solution takes at most one pattern of each site, and its
 * distance from the bound is the sum of its patterns' distances from their sites' best. So a solution of at
 * least some objective consists of patterns that are near the best, and where these are few, choosing among
 * them is an integer program with few rows and a tight relaxation. */
#ifndef DS_OPTIMIZE_CBC_PATTERN_H
#define DS_OPTIMIZE_CBC_PATTERN_H

#include "controller/optimize/cbc/mip.h"
#include "controller/optimize/cbc/price.h"

#include <stddef.h>
#include <stdint.h>

struct patterns {
    struct price *x; /* borrowed */
    size_t n, max;
    uint32_t *setting; /* [n] */
    size_t *end;       /* [n]: one past its last workload */
    uint32_t *workloads;
    size_t n_workloads, cap_workloads;
};

/* All patterns that a solution of at least `objective` may have. -EFBIG for more than `max`, -ENOMEM. */
MUST_USE int patterns_new(struct patterns **ret, struct price *x, int64_t objective, size_t max);
struct patterns *patterns_free(struct patterns *x);
DEFINE_CLEANUP(struct patterns, patterns_free)
/* The program that chooses among them: a column for each, rows for workloads, sites, limits and moves. */
MUST_USE int patterns_mip(struct mip *ret, const struct patterns *x);

#endif
