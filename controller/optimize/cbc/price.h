/* A bound for small problems, much tighter than that of the linear relaxation. Each workload has a price, and
 * each setting takes the set of workloads that gains most beyond their prices and fits: a knapsack, solved by
 * dynamic programming. Limits and the move budget are priced, too. For any prices, what the best settings of
 * all sites gain, plus the prices of all workloads, is a bound; subgradient steps find prices that lower it.
 *
 * The same sums tell what a combination or a setting costs: one that cannot be part of a solution of a wanted
 * objective is dropped. */
#ifndef DS_OPTIMIZE_CBC_PRICE_H
#define DS_OPTIMIZE_CBC_PRICE_H

#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <stdbool.h>
#include <stdint.h>

struct price_item {
    uint32_t workload;
    int weight;    /* in units of the setting's capacity */
    int64_t gain;  /* score, and the cost of the move that staying saves */
    double profit; /* gain beyond the prices */
};

/* A setting and the combinations that may be in a wanted solution. */
struct price_setting {
    uint32_t site;
    int capacity;
    struct price_item *items; /* ascending by workload */
    size_t n_items;
    double value; /* of its best set */
    double share; /* of late steps in which it was its site's best, later ones weighing more */
    bool is_closed;
};

struct price {
    const struct problem *p; /* borrowed */
    struct price_setting *settings;
    struct price_item *all_items;
    bool *stays;      /* [site * n_workloads + workload]; NULL: nothing runs */
    double *workload; /* prices */
    double *limit;
    double moves;
    double *site_value;   /* [n_sites]: of the best setting; 0 for none */
    double bound;         /* for these prices */
    int64_t constant;     /* of the objective: what all moves cost */
    double *extra;        /* [site * n_workloads + workload]: prices of limits and moves */
    double *table, *back; /* of the dynamic programs */
    int *taken;           /* [n_workloads]: replicas in the best sets */
    int *limit_taken;     /* [n_limits] */
    int stays_taken;
    bool *set;          /* [n_workloads]: of a setting's items */
    uint32_t *best;     /* [n_sites]: the best setting, or NO_SETTING */
    bool *best_set;     /* [site * n_workloads + workload]: its best set */
    uint32_t *replicas; /* [n_workloads]: that sites which are not fixed may take */
    bool *is_fixed;     /* [n_sites]: its best set stays what it is */
    double fixed;       /* what fixed sites gain */
    double length;      /* of the steps, relative to the gap; price_lower() shortens it */
    bool is_whole;      /* what fits by weight fits: one resource, not rounded */
};

/* -ENOMEM; -EFBIG where the tables would be too large. */
MUST_USE int price_new(struct price **ret, const struct problem *p);
struct price *price_free(struct price *x);
DEFINE_CLEANUP(struct price, price_free)
/* The bound and the best sets for the prices. */
void price_evaluate(struct price *x);
/* Looks at the best sets now and then; may raise the objective that the prices aim at. */
typedef int price_look(void *arg, int64_t *objective);
/* Lowers the bound by up to `steps` steps, until it shows that nothing is better than `objective`, or until
 * then. What it leaves are the best prices, and all values for them. -ENOMEM, or what `look` returned. */
MUST_USE int price_lower(struct price *x, int64_t *objective, int steps, mono_ms until, price_look *look,
                         void *arg);
/* All prices in one list: workloads, limits, moves. */
static inline size_t price_count_prices(const struct price *x)
{
    return x->p->n_workloads + x->p->n_limits + 1;
}
void price_get(const struct price *x, double *prices);
void price_set(struct price *x, const double *prices);
/* Fixes a site at its best set; price_release() undoes that for all sites. */
void price_fix(struct price *x, uint32_t site);
void price_release(struct price *x);
/* Makes the sites' best sets those of a solution. */
void price_set_best(struct price *x, const struct wire_choice *choices, size_t n);
/* Drops what no solution of at least `objective` has. Returns the number of items left. */
size_t price_drop(struct price *x, int64_t objective);
/* The best set of a setting for the profits of its items: its value, and which items are in x->set. */
double price_knapsack(struct price *x, const struct price_setting *s);
/* The bound as a whole number. */
int64_t price_bound(const struct price *x);

/* What the best completion of items [from, n) gains in `capacity`: backwards[from * (capacity + 1) + room].
 * The table is x->back, valid until the next call. */
const double *price_table(struct price *x, const struct price_setting *s);

/* Whether the replicas of the workload on the site count for the limit. */
bool price_limit_has(const struct problem_limit *l, uint32_t site, uint32_t workload);
/* Whether the workload runs on the site now. */
static inline bool price_stays(const struct price *x, uint32_t site, uint32_t workload)
{
    return x->stays && x->stays[(size_t)site * x->p->n_workloads + workload];
}
/* How many replicas the move budget wants to stay. */
static inline double price_must_stay(const struct problem *p)
{
    return p->max_moves < p->n_running ? (double)(p->n_running - p->max_moves) : 0;
}
int64_t price_gcd(int64_t a, int64_t b);

#endif
