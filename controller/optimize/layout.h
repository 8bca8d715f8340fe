/* What the search looks up about a problem, computed once. */
#pragma once

#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"

#include <stdatomic.h>

enum { KNAPSACK_CELLS = 512 }; /* the largest capacity of a knapsack; larger amounts are scaled down */

struct layout {
    const struct opt_problem *p;
    size_t main;               /* the scarcest resource: the knapsacks' */
    int64_t grain;             /* divides all requests of it */
    uint32_t *replicas;        /* [workload]: that may be placed, on different sites */
    uint32_t *grains;          /* [workload]: its request in grains, at most KNAPSACK_CELLS + 1 */
    uint32_t *site_of;         /* [setting] */
    size_t *running_first;     /* [site + 1] */
    uint32_t *running;         /* workloads, by site */
    size_t *slots_first;       /* [workload + 1]: a slot is a replica that may be placed */
    int64_t stays_needed;      /* by max_moves */
    const atomic_bool *cancel; /* or NULL */
    int64_t end_ms;
    bool stopped;
    struct arena arena; /* of all that solving takes */
};

/* The deadline counts from now. */
void layout_init(struct layout *l, const struct opt_problem *p, int64_t deadline_ms,
                 const atomic_bool *cancel);

void layout_done(struct layout *l);

/* Memory that layout_done() frees: n of a size, zeroed. */
void *layout_alloc(struct layout *l, size_t n, size_t size);

/* Turns the lengths of lists, at first[i + 1], into where each begins; returns the sum. Given `begins + 1`,
 * lists that are filled by list[first[i]++] leave in `begins` where each begins. */
size_t layout_sum_up(size_t *first, size_t n);

/* Whether the search must end: canceled or past the deadline. Stays so. */
bool layout_stopped(struct layout *l);

/* What a replica takes of the knapsack's cells; not more than its part of the supply, so that all that fits
 * also fits there. More than the cells if it does not fit at all. */
uint32_t layout_amount(const struct layout *l, uint32_t setting, uint32_t workload);

/* Samples one in `stride` workloads: the index of the one taken from a block of so many. Pseudo-random,
 * since workloads at regular distances may be alike. Of the last block it may be beyond the last workload. */
static inline size_t layout_sample(size_t block, size_t salt, size_t stride)
{
    uint64_t mixed = (block + salt * 0x9e3779b9u + 1) * 0x9e3779b97f4a7c15u;

    return block * stride + (size_t)((mixed >> 32) % stride);
}

/* What is supplied and requested of the main resource, in grains. */
static inline int64_t layout_supply(const struct layout *l, size_t setting)
{
    return problem_supply(l->p, setting)[l->main] / l->grain;
}

/* Whether the supply is more than KNAPSACK_CELLS grains. */
static inline bool layout_is_scaled(const struct layout *l, size_t setting)
{
    return problem_supply(l->p, setting)[l->main] >= (KNAPSACK_CELLS + 1) * l->grain;
}

static inline int64_t layout_request(const struct layout *l, size_t workload)
{
    return problem_request(l->p, workload)[l->main] / l->grain;
}
