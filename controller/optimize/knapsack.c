/* At a price for each cell, every solution is worth at most price * cells + the sum of what items are worth
 * above their price, and each item taken below its price, or left above it, costs what it differs. So if
 * the best solution of the items above price - tolerance comes within the tolerance of that sum, it is the
 * best of all. The tolerance is doubled until it is so.
 *
 * Of the items of one amount a, only the cells / a best can be taken: no more than c (1 + 1/2 + 1/3 + ...)
 * items matter for c cells, whatever their number, and the table has a size of its own. */
#include "controller/optimize/knapsack.h"

#include "controller/optimize/layout.h"
#include "exporter/base/arena.h"

enum { ENOUGH = 4 }; /* Items are thinned out when there are so many times more than can matter. */

/* How many items can matter for so many cells. */
static size_t knapsack_matter(uint32_t cells)
{
    size_t n = 0;

    for (uint32_t a = 1; a <= cells; a++)
        n += cells / a;
    return n;
}

void knapsack_init(struct knapsack *k, struct arena *a, size_t max_items)
{
    size_t rows = size_min(max_items, ENOUGH * knapsack_matter(KNAPSACK_CELLS));

    *k = (struct knapsack){
        .items = arena_alloc(a, (max_items + 1) * sizeof(*k->items)),
        .aside = arena_alloc(a, (max_items + 1) * sizeof(*k->aside)),
        .core = arena_alloc(a, (max_items + 1) * sizeof(*k->core)),
        .best = arena_alloc(a, (KNAPSACK_CELLS + 1) * sizeof(*k->best)),
        .taken = arena_alloc(a, rows * (KNAPSACK_CELLS + 1) + 1),
    };
    knapsack_clear(k);
}

void knapsack_clear(struct knapsack *k)
{
    k->n = 0;
    k->outside_price = 0;
    k->outside = KNAPSACK_ALL;
}

void knapsack_put_aside(struct knapsack *k)
{
    struct knapsack_item *was = k->aside;

    k->aside = k->items;
    k->n_aside = k->n;
    k->items = was;
    k->n = 0;
}

/* By amount, then the best first. */
DEFINE_ORDER(compare_in_class, struct knapsack_item,
             COMPARE(a->amount, b->amount) ?: COMPARE(b->value, a->value) ?: COMPARE(a->what, b->what))

/* Leaves the items of the core that can matter. Returns their number. */
static size_t thin_out(struct knapsack *k, size_t n_core, uint32_t cells)
{
    size_t n = 0, in_class = 0;

    qsort(k->core, n_core, sizeof(*k->core), compare_in_class);
    for (size_t i = 0; i < n_core; i++) {
        in_class = i > 0 && k->core[i].amount == k->core[i - 1].amount ? in_class + 1 : 0;
        if (in_class < cells / k->core[i].amount)
            k->core[n++] = k->core[i];
    }
    return n;
}

/* Whether the items that are worth more than the price fit. */
static bool fits_at(const struct knapsack *k, size_t from, uint32_t cells, int64_t price)
{
    uint64_t taken = 0;

    for (size_t i = from; i < k->n; i++)
        taken += k->items[i].value > price * k->items[i].amount ? k->items[i].amount : 0;
    return taken <= cells;
}

/* About the lowest price at which what is above it fits. */
static int64_t find_price(const struct knapsack *k, size_t from, uint32_t cells)
{
    int64_t low = k->outside_price, high, step;

    if (fits_at(k, from, cells, low))
        return low;
    high = k->price > low ? k->price : low + 1;
    for (step = high / 32 + 1; !fits_at(k, from, cells, high); step *= 2) { /* low is too low */
        low = high;
        high += step;
    }
    for (step = high / 32 + 1; high - step > low; step *= 2) {
        if (!fits_at(k, from, cells, high - step)) {
            low = high - step;
            break;
        }
        high -= step;
    }
    while (high - low > high / 256 + 1) {
        int64_t middle = low + (high - low) / 2;

        if (fits_at(k, from, cells, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The best of the core by dynamic programming; *n_core becomes the number of taken items, at the front. */
static int64_t solve_core(struct knapsack *k, size_t *n_core, uint32_t cells)
{
    size_t width = (size_t)cells + 1, n = *n_core;
    uint32_t left = cells;

    memset(k->best, 0, width * sizeof(*k->best));
    for (size_t i = 0; i < n; i++) {
        uint8_t *taken = &k->taken[i * width];
        uint32_t a = k->core[i].amount;
        int64_t value = k->core[i].value;

        for (uint32_t c = cells; c >= a; c--) {
            int64_t with = k->best[c - a] + value;

            taken[c] = with > k->best[c];
            k->best[c] = with > k->best[c] ? with : k->best[c];
        }
    }
    for (size_t i = n; i-- > 0;) {
        if (left >= k->core[i].amount && k->taken[i * width + left])
            left -= k->core[i].amount;
        else
            k->core[i] = k->core[--n];
    }
    *n_core = n;
    return k->best[cells];
}

static size_t fill_core(struct knapsack *k, size_t from, uint32_t cells, int64_t tolerance)
{
    size_t n = 0;

    for (size_t i = from; i < k->n; i++) {
        if (k->items[i].value - k->price * k->items[i].amount > -tolerance)
            k->core[n++] = k->items[i];
    }
    return n > ENOUGH * knapsack_matter(cells) ? thin_out(k, n, cells) : n;
}

/* Drops what does not fit by itself; moves what takes no cells to the front, and returns its number. */
static size_t sort_out(struct knapsack *k, uint32_t cells)
{
    size_t n = 0, zeros = 0;

    for (size_t i = 0; i < k->n; i++) {
        struct knapsack_item item = k->items[i];

        if (item.amount > cells)
            continue;
        k->items[n] = item;
        if (item.amount == 0) {
            k->items[n] = k->items[zeros];
            k->items[zeros++] = item;
        }
        n++;
    }
    k->n = n;
    return zeros;
}

int64_t knapsack_solve(struct knapsack *k, uint32_t cells)
{
    size_t zeros = sort_out(k, cells), n_core;
    int64_t sure = 0, most = 0, value, tolerance = k->tolerance + 1;

    for (size_t i = 0; i < zeros; i++)
        sure += k->items[i].value;
    k->price = find_price(k, zeros, cells);
    most = k->price * cells;
    for (size_t i = zeros; i < k->n; i++) {
        int64_t above = k->items[i].value - k->price * k->items[i].amount;

        most += above > 0 ? above : 0;
    }
    for (;; tolerance *= 2) {
        if (tolerance > k->outside)
            tolerance = k->outside;
        n_core = fill_core(k, zeros, cells, tolerance);
        value = solve_core(k, &n_core, cells);
        if (most - tolerance <= value || tolerance == k->outside)
            break;
    }
    k->most = sure + most;
    k->tolerance = (3 * k->tolerance + (most - value) * 5 / 4) / 4;
    k->is_cut = most - tolerance > value;
    k->n = zeros + n_core;
    memcpy(&k->items[zeros], k->core, n_core * sizeof(*k->core));
    return sure + (k->is_cut ? most - tolerance : value);
}
