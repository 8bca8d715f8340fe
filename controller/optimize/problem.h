/* A placement problem: which workload goes to which site, and how each site is set.
 *
 * A site is what one policy of a cluster decides about: a cluster and a kind of resource ("gpu"). It has
 * settings (one for each policy that may be bound: devices such as "3g.48gb"), of which at most one is in
 * force. A replica of a workload on a site uses some of what the setting in force supplies, and gains the
 * score of (workload, setting). To be maximised: the scores, less what moves cost.
 *
 * Indices stand for names in ascending order: among equal answers the one with lower indices is taken.
 * Amounts are thousandths, as Kubernetes' quantities; scores are whole numbers, so that sums are exact and
 * a bound may be rounded down. Everything is borrowed, lists ascend, indices are in range.
 *
 * Nothing placed keeps every rule but max_moves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCORE_IMPOSSIBLE = INT16_MIN }; /* this workload never goes there with this setting */

struct problem_pair {
    uint32_t workload, site;
};

struct opt_problem {
    size_t n_workloads, n_sites, n_settings;
    size_t n_resources;            /* at least 1; an amount of each must fit */
    const int64_t *requests;       /* [workload * n_resources + resource]: of one replica; not negative */
    const uint32_t *replicas;      /* [workload]: at least 1; no two of them on one site */
    const uint32_t *first_setting; /* [n_sites + 1]: site s has settings first_setting[s] .. [s + 1] - 1 */
    const int64_t *supplies;       /* [setting * n_resources + resource] */
    const int16_t *scores;         /* [setting * n_workloads + workload], or SCORE_IMPOSSIBLE */
    /* What runs now, ascending by workload, then site. A replica that will not be where it runs is a move,
     * wherever it goes. */
    const struct problem_pair *running;
    size_t n_running;
    int64_t move_cost; /* of each move, 0 .. MOVE_COST_MAX */
    size_t max_moves;  /* SIZE_MAX: any number. Replicas stay even where their score is negative if need be */
};

enum { MOVE_COST_MAX = 1 << 30 };

static inline int16_t problem_score(const struct opt_problem *p, size_t setting, size_t workload)
{
    return p->scores[setting * p->n_workloads + workload];
}

static inline const int64_t *problem_request(const struct opt_problem *p, size_t workload)
{
    return &p->requests[workload * p->n_resources];
}

static inline const int64_t *problem_supply(const struct opt_problem *p, size_t setting)
{
    return &p->supplies[setting * p->n_resources];
}

/* Whether the setting alone supplies what a replica requests. */
static inline bool problem_fits(const struct opt_problem *p, size_t setting, size_t workload)
{
    for (size_t r = 0; r < p->n_resources; r++)
        if (problem_request(p, workload)[r] > problem_supply(p, setting)[r])
            return false;
    return true;
}

/* For qsort() and bsearch(): by workload, then site. */
int problem_pair_compare(const void *a, const void *b);
/* Whether the list, which ascends, has the pair. */
bool problem_has_pair(const struct problem_pair *list, size_t n, struct problem_pair pair);
