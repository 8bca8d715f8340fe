/* What a replica must be worth: a price for each workload, and prices for what else is scarce. Tells which
 * workloads are worth more than they cost on a site with a given setting.
 *
 * Prices are whole numbers of 1 / PRICE_ONE of a score, so sums of them are exact. */
#ifndef DS_OPTIMIZE_PRICES_H
#define DS_OPTIMIZE_PRICES_H

#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "exporter/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRICE_ONE = 1024 };

struct rows;

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
    struct arena arena;
};

/* All prices 0. -ENOMEM. */
MUST_USE int prices_init(struct prices *x, struct layout *l);
void prices_done(struct prices *x);
void prices_set(struct prices *x, uint32_t workload, int64_t price);

/* Before the settings of a site are asked for, and after. */
void prices_at_site(struct prices *x, uint32_t site, bool is_there);
/* Fills in the items that are worth more than their prices, with the difference as value. */
void prices_items(const struct prices *x, const struct rows *rows, uint32_t setting, struct knapsack *k);

/* The price of a cell of the setting's knapsack, for that of a grain. */
int64_t prices_of_cell(const struct layout *l, uint32_t setting, int64_t grain);
int64_t prices_of_grain(const struct layout *l, uint32_t setting, int64_t cell);

#endif
