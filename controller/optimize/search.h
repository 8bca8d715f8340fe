/* What the files of the solver share, bottom to top. */
#pragma once

#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"

enum { KNAPSACK_CELLS = 512 }; /* the largest capacity of a knapsack; larger amounts are scaled down */

/* ---- layout.c: what the search looks up about a problem, computed once ---- */

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

/* Whether the supply is more than KNAPSACK_CELLS grains. */
static inline bool layout_is_scaled(const struct layout *l, size_t setting)
{
    return problem_supply(l->p, setting)[l->main] >= (KNAPSACK_CELLS + 1) * l->grain;
}

static inline int64_t layout_request(const struct layout *l, size_t workload)
{
    return problem_request(l->p, workload)[l->main] / l->grain;
}

/* ---- knapsack.c: which items gain most together (0/1; Balas and Zemel) ---- */

struct knapsack_item {
    int64_t value;   /* more than 0 */
    uint32_t amount; /* in cells */
    uint32_t what;   /* the caller's; the lower one is preferred at equal value */
};

struct knapsack {
    struct knapsack_item *items; /* the caller fills in n of at most max_items */
    size_t n;
    /* What is known about items that are not given: value <= outside_price * amount - outside.
     * KNAPSACK_ALL: all are given. */
    int64_t outside_price, outside;
    int64_t price;              /* a guess of what a cell is worth, to save time; then that */
    int64_t most;               /* set by knapsack_solve(): price * cells + what items are worth above it */
    bool is_cut;                /* by knapsack_solve(): items that were not given may be worth taking */
    struct knapsack_item *held; /* by knapsack_hold() */
    size_t n_held;
    /* Rest: internal. */
    struct knapsack_item *core;
    int64_t tolerance;
    int64_t *best;
    uint8_t *taken;
};

#define KNAPSACK_ALL (INT64_MAX / 4)

/* Its memory is the arena's. */
void knapsack_init(struct knapsack *k, struct arena *a, size_t max_items);
/* No items, all of which are given. */
void knapsack_clear(struct knapsack *k);
/* The best sum of values of items that fit into `cells`, and leaves the items that were taken. With items
 * that are not given, it is not below the best sum. */
int64_t knapsack_solve(struct knapsack *k, uint32_t cells);
/* Puts the items aside, in place of those that were. */
void knapsack_hold(struct knapsack *k);

/* ---- dual.c: the bound, as README.md explains it ---- */

enum {
    PRICE_ONE = 1024,
    MARGIN_PART = 25, /* of the highest score: the margin of rows at first */
};

struct prices {
    struct layout *l;
    int64_t *workload;  /* [workload] */
    int16_t *threshold; /* [workload]: the score that pays for it, rounded down; set by prices_set() */
    int64_t *resource;  /* [setting * n_resources + resource]: of the whole supply; not of l->main */
    int64_t stay;       /* paid for each replica that stays */
    uint32_t stride;    /* scans look at every so many-th workload, others for other sites */
    bool *is_running;   /* [workload]: on the site of the last prices_at_site() */
};

/* The scores above, or less than a margin below, what workload and grains cost at some prices: no others
 * matter at prices near these. Rows for which there is no room are read from the problem's scores. */
struct rows {
    struct row_cell {
        uint32_t workload;
        int16_t score;
    } * cells;
    size_t *first;        /* [setting] into cells, SIZE_MAX: not copied */
    size_t *n;            /* [setting]; 0 if it was not copied */
    int64_t *grain;       /* [setting]: the price of a grain */
    int64_t *workload;    /* [workload]: its price */
    float *base, *grains; /* [workload]: what a score must be without grains, and the grains */
    int64_t margin; /* what scores that are not there are below their costs at least, at the present prices */
    bool is_filled;
};

/* All prices 0. */
void prices_init(struct prices *x, struct layout *l);
void prices_set(struct prices *x, uint32_t workload, int64_t price);

/* Before the settings of a site are asked for, and after. */
void prices_at_site(struct prices *x, uint32_t site, bool is_there);
/* Solves the setting's knapsack at the present prices; returns the value beyond them of the items left in k.
 * With `is_bound`, an upper bound instead where rows lack items. rows may be NULL. grain[setting] is a guess,
 * then what a grain was worth. */
int64_t prices_solve(const struct prices *x, const struct rows *rows, bool is_bound, uint32_t setting,
                     int64_t *grain, struct knapsack *k);

struct dual_pick {
    uint32_t workload, setting;
};

/* A setting, in the last evaluation. */
struct dual_worth {
    int64_t value, most; /* of what it would take: the best, and what is surely not less */
    int64_t price;       /* of a cell of its knapsack */
};

