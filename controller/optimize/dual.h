/* The bound, as README.md explains it: prices, rows of the scores that matter at them, and what they are
 * worth. */
#pragma once

#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"

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

/* Solves the setting's knapsack at the present prices; returns the value beyond them of the items left in
 * k. With `is_bound`, an upper bound instead where rows lack items. rows may be NULL. grain[setting] is a
 * guess, then what a grain was worth. */
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
