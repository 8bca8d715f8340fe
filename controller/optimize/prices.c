#include "controller/optimize/prices.h"

#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

enum { SCAN_BLOCK = 64, ROW_CELLS_MAX = 16 << 20, SAMPLED_ROWS = 32 };

void prices_init(struct prices *x, struct layout *l)
{
    const struct problem *p = l->p;
    size_t n = p->n_workloads + SCAN_BLOCK;

    *x = (struct prices){
        .l = l,
        .stride = 1,
        .workload = layout_zeroed(l, n, sizeof(*x->workload)),
        .threshold = layout_zeroed(l, n, sizeof(*x->threshold)),
        .is_running = layout_zeroed(l, n, sizeof(*x->is_running)),
        .limit = layout_zeroed(l, p->n_limits + 1, sizeof(*x->limit)),
        .resource = layout_zeroed(l, (p->n_settings + 1) * p->n_resources, sizeof(*x->resource)),
    };
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

int64_t prices_value(const struct prices *x, uint32_t setting, uint32_t workload)
{
    const struct problem *p = x->l->p;
    int64_t value = problem_score(p, setting, workload) * PRICE_ONE - x->workload[workload];

    if (x->is_running[workload])
        value += p->move_cost * PRICE_ONE + x->stay;
    if (p->n_resources > 1)
        value -= resources_cost(x, setting, workload);
    return value - (x->has_limits ? limits_cost(x, x->l->site_of[setting], workload) : 0);
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

/* ---- Rows ---- */

void rows_init(struct rows *x, struct layout *l)
{
    const struct problem *p = l->p;
    size_t n = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    *x = (struct rows){
        .cells = layout_alloc(l, n + 1, sizeof(*x->cells)), /* pages that are not written cost nothing */
        .first = layout_alloc(l, p->n_settings + 1, sizeof(*x->first)),
        .n = layout_alloc(l, p->n_settings + 1, sizeof(*x->n)),
        .grain = layout_zeroed(l, p->n_settings + 1, sizeof(*x->grain)),
        .workload = layout_alloc(l, p->n_workloads + 1, sizeof(*x->workload)),
        .base = layout_alloc(l, p->n_workloads + 1, sizeof(*x->base)),
        .grains = layout_alloc(l, p->n_workloads + 1, sizeof(*x->grains)),
    };
    for (size_t w = 0; w < p->n_workloads; w++)
        x->grains[w] = (float)layout_request(l, w);
}

/* As block_is_above(), with grains that cost something. */
__attribute__((optimize("O3"))) static bool block_is_worth(const int16_t *scores, const float *base,
                                                           const float *grains, float grain)
{
    int any = 0;

    for (int i = 0; i < SCAN_BLOCK; i++) {
        float above = (float)scores[i] - base[i] - grain * grains[i];

        any |= (scores[i] > 0) & (above > 0);
    }
    return any;
}

static bool rows_fill_one(struct rows *x, const struct problem *p, size_t k, size_t *used, size_t size)
{
    const int16_t *scores = &p->scores[k * p->n_workloads];
    float grain = (float)x->grain[k] / PRICE_ONE;

    for (size_t w = 0; w < p->n_workloads; w++) {
        if (w % SCAN_BLOCK == 0) {
            while (w + SCAN_BLOCK <= p->n_workloads &&
                   !block_is_worth(&scores[w], &x->base[w], &x->grains[w], grain))
                w += SCAN_BLOCK;
            if (w >= p->n_workloads)
                break;
        }
        if (scores[w] > 0 && (float)scores[w] - x->base[w] - grain * x->grains[w] > 0) {
            if (*used == size)
                return false;
            x->cells[(*used)++] = (struct row_cell){(uint32_t)w, scores[w]};
        }
    }
    return true;
}

static void set_base(struct rows *x, const struct prices *prices, int64_t margin)
{
    for (size_t w = 0; w < prices->l->p->n_workloads; w++) {
        x->workload[w] = prices->workload[w];
        x->base[w] = (float)(prices->workload[w] - margin) / PRICE_ONE - 0.125F; /* for rounding */
    }
    x->margin = margin;
}

void rows_fill(struct rows *x, const struct prices *prices, int64_t margin)
{
    const struct problem *p = prices->l->p;
    size_t used = 0, size = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    set_base(x, prices, margin);
    for (size_t k = 0; k < p->n_settings; k++) {
        x->first[k] = used;
        x->n[k] = 0;
        if (rows_fill_one(x, p, k, &used, size)) {
            x->n[k] = used - x->first[k];
        } else {
            used = x->first[k];
            x->first[k] = SIZE_MAX;
        }
    }
    x->is_filled = true;
}

size_t rows_estimate(struct rows *x, const struct prices *prices, int64_t margin)
{
    const struct problem *p = prices->l->p;
    size_t step = p->n_settings / SAMPLED_ROWS + 1, cells = 0;
    size_t size = size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);

    set_base(x, prices, margin);
    x->is_filled = false;
    for (size_t k = 0; k < p->n_settings; k += step) {
        size_t used = 0;

        (void)rows_fill_one(x, p, k, &used, size);
        cells += used;
    }
    return cells * step;
}

bool rows_reach(struct rows *x, const struct prices *prices, int64_t margin)
{
    int64_t lower = 0;

    if (!x->is_filled)
        return false;
    for (size_t w = 0; w < prices->l->p->n_workloads; w++) {
        if (x->workload[w] - prices->workload[w] > lower)
            lower = x->workload[w] - prices->workload[w];
    }
    x->margin = margin - lower;
    return lower <= margin / 2;
}
