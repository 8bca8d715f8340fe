/* A placement problem: which workload goes to which site, and how each site is set.
 *
 * A site is what one policy of a cluster decides about: a cluster and a kind of resource ("gpu"). It has
 * settings (one for each policy that may be bound: devices such as "3g.48gb"), of which at most one is in
 * force. A replica of a workload on a site uses some of what the setting in force supplies, and gains the
 * score of (workload, setting). To be maximised: the scores, less what moves cost.
 *
 * Indices stand for names in ascending order: among equal answers the one with lower indices is taken.
 * Amounts are thousandths, as Kubernetes' quantities; scores are multiples of `unit`, so that sums are exact
 * and a bound may be rounded down to a multiple. Everything is borrowed. */
#ifndef DS_OPTIMIZE_PROBLEM_H
#define DS_OPTIMIZE_PROBLEM_H

#include "exporter/base/def.h"

#include <stdbool.h>
#include <stdint.h>

enum { SCORE_IMPOSSIBLE = INT16_MIN }; /* this workload never goes there with this setting */

/* The replicas of these workloads that are on these sites together: at most `max`. Both lists ascend. */
struct problem_limit {
    const uint32_t *workloads, *sites;
    size_t n_workloads, n_sites;
    uint32_t max;
};

struct problem_pair {
    uint32_t workload, site;
};

struct problem {
    size_t n_workloads, n_sites, n_settings;
    size_t n_resources;            /* at least 1; an amount of each must fit */
    const int64_t *requests;       /* [workload * n_resources + resource]: of one replica; not negative */
    const uint32_t *replicas;      /* [workload]: at least 1; no two of them on one site */
    const uint32_t *first_setting; /* [n_sites + 1]: site s has settings first_setting[s] .. [s + 1] - 1 */
    const int64_t *supplies;       /* [setting * n_resources + resource] */
    const int16_t *scores;         /* [setting * n_workloads + workload], or SCORE_IMPOSSIBLE */
    double unit;                   /* of scores and move_cost: 1 for scores that are whole numbers */
    /* What runs now, ascending by workload, then site. A replica that will not be where it runs is a move,
     * wherever it goes. */
    const struct problem_pair *running;
    size_t n_running;
    int64_t move_cost; /* of each move, in `unit`; 0: none */
    size_t max_moves;  /* SIZE_MAX: any number. Replicas stay even where their score is negative if need be */
    const struct problem_limit *limits;
    size_t n_limits;
};

enum { NO_SETTING = UINT32_MAX };

struct solution {
    uint32_t *setting;           /* [n_sites]: NO_SETTING for a site without a workload */
    struct problem_pair *placed; /* ascending by workload, then site */
    size_t n_placed;
    size_t n_moves;
    int64_t objective;     /* in `unit`: scores - move_cost * n_moves */
    int64_t bound;         /* proven: no answer is better. INT64_MAX: nothing is proven */
    bool is_infeasible;    /* max_moves cannot be kept; nothing is placed */
    bool deadline_reached; /* given more time, the answer or the bound might be better */
    const char *engine;    /* which found it: "relaxation", "CBC"; a literal */
};

void solution_done(struct solution *s);
/* Whether the solution keeps every rule of the problem, and objective and n_moves are right: NULL, or what is
 * wrong with it, a literal. Independent of the engines, linear in the size of the problem. -ENOMEM reads as
 * "out of memory". */
const char *solution_check(const struct problem *p, const struct solution *s);

#endif
