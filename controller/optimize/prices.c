#include "controller/optimize/prices.h"

#include "controller/optimize/problem.h"
#include "controller/optimize/rows.h"

#include <errno.h>
#include <string.h>

enum { SCAN_BLOCK = 64 };

int prices_init(struct prices *x, struct layout *l)
{
    const struct problem *p = l->p;
    size_t n = p->n_workloads + SCAN_BLOCK;

    *x = (struct prices){.l = l, .stride = 1, .arena.chunk_bytes = 64 << 10};
    x->workload = arena_alloc(&x->arena, n * sizeof(*x->workload));
    x->threshold = arena_alloc(&x->arena, n * sizeof(*x->threshold));
    x->is_running = arena_alloc(&x->arena, n * sizeof(*x->is_running));
    x->limit = arena_alloc(&x->arena, (p->n_limits + 1) * sizeof(*x->limit));
    x->resource = arena_alloc(&x->arena, (p->n_settings + 1) * p->n_resources * sizeof(*x->resource));
    if (!x->workload || !x->threshold || !x->is_running || !x->limit || !x->resource) {
        prices_done(x);
        return -ENOMEM;
    }
    memset(x->workload, 0, n * sizeof(*x->workload));
    memset(x->threshold, 0, n * sizeof(*x->threshold));
    memset(x->is_running, 0, n * sizeof(*x->is_running));
    memset(x->limit, 0, p->n_limits * sizeof(*x->limit));
    memset(x->resource, 0, p->n_settings * p->n_resources * sizeof(*x->resource));
    return 0;
}

void prices_done(struct prices *x)
{
    arena_done(&x->arena);
}

void prices_set(struct prices *x, uint32_t workload, int64_t price)
{
    int64_t whole = price / PRICE_ONE;

    x->workload[workload] = price;
    x->threshold[workload] = (int16_t)(whole > INT16_MAX ? INT16_MAX : whole);
}

void prices_at_site(struct prices *x, uint32_t site, bool is_there)
{
    const struct layout *l = x->l;

    for (size_t i = l->running_first[site]; i < l->running_first[site + 1]; i++)
        x->is_running[l->running[i]] = is_there;
}

/* What resources besides the main one cost; -1 if there is not enough of one. Rounded down, so that all that
 * fits costs no more than the supply. */
static int64_t resources_cost(const struct prices *x, uint32_t setting, uint32_t workload)
{
    const struct problem *p = x->l->p;
    const int64_t *supply = problem_supply(p, setting), *request = problem_request(p, workload);
    int64_t cost = 0;

    for (size_t r = 0; r < p->n_resources; r++) {
        int64_t price = x->resource[setting * p->n_resources + r];

        if (request[r] > supply[r])
            return -1;
        if (price > 0 && request[r] > 0)
            cost += (int64_t)((__int128)price * request[r] / supply[r]);
    }
    return cost;
}

static int64_t limits_cost(const struct prices *x, uint32_t site, uint32_t workload)
{
    const struct layout *l = x->l;
    int64_t cost = 0;

    for (size_t i = l->limits_first[workload]; i < l->limits_first[workload + 1]; i++) {
        uint32_t limit = l->limits_of[i];

        if (x->limit[limit] > 0 && limit_has_site(&l->p->limits[limit], site))
            cost += x->limit[limit];
    }
    return cost;
}

static void offer(const struct prices *x, uint32_t setting, uint32_t workload, int64_t worth,
                  struct knapsack *k)
{
    const struct layout *l = x->l;
    int64_t value = worth - x->workload[workload];

    if (l->p->n_resources > 1) {
        int64_t cost = resources_cost(x, setting, workload);

        if (cost < 0)
            return;
        value -= cost;
    }
    if (x->has_limits)
        value -= limits_cost(x, l->site_of[setting], workload);
    if (value > 0) {
        k->items[k->n++] = (struct knapsack_item){
            .value = value, .amount = layout_amount(l, setting, workload), .what = workload};
    }
}

/* Whether one of a block's scores is above its threshold. */
__attribute__((optimize("O3"))) static bool block_is_above(const int16_t *scores, const int16_t *threshold)
{
    int16_t any = 0;

    for (int i = 0; i < SCAN_BLOCK; i++)
        any |= (int16_t)(scores[i] > threshold[i]);
    return any;
}

static size_t next_above(const int16_t *scores, const int16_t *threshold, size_t from, size_t n)
{
    while (from < n) {
        if (from % SCAN_BLOCK == 0) {
            while (from + SCAN_BLOCK <= n && !block_is_above(&scores[from], &threshold[from]))
                from += SCAN_BLOCK;
            if (from >= n)
                break;
        }
        if (scores[from] > threshold[from])
            return from;
        from++;
    }
    return n;
}

/* What a grain costs, for a cell of the knapsack. */
int64_t prices_of_cell(const struct layout *l, uint32_t setting, int64_t grain)
{
    if (!l->is_scaled[setting])
        return grain;
    return (int64_t)((__int128)grain * layout_supply(l, setting) / KNAPSACK_CELLS);
}

int64_t prices_of_grain(const struct layout *l, uint32_t setting, int64_t cell)
{
    if (!l->is_scaled[setting])
        return cell;
    return (int64_t)((__int128)cell * KNAPSACK_CELLS / layout_supply(l, setting));
}

static void offer_copied(const struct prices *x, const struct rows *rows, uint32_t setting,
                         struct knapsack *k)
{
    const struct row_cell *c = &rows->cells[rows->first[setting]];

    for (size_t i = 0; i < rows->n[setting]; i++) {
        if (c[i].score > x->threshold[c[i].workload] && !x->is_running[c[i].workload])
            offer(x, setting, c[i].workload, (int64_t)c[i].score * PRICE_ONE, k);
    }
    /* An amount is up to a cell less than the grains come to. */
    k->outside_price = prices_of_cell(x->l, setting, rows->grain[setting]);
    k->outside = rows->margin - (x->l->is_scaled[setting] ? k->outside_price + 1 : 0);
}

void prices_items(const struct prices *x, const struct rows *rows, uint32_t setting, struct knapsack *k)
{
    const struct layout *l = x->l;
    const struct problem *p = l->p;
    size_t n = p->n_workloads;
    const int16_t *scores = &p->scores[setting * n];
    uint32_t site = l->site_of[setting];

    knapsack_clear(k);
    if (rows && rows->is_filled && rows->first[setting] != SIZE_MAX) {
        offer_copied(x, rows, setting, k);
    } else {
        for (size_t i = 0, w; x->stride > 1 && (w = layout_sample(i, site, x->stride)) < n; i++) {
            if (scores[w] > x->threshold[w] && !x->is_running[w])
                offer(x, setting, (uint32_t)w, (int64_t)scores[w] * PRICE_ONE, k);
        }
        for (size_t w = x->stride > 1 ? n : 0; (w = next_above(scores, x->threshold, w, n)) < n; w++) {
            if (!x->is_running[w])
                offer(x, setting, (uint32_t)w, (int64_t)scores[w] * PRICE_ONE, k);
        }
    }
    for (size_t i = l->running_first[site]; i < l->running_first[site + 1]; i++) {
        uint32_t w = l->running[i];

        if (scores[w] != SCORE_IMPOSSIBLE)
            offer(x, setting, w, (scores[w] + p->move_cost) * PRICE_ONE + x->stay, k);
    }
}
