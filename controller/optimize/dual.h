/* The bound: each workload's replicas are bought at a price instead of being counted, and each site takes
 * what gains most at these prices with its best setting (a knapsack). Whatever the prices are, the sum is
 * not below the objective of any answer. Prices are improved by subgradient steps. */
#ifndef DS_OPTIMIZE_DUAL_H
#define DS_OPTIMIZE_DUAL_H

#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "exporter/base/def.h"
#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

enum {
    PRICE_ONE = 1024,
    MARGIN_PART = 25, /* of the highest score: the margin of rows at first */
};

struct prices {
    struct layout *l;
    int64_t *workload;  /* [workload] */
    int16_t *threshold; /* [workload]: the score that pays for it, rounded down; set by prices_set() */
    int64_t *resource;  /* [setting * n_resources + resource]: of the whole supply; not of l->main */
    int64_t *limit;     /* [limit] */
    int64_t stay;       /* paid for each replica that stays */
    uint32_t stride;    /* scans look at every so many-th workload, others for other sites */
    bool has_limits;    /* a limit has a price */
    bool *is_running;   /* [workload]: on the site of the last prices_at_site() */
};

/* The scores that are above, or less than a margin below, what workload and grains cost at some prices: no
 * others matter at prices near these. Rows that do not fit into the memory for it are read from the scores.
 */
struct rows {
    struct row_cell {
        uint32_t workload;
        int16_t score;
    } * cells;
    size_t *first;        /* [setting] into cells, SIZE_MAX: not copied */
    size_t *n;            /* [setting] */
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
/* What the workload is worth there beyond all prices, which may be below 0. After prices_at_site(); it fits.
 */
int64_t prices_value(const struct prices *x, uint32_t setting, uint32_t workload);
/* Fills in the items that are worth more than their prices, with the difference as value. */
void prices_items(const struct prices *x, const struct rows *rows, uint32_t setting, struct knapsack *k);

/* The price of a cell of the setting's knapsack, for that of a grain. */
int64_t prices_of_cell(const struct layout *l, uint32_t setting, int64_t grain);
int64_t prices_of_grain(const struct layout *l, uint32_t setting, int64_t cell);

/* Of a setting's row; none if it was not copied. */
static inline size_t rows_length(const struct rows *x, uint32_t setting)
{
    return x->first[setting] == SIZE_MAX ? 0 : x->n[setting];
}

void rows_init(struct rows *x, struct layout *l);
/* Copies what is worth more than the prices less `margin`, with grains at x->grain. */
void rows_fill(struct rows *x, const struct prices *prices, int64_t margin);
/* About how many cells that would copy. Nothing is copied then. */
size_t rows_estimate(struct rows *x, const struct prices *prices, int64_t margin);
/* Sets x->margin for the present prices. Returns whether at least half of `margin` is left. */
bool rows_reach(struct rows *x, const struct prices *prices, int64_t margin);

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
    size_t n;       /* prices: of workloads, resources of settings, limits, stays */
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

#endif