struct dual {
    struct layout *l;
    struct prices prices; /* of the last evaluation */
    struct rows rows;
    struct knapsack *knapsack;
    struct dual_pick *picks; /* of the last evaluation, by site */
    size_t n_picks, max_picks;
    int64_t value;  /* of the last evaluation, in 1 / PRICE_ONE */
    int64_t bound;  /* the lowest so far, of the sum of gains */
    size_t n;       /* prices: of workloads, resources of settings, stays */
    double *price;  /* those to be evaluated next */
    double *slope;  /* of the value, in the last evaluation */
    double *step;   /* the direction of the last step */
    double *lowest; /* the prices of the lowest value */
    double lowest_value, factor;
    int idle;                 /* evaluations since the value was lowered */
    int64_t margin, widest;   /* of rows, and the most it may be */
    struct dual_worth *worth; /* [setting] */
    bool is_dense;            /* reads all scores, so that the problem may change */
    int64_t *grain;           /* [setting]: what a grain was worth in the last evaluation */
    size_t n_cut;             /* knapsacks of the last evaluation to which rows may have denied an item */
};

/* A bound that needs no prices. */
void dual_init(struct dual *x, struct layout *l, struct knapsack *k);
/* Evaluates the prices: picks, value and bound. -ECANCELED when the search must end. */
MUST_USE int dual_evaluate(struct dual *x);
/* A sum that the setting's value would not exceed if it had to take the workload, in the last evaluation.
 * After prices_at_site(). */
int64_t dual_most_with(const struct dual *x, uint32_t setting, uint32_t workload);
/* Rounds the prices, and copies the rows anew if need be. */
void dual_refresh(struct dual *x);
/* Moves the prices towards a value of `target`, the best sum of gains that is known. */
void dual_step(struct dual *x, int64_t target);

/* Sets the dual's prices of workloads and grains, for sites that are set so; settings may be NO_SETTING.
 * Begins with dual->grain: first by a sample of the workloads, then by the rows. */
void tune_prices(struct dual *x, const uint32_t *setting, bool by_sample);

/* ---- primal.c: answers, built from the bound's picks and improved: who is where, what is left ---- */

/* An answer that is being searched. Keeps all rules but max_moves, of which it counts the stays. A slot is
 * one replica; those of workload w are l->slots_first[w] and on, the placed ones first. */
struct placing {
    struct layout *l;
    size_t n_small;     /* of the numbers of 32 bits, which begin with `setting` */
    size_t n_large;     /* of those of 64 bits, which begin with `left` */
    uint32_t *setting;  /* [site], or NO_SETTING */
    uint32_t *head;     /* [site]: the first of its slots, or UINT32_MAX */
    int64_t *left;      /* [site * n_resources + resource] */
    uint32_t *count;    /* [workload]: placed replicas */
    uint32_t *workload; /* [slot] */
    uint32_t *site;     /* [slot] */
    uint32_t *next, *previous;
    int64_t *gain; /* [slot]: the score, and move_cost for a replica that stays */
    int64_t sum;   /* of gains */
    int64_t n_stays;
};

/* Nothing is placed. */
void placing_clear(struct placing *x);
/* What the workload gains there; a possible combination. */
int64_t placing_gain(const struct placing *x, uint32_t workload, uint32_t setting);
bool placing_stays(const struct placing *x, uint32_t workload, uint32_t site);
/* The answer: settings without a workload are dropped. */
void placing_export(const struct placing *x, struct solution *ret);

/* Shifts and swaps; among answers of the same worth, lower indices. Does nothing to problems so large that
 * looking at all pairs takes seconds. */
void polish(struct placing *x);

struct primal {
    struct layout *l;
    struct knapsack *knapsack;
    struct placing now, best; /* best.sum: less than any answer's without one */
    bool has_best;
    struct prices prices;        /* what a workload must gain on another site */
    const int64_t *guide;        /* [workload]: prices to mix in; NULL: none */
    int guided;                  /* their share: 0 .. GUIDE_ALL */
    int64_t *grain;              /* [setting]: what a grain of its supply was worth */
    struct problem_pair *undone; /* where replicas were before a change */
    size_t n_undone;
};

void primal_init(struct primal *x, struct layout *l, struct knapsack *k);
/* Begins with what runs, as far as there is room for it in each site's first setting: a search that is cut
 * early moves nothing for nothing. */
void primal_start(struct primal *x);
/* Builds an answer from nothing. If max_moves asks for stays, has_best tells whether it found enough. */
void primal_construct(struct primal *x);
/* Builds an answer from picks, and improves it. */
void primal_repair(struct primal *x, const struct dual *d);
/* Adds picks to the present answer, as far as all rules allow; a replica that gains more takes another's
 * place. */
void primal_place(struct primal *x, const struct dual_pick *picks, size_t n);
/* Keeps the present answer if it is the best. */
void primal_keep(struct primal *x);
