/* Evaluates prices: picks, value and bound, and the step to better prices. Owns nothing but pointers into
 * the layout's memory. On the thread that solves. The bound is never below any answer's objective,
 * whatever the prices; see README.md for the papers. */
#include "controller/optimize/dual.h"

#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"

#include <errno.h>
#include <math.h>

enum {
    /* Enough to choose from, and few enough to look at often: */
    CELLS_OF_WORKLOAD = 120, /* in rows, for each setting of a site */
    CELLS_WANTED = 12 << 20, /* in all rows */
    PATIENCE = 30,           /* evaluations without a lower value, after which steps become shorter */
};

/* Of slopes that are no more than what sums of fractions lose. */
static const double NORM_MIN = 1e-18;
/* More than any score or move, and little enough that sums of prices are exact. */
static const double PRICE_MAX = 0x1p41;
/* The cost of what does not fit: more than all scores, stays and moves. */
static const int64_t COST_MAX = INT64_MAX / 4;

static const double FIRST_FACTOR = 0.4, LAST_FACTOR = 0.002;

/* ---- Prices ---- */

enum { SCAN_BLOCK = 64, ROW_CELLS_MAX = 16 << 20, SAMPLED_ROWS = 32 };

void prices_init(struct prices *x, struct layout *l)
{
    const struct opt_problem *p = l->p;
    size_t n = p->n_workloads + SCAN_BLOCK;

    *x = (struct prices){
        .l = l,
        .stride = 1,
        .workload = layout_alloc(l, n, sizeof(*x->workload)),
        .threshold = layout_alloc(l, n, sizeof(*x->threshold)),
        .is_running = layout_alloc(l, n, sizeof(*x->is_running)),
        .resource = layout_alloc(l, (p->n_settings + 1) * p->n_resources, sizeof(*x->resource)),
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

/* What resources besides the main one cost, COST_MAX if there is not enough of one. Rounded down, so that
 * all that fits costs no more than the supply. */
static int64_t resources_cost(const struct prices *x, uint32_t setting, uint32_t workload)
{
    const struct opt_problem *p = x->l->p;
    const int64_t *supply = problem_supply(p, setting), *request = problem_request(p, workload);
    int64_t cost = 0;

    for (size_t r = 0; r < p->n_resources; r++) {
        int64_t price = x->resource[setting * p->n_resources + r];

        if (request[r] > supply[r])
            return COST_MAX;
        if (price > 0 && request[r] > 0)
            cost += (int64_t)((__int128)price * request[r] / supply[r]);
    }
    return cost;
}

/* What the workload with this score is worth there beyond all prices, maybe less than 0. After
 * prices_at_site(). */
static int64_t prices_value(const struct prices *x, uint32_t setting, uint32_t workload, int64_t score)
{
    const struct opt_problem *p = x->l->p;
    int64_t value = score * PRICE_ONE - x->workload[workload];

    if (x->is_running[workload])
        value += p->move_cost * PRICE_ONE + x->stay;
    if (p->n_resources > 1)
        value -= resources_cost(x, setting, workload);
    return value;
}

static void offer(const struct prices *x, uint32_t setting, uint32_t workload, int64_t score,
                  struct knapsack *k)
{
    int64_t value = prices_value(x, setting, workload, score);

    if (value > 0)
        k->items[k->n++] = (struct knapsack_item){
            .value = value, .amount = layout_amount(x->l, setting, workload), .what = workload};
}

/* The price of a cell of the setting's knapsack, for that of a grain. */
static int64_t prices_of_cell(const struct layout *l, uint32_t setting, int64_t grain)
{
    if (!layout_is_scaled(l, setting))
        return grain;
    return (int64_t)((__int128)grain * layout_supply(l, setting) / KNAPSACK_CELLS);
}

static int64_t prices_of_grain(const struct layout *l, uint32_t setting, int64_t cell)
{
    if (!layout_is_scaled(l, setting))
        return cell;
    return (int64_t)((__int128)cell * KNAPSACK_CELLS / layout_supply(l, setting));
}

static void offer_copied(const struct prices *x, const struct rows *rows, uint32_t setting,
                         struct knapsack *k)
{
    const struct row_cell *c = &rows->cells[rows->first[setting]];

    for (size_t i = 0; i < rows->n[setting]; i++) {
        if (c[i].score > x->threshold[c[i].workload] && !x->is_running[c[i].workload])
            offer(x, setting, c[i].workload, c[i].score, k);
    }
    /* An amount is up to a cell less than the grains come to. */
    k->outside_price = prices_of_cell(x->l, setting, rows->grain[setting]);
    k->outside = rows->margin - (layout_is_scaled(x->l, setting) ? k->outside_price + 1 : 0);
}

/* Fills in the items that are worth more than their prices, with the difference as value. */
static void fill_items(const struct prices *x, const struct rows *rows, uint32_t setting, struct knapsack *k)
{
    const struct layout *l = x->l;
    const struct opt_problem *p = l->p;
    size_t n = p->n_workloads;
    const int16_t *scores = &p->scores[setting * n];
    uint32_t site = l->site_of[setting];

    knapsack_clear(k);
    if (rows && rows->is_filled && rows->first[setting] != SIZE_MAX) {
        offer_copied(x, rows, setting, k);
    } else {
        for (size_t i = 0, w; (w = x->stride > 1 ? layout_sample(i, site, x->stride) : i) < n; i++) {
            if (scores[w] > x->threshold[w] && !x->is_running[w])
                offer(x, setting, (uint32_t)w, scores[w], k);
        }
    }
    for (size_t i = l->running_first[site]; i < l->running_first[site + 1]; i++) {
        uint32_t w = l->running[i];

        if (scores[w] != SCORE_IMPOSSIBLE)
            offer(x, setting, w, scores[w], k);
    }
}

int64_t prices_solve(const struct prices *x, const struct rows *rows, bool is_bound, uint32_t setting,
                     int64_t *grain, struct knapsack *k)
{
    int64_t value;

    k->price = prices_of_cell(x->l, setting, grain[setting]);
    fill_items(x, rows, setting, k);
    if (!is_bound) {
        k->outside_price = 0;
        k->outside = KNAPSACK_ALL;
    }
    value = knapsack_solve(k, (uint32_t)size_min((size_t)layout_supply(x->l, setting), KNAPSACK_CELLS));
    grain[setting] = prices_of_grain(x->l, setting, k->price);
    return value;
}

/* ---- Rows ---- */

static size_t rows_size(const struct opt_problem *p)
{
    return size_min(p->n_workloads * p->n_settings, ROW_CELLS_MAX);
}

static void rows_init(struct rows *x, struct layout *l)
{
    const struct opt_problem *p = l->p;

    *x = (struct rows){
        /* Pages that are not written cost nothing. */
        .cells = arena_alloc(&l->arena, (rows_size(p) + 1) * sizeof(*x->cells)),
        .first = layout_alloc(l, p->n_settings + 1, sizeof(*x->first)),
        .n = layout_alloc(l, p->n_settings + 1, sizeof(*x->n)),
        .grain = layout_alloc(l, p->n_settings + 1, sizeof(*x->grain)),
        .workload = layout_alloc(l, p->n_workloads + 1, sizeof(*x->workload)),
        .base = layout_alloc(l, p->n_workloads + 1, sizeof(*x->base)),
        .grains = layout_alloc(l, p->n_workloads + 1, sizeof(*x->grains)),
    };
    for (size_t w = 0; w < p->n_workloads; w++)
        x->grains[w] = (float)layout_request(l, w);
}

/* Whether one of a block's scores is above what its workload costs, with the grains. */
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

static bool rows_fill_one(struct rows *x, const struct opt_problem *p, size_t k, size_t *used)
{
    size_t size = rows_size(p);
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

/* Copies what is worth more than the prices less `margin`, with grains at x->grain, of one in `step`
 * settings. Returns about how many cells all settings take. */
static size_t rows_fill(struct rows *x, const struct prices *prices, int64_t margin, size_t step)
{
    const struct opt_problem *p = prices->l->p;
    size_t used = 0;

    for (size_t w = 0; w < p->n_workloads; w++) {
        x->workload[w] = prices->workload[w];
        x->base[w] = (float)(prices->workload[w] - margin) / PRICE_ONE - 0.125F; /* for rounding */
    }
    x->margin = margin;
    x->is_filled = step == 1;
    for (size_t k = 0; k < p->n_settings; k += step) {
        x->first[k] = used;
        if (!rows_fill_one(x, p, k, &used)) {
            used = x->first[k];
            x->first[k] = SIZE_MAX;
        }
        x->n[k] = x->first[k] == SIZE_MAX ? 0 : used - x->first[k];
    }
    return used * step;
}

/* Sets x->margin for the present prices. Returns whether at least half of `margin` is left. */
static bool rows_reach(struct rows *x, const struct prices *prices, int64_t margin)
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

/* ---- The bound ---- */

__attribute__((optimize("O3"))) static void raise_best(int16_t *best, const int16_t *scores, size_t n)
{
    for (size_t i = 0; i < n; i++)
        best[i] = scores[i] > best[i] ? scores[i] : best[i];
}

/* Every replica at its workload's best score, and none is moved. */
static void bound_trivially(struct dual *x)
{
    const struct opt_problem *p = x->l->p;
    CLEANUP(cleanup_free) int16_t *best = xcalloc(p->n_workloads + 1, sizeof(*best));

    for (size_t k = 0; k < p->n_settings; k++)
        raise_best(best, &p->scores[k * p->n_workloads], p->n_workloads);
    x->bound = p->move_cost * (int64_t)p->n_running;
    for (size_t w = 0; w < p->n_workloads; w++) {
        x->bound += (int64_t)x->l->replicas[w] * best[w];
        if (best[w] * PRICE_ONE / MARGIN_PART > x->margin)
            x->margin = x->widest = best[w] * PRICE_ONE / MARGIN_PART;
    }
}

void dual_init(struct dual *x, struct layout *l, struct knapsack *k)
{
    const struct opt_problem *p = l->p;
    size_t n = p->n_workloads + p->n_settings * p->n_resources + 1;
    size_t max_picks = l->slots_first[p->n_workloads] + 1024;

    *x = (struct dual){
        .l = l,
        .knapsack = k,
        .n = n,
        .max_picks = max_picks,
        .lowest_value = INFINITY,
        .factor = FIRST_FACTOR,
        .margin = PRICE_ONE,
        .widest = PRICE_ONE,
        .price = layout_alloc(l, n, sizeof(*x->price)),
        .slope = layout_alloc(l, n, sizeof(*x->slope)),
        .step = layout_alloc(l, n, sizeof(*x->step)),
        .lowest = layout_alloc(l, n, sizeof(*x->lowest)),
        .picks = layout_alloc(l, max_picks, sizeof(*x->picks)),
        .worth = layout_alloc(l, p->n_settings + 1, sizeof(*x->worth)),
        .grain = layout_alloc(l, p->n_settings + 1, sizeof(*x->grain)),
    };
    prices_init(&x->prices, l);
    rows_init(&x->rows, l);
    bound_trivially(x);
}

/* The prices as whole numbers, none below 0. */
static void round_prices(struct dual *x)
{
    const struct opt_problem *p = x->l->p;
    const double *price = x->price;

    for (size_t w = 0; w < p->n_workloads; w++)
        prices_set(&x->prices, (uint32_t)w, (int64_t)*price++);
    for (size_t i = 0; i < p->n_settings * p->n_resources; i++)
        x->prices.resource[i] = (int64_t)*price++;
    x->prices.stay = (int64_t)*price;
}

/* What the unused prices come to, and their slopes. */
static void begin_value(struct dual *x)
{
    const struct layout *l = x->l;
    const struct opt_problem *p = l->p;
    double *slope = x->slope;

    x->n_picks = 0;
    x->value = -x->prices.stay * l->stays_needed;
    for (size_t w = 0; w < p->n_workloads; w++) {
        x->value += x->prices.workload[w] * l->replicas[w];
        *slope++ = l->replicas[w];
    }
    memset(slope, 0, p->n_settings * p->n_resources * sizeof(*slope));
    slope[p->n_settings * p->n_resources] = -(double)l->stays_needed;
}

static void add_pick(struct dual *x, uint32_t workload, uint32_t setting)
{
    const struct layout *l = x->l;
    const struct opt_problem *p = l->p;
    double *of_setting = &x->slope[p->n_workloads + setting * p->n_resources];

    x->picks[x->n_picks++] = (struct dual_pick){workload, setting};
    x->slope[workload] -= 1;
    x->slope[x->n - 1] += x->prices.is_running[workload];
    for (size_t r = 0; p->n_resources > 1 && r < p->n_resources; r++) {
        if (r != l->main && problem_request(p, workload)[r] > 0)
            of_setting[r] -= (double)problem_request(p, workload)[r] / (double)problem_supply(p, setting)[r];
    }
}

static void dual_reserve(struct dual *x, size_t n)
{
    struct dual_pick *more;

    if (x->n_picks + n <= x->max_picks)
        return;
    while (x->max_picks < x->n_picks + n)
        x->max_picks *= 2;
    more = layout_alloc(x->l, x->max_picks, sizeof(*more));
    memcpy(more, x->picks, x->n_picks * sizeof(*more));
    x->picks = more;
}

/* The site takes what is worth most with its best setting. */
static void evaluate_site(struct dual *x, uint32_t site)
{
    const struct layout *l = x->l;
    const struct opt_problem *p = l->p;
    struct knapsack *k = x->knapsack;
    uint32_t best = NO_SETTING;
    int64_t most = 0;

    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        int64_t resources = 0, value = prices_solve(&x->prices, &x->rows, true, i, x->grain, k);

        for (size_t r = 0; r < p->n_resources; r++)
            resources += x->prices.resource[i * p->n_resources + r];
        value += resources;
        x->worth[i] = (struct dual_worth){value, resources + k->most, k->price};
        x->n_cut += k->is_cut;
        if (value > most) {
            most = value;
            best = i;
            knapsack_put_aside(k);
        }
    }
    if (best == NO_SETTING)
        return;
    x->value += most;
    for (size_t r = 0; r < p->n_resources; r++)
        x->slope[p->n_workloads + best * p->n_resources + r] = r != l->main;
    dual_reserve(x, k->n_aside);
    for (size_t i = 0; i < k->n_aside; i++)
        add_pick(x, k->aside[i].what, best);
}

/* What is not in the copied rows is worth less than the present prices of grains allow, or will be copied. */
void dual_refresh(struct dual *x)
{
    const struct opt_problem *p = x->l->p;
    size_t wanted = CELLS_OF_WORKLOAD * p->n_workloads * (p->n_settings / (p->n_sites + 1) + 1);

    round_prices(x);
    if (x->is_dense || (rows_reach(&x->rows, &x->prices, x->margin) && x->n_cut <= p->n_sites / 8))
        return;
    wanted = size_min(wanted, CELLS_WANTED);
    for (size_t i = 0; i < p->n_settings; i++)
        x->rows.grain[i] = x->grain[i] - x->grain[i] / 16;
    x->margin = x->widest;
    while (x->margin > x->widest / 16 &&
           rows_fill(&x->rows, &x->prices, x->margin, p->n_settings / SAMPLED_ROWS + 1) > wanted)
        x->margin -= x->margin / 4;
    (void)rows_fill(&x->rows, &x->prices, x->margin, 1);
}

static void note_value(struct dual *x)
{
    /* Rounded down, also below 0. */
    int64_t whole = (x->value >= 0 ? x->value : x->value - PRICE_ONE + 1) / PRICE_ONE;

    x->bound = whole < x->bound ? whole : x->bound;
    if ((double)x->value < x->lowest_value) {
        x->lowest_value = (double)x->value;
        memcpy(x->lowest, x->price, x->n * sizeof(*x->price));
        x->idle = 0;
    } else if (++x->idle >= PATIENCE) {
        x->idle = 0;
        x->factor = x->factor / 2 > LAST_FACTOR ? x->factor / 2 : LAST_FACTOR;
        memcpy(x->price, x->lowest, x->n * sizeof(*x->price));
        memset(x->step, 0, x->n * sizeof(*x->step));
    }
}

int dual_evaluate(struct dual *x)
{
    const struct opt_problem *p = x->l->p;

    if (layout_stopped(x->l))
        return -ECANCELED;
    dual_refresh(x);
    x->n_cut = 0;
    begin_value(x);
    for (uint32_t s = 0; s < p->n_sites; s++) {
        if (layout_stopped(x->l))
            return -ECANCELED;
        prices_at_site(&x->prices, s, true);
        evaluate_site(x, s);
        prices_at_site(&x->prices, s, false);
    }
    note_value(x);
    return 0;
}

int64_t dual_most_with(const struct dual *x, uint32_t setting, uint32_t workload)
{
    const struct dual_worth *k = &x->worth[setting];
    int64_t value = prices_value(&x->prices, setting, workload, problem_score(x->l->p, setting, workload));
    int64_t below = k->price * layout_amount(x->l, setting, workload) - value;

    return below > 0 ? k->most - below : k->most;
}

/* Deflected (Camerini, Fratta, Maffioli), with Polyak's length. */
void dual_step(struct dual *x, int64_t target)
{
    double dot = 0, old = 0, norm = 0, turn, length;

    for (size_t i = 0; i < x->n; i++) {
        if (x->price[i] <= 0 && x->slope[i] > 0)
            x->slope[i] = 0; /* the price cannot be lowered */
        dot += x->slope[i] * x->step[i];
        old += x->step[i] * x->step[i];
    }
    turn = dot < 0 && old > 0 ? -1.5 * dot / old : 0;
    for (size_t i = 0; i < x->n; i++) {
        x->step[i] = x->slope[i] + turn * x->step[i];
        norm += x->step[i] * x->step[i];
    }
    if (norm < NORM_MIN)
        return;
    length = x->factor * ((double)x->value - (double)target * PRICE_ONE) / norm;
    for (size_t i = 0; i < x->n; i++) {
        double price = x->price[i] - length * x->step[i];

        x->price[i] = price <= 0 ? 0 : price < PRICE_MAX ? price : PRICE_MAX;
    }
}
