/* What a replica must be worth: a price for each workload, and prices for what else is scarce. Tells which
 * workloads are worth more than they cost on a site with a given setting.
 *
 * Prices are whole numbers of 1 / PRICE_ONE of a score, so sums of them are exact. */
#ifndef DS_OPTIMIZE_PRICES_H
#define DS_OPTIMIZE_PRICES_H

#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRICE_ONE = 1024 };

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

#endif
