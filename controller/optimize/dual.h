/* The bound: each workload's replicas are bought at a price instead of being counted, and each site takes
 * what gains most at these prices with its best setting (a knapsack). Whatever the prices are, the sum is
 * not below the objective of any answer. Prices are improved by subgradient steps. */
#ifndef DS_OPTIMIZE_DUAL_H
#define DS_OPTIMIZE_DUAL_H

#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/prices.h"
#include "exporter/base/def.h"

#include <stddef.h>
#include <stdint.h>

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
/* Moves the prices towards a value of `target`, the best sum of gains that is known. */
void dual_step(struct dual *x, int64_t target);

/* Sets the dual's prices of workloads and grains, for sites that are set so; settings may be NO_SETTING.
 * Begins with dual->grain: first by a sample of the workloads, then by the rows. */
void tune_prices(struct dual *x, const uint32_t *setting, bool by_sample);

#endif
