/* What the search looks up about a problem, computed once. */
#ifndef DS_OPTIMIZE_LAYOUT_H
#define DS_OPTIMIZE_LAYOUT_H

#include "controller/optimize/problem.h"
#include "exporter/base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct layout {
    const struct problem *p;
    size_t main;               /* the scarcest resource: the knapsacks' */
    int64_t grain;             /* divides all requests of it */
    uint32_t *replicas;        /* [workload]: that may be placed, on different sites */
    uint32_t *grains;          /* [workload]: its request in grains, at most KNAPSACK_CELLS + 1 */
    uint32_t *cells;           /* [setting]: the knapsack's capacity */
    bool *is_scaled;           /* [setting]: the capacity is more than KNAPSACK_CELLS grains */
    uint32_t *site_of;         /* [setting] */
    size_t *running_first;     /* [site + 1] */
    uint32_t *running;         /* workloads, by site */
    size_t *limits_first;      /* [workload + 1] */
    uint32_t *limits_of;       /* limits, by workload */
    size_t *slots_first;       /* [workload + 1]: a slot is a replica that may be placed */
    int64_t stays_needed;      /* by max_moves */
    const atomic_bool *cancel; /* or NULL */
    int64_t end_ms;
    bool stopped;
    struct arena arena; /* of all that solving takes, but the knapsack's */
};

/* The deadline counts from now. */
void layout_init(struct layout *l, const struct problem *p, int64_t deadline_ms, const atomic_bool *cancel);
void layout_done(struct layout *l);
/* Memory that layout_done() frees: n of a size, zeroed or not. */
void *layout_alloc(struct layout *l, size_t n, size_t size);
void *layout_zeroed(struct layout *l, size_t n, size_t size);
/* Follows a change of the setting's supply. */
void layout_resize(struct layout *l, size_t setting);
/* Whether the search must end: canceled or past the deadline. Stays so. */
bool layout_stopped(struct layout *l);

/* What a replica takes of the knapsack's cells; not more than its part of the supply, so that all that fits
 * also fits there. More than the cells if it does not fit at all. */
uint32_t layout_amount(const struct layout *l, uint32_t setting, uint32_t workload);

/* Samples one in `stride` workloads: the index of the one taken from a block of so many. Pseudo-random, since
 * workloads at regular distances may be alike. Of the last block it may be beyond the last workload. */
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

static inline int64_t layout_request(const struct layout *l, size_t workload)
{
    return problem_request(l->p, workload)[l->main] / l->grain;
}

static inline bool limit_has_site(const struct problem_limit *limit, uint32_t site)
{
    size_t low = 0, n = limit->n_sites;

    while (n > 0) {
        size_t half = n / 2;

        if (limit->sites[low + half] < site) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low < limit->n_sites && limit->sites[low] == site;
}

#endif
