/* The 0/1 knapsack: which items gain most together. Dynamic programming over a whole number of cells, of the
 * few items whose worth is near the price of their cells (the core: Balas and Zemel). */
#ifndef DS_OPTIMIZE_KNAPSACK_H
#define DS_OPTIMIZE_KNAPSACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KNAPSACK_CELLS = 512 }; /* the largest capacity; larger amounts are scaled down by the caller */

struct knapsack_item {
    int64_t value;   /* more than 0 */
    uint32_t amount; /* in cells */
    uint32_t what;   /* the caller's; the lower one is preferred at equal value */
};

struct knapsack {
    struct knapsack_item *items; /* the caller fills in n of at most max_items */
    size_t n, max_items;
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

void knapsack_init(struct knapsack *k, size_t max_items);
void knapsack_done(struct knapsack *k);
/* No items, all of which are given. */
void knapsack_clear(struct knapsack *k);
/* The best sum of values of items that fit into `cells`, and leaves the items that were taken. With items
 * that are not given, it is not below the best sum. */
int64_t knapsack_solve(struct knapsack *k, uint32_t cells);
/* Puts the items aside, in place of those that were. */
void knapsack_hold(struct knapsack *k);

#endif
