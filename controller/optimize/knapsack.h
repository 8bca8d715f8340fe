/* Which items gain most together (0/1; Balas and Zemel). */
#pragma once

#include "exporter/base/arena.h"

#include <stdbool.h>

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
    int64_t price;               /* a guess of what a cell is worth, to save time; then that */
    int64_t most;                /* set by knapsack_solve(): price * cells + what items are worth above it */
    bool is_cut;                 /* by knapsack_solve(): items that were not given may be worth taking */
    struct knapsack_item *aside; /* by knapsack_put_aside() */
    size_t n_aside;
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
void knapsack_put_aside(struct knapsack *k);
