#include "controller/optimize/dual.h"

#include "controller/optimize/problem.h"
#include "controller/optimize/rows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    CELLS_OF_WORKLOAD = 120, /* in rows, for each setting of a site */
    MARGIN_PART = 25,        /* of the highest score: the margin of rows at first */
    CELLS_WANTED = 12 << 20, /* in all rows */
    PATIENCE = 30,           /* evaluations without a lower value, after which steps become shorter */
};

/* Of the highest score: a product and a difference that are not above it, in single precision. */
static const double ROUNDING = 0x1p-22;

static const double FIRST_FACTOR = 0.4, LAST_FACTOR = 0.002;

static double *dual_doubles(struct dual *x, size_t n)
{
    double *p = arena_alloc(&x->arena, n * sizeof(*p));

    return p ? memset(p, 0, n * sizeof(*p)) : NULL;
}

__attribute__((optimize("O3"))) static void raise_best(int16_t *best, const int16_t *scores, size_t n)
{
    for (size_t i = 0; i < n; i++)
        best[i] = scores[i] > best[i] ? scores[i] : best[i];
}

/* Every replica at its workload's best score, and none is moved. */
static int bound_trivially(struct dual *x)
{
    const struct problem *p = x->l->p;
    CLEANUP(cleanup_free) int16_t *best = calloc(p->n_workloads + 1, sizeof(*best));

    if (!best)
        return -ENOMEM;
    for (size_t k = 0; k < p->n_settings; k++)
        raise_best(best, &p->scores[k * p->n_workloads], p->n_workloads);
    x->bound = p->move_cost * (int64_t)p->n_running;
    for (size_t w = 0; w < p->n_workloads; w++) {
        x->bound += (int64_t)(x->l->slots_first[w + 1] - x->l->slots_first[w]) * best[w];
        if (best[w] * PRICE_ONE / MARGIN_PART > x->margin)
            x->margin = x->widest = best[w] * PRICE_ONE / MARGIN_PART;
    }
    return 0;
}

int dual_init(struct dual *x, struct layout *l, struct knapsack *k)
{
    const struct problem *p = l->p;
    int r;

    *x = (struct dual){.l = l,
                       .knapsack = k,
                       .arena.chunk_bytes = 64 << 10,
                       .factor = FIRST_FACTOR,
                       .margin = PRICE_ONE,
                       .widest = PRICE_ONE};
    x->n = p->n_workloads + p->n_settings * p->n_resources + p->n_limits + 1;
    x->max_picks = l->slots_first[p->n_workloads] + 1024;
    x->lowest_value = INFINITY;
    x->price = dual_doubles(x, x->n);
    x->slope = dual_doubles(x, x->n);
    x->step = dual_doubles(x, x->n);
    x->lowest = dual_doubles(x, x->n);
    x->picks = malloc(x->max_picks * sizeof(*x->picks));
    x->grain = arena_alloc(&x->arena, (p->n_settings + 1) * sizeof(*x->grain));
    r = x->grain && x->price && x->slope && x->step && x->lowest && x->picks ? prices_init(&x->prices, l)
                                                                             : -ENOMEM;
    if (r == 0)
        r = rows_init(&x->rows, l);
    if (r == 0)
        r = bound_trivially(x);
    if (r < 0)
        dual_done(x);
    return r;
}

void dual_done(struct dual *x)
{
    arena_done(&x->arena);
    prices_done(&x->prices);
    rows_done(&x->rows);
    free(x->picks);
    x->picks = NULL;
}

__attribute__((optimize("O3"))) static void raise_prices(float *best, const int16_t *scores,
                                                         const float *grains, float grain, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v = (float)scores[i] - grain * grains[i];

        best[i] = v > best[i] ? v : best[i];
    }
}

/* Each workload at its best site, once grains are paid for, and all grains sold. Rounded up: what single
 * precision may lose is added. */
static void bound_by_grains(struct dual *x, const float *best, double grains)
{
    const struct problem *p = x->l->p;
    double rounding = ROUNDING * MARGIN_PART * ((double)x->widest / PRICE_ONE + 1);
    double bound = grains + (double)(p->move_cost * (int64_t)p->n_running);

    for (size_t w = 0; w < p->n_workloads; w++)
        bound += (double)(x->l->slots_first[w + 1] - x->l->slots_first[w]) * ((double)best[w] + rounding);
    bound = floor(bound + 1e-9 * fabs(bound));
    if (bound < (double)x->bound)
        x->bound = (int64_t)bound;
}

int dual_start(struct dual *x, const uint32_t *setting)
{
    const struct problem *p = x->l->p;
    size_t n = p->n_workloads;
    CLEANUP(cleanup_free) float *best = calloc(n + 1, sizeof(*best));
    double grains = 0;
    size_t n_set = 0;

    if (!best)
        return -ENOMEM;
    for (size_t s = 0; s < p->n_sites; s++) {
        uint32_t k = setting[s];
        float grain;

        if (k == NO_SETTING)
            continue;
        grain = (float)x->grain[k] / PRICE_ONE;
        raise_prices(best, &p->scores[k * n], x->rows.grains, grain, n);
        grains += (double)layout_supply(x->l, k) * (double)grain;
        n_set++;
    }
    if (n_set == p->n_settings)
        bound_by_grains(x, best, grains);
    for (size_t w = 0; w < n; w++)
        x->price[w] = (double)best[w] * PRICE_ONE;
    return 0;
}

/* The prices as whole numbers, none below 0. */
static void round_prices(struct dual *x)
{
    const struct problem *p = x->l->p;
    const double *price = x->price;

    for (size_t w = 0; w < p->n_workloads; w++)
        prices_set(&x->prices, (uint32_t)w, (int64_t)*price++);
    for (size_t i = 0; i < p->n_settings * p->n_resources; i++)
        x->prices.resource[i] = (int64_t)*price++;
    x->prices.has_limits = false;
    for (size_t i = 0; i < p->n_limits; i++) {
        x->prices.limit[i] = (int64_t)*price++;
        x->prices.has_limits |= x->prices.limit[i] > 0;
    }
    x->prices.stay = (int64_t)*price;
}

/* What the unused prices come to, and their slopes. */
static void begin_value(struct dual *x)
{
    const struct layout *l = x->l;
    const struct problem *p = l->p;
    double *slope = x->slope;

    x->n_picks = 0;
    x->value = -x->prices.stay * l->stays_needed;
    for (size_t w = 0; w < p->n_workloads; w++) {
        size_t slots = l->slots_first[w + 1] - l->slots_first[w];

        x->value += x->prices.workload[w] * (int64_t)slots;
        *slope++ = (double)slots;
    }
    memset(slope, 0, p->n_settings * p->n_resources * sizeof(*slope));
    slope += p->n_settings * p->n_resources;
    for (size_t i = 0; i < p->n_limits; i++) {
        x->value += x->prices.limit[i] * p->limits[i].max;
        *slope++ = p->limits[i].max;
    }
    *slope = -(double)l->stays_needed;
}

static void add_pick(struct dual *x, uint32_t workload, uint32_t setting)
{
    const struct layout *l = x->l;
    const struct problem *p = l->p;
    double *of_setting = &x->slope[p->n_workloads + setting * p->n_resources];
    double *of_limits = &x->slope[p->n_workloads + p->n_settings * p->n_resources];

    x->picks[x->n_picks++] = (struct dual_pick){workload, setting};
    x->slope[workload] -= 1;
    x->slope[x->n - 1] += x->prices.is_running[workload];
    for (size_t r = 0; p->n_resources > 1 && r < p->n_resources; r++) {
        if (r != l->main && problem_request(p, workload)[r] > 0)
            of_setting[r] -= (double)problem_request(p, workload)[r] / (double)problem_supply(p, setting)[r];
    }
    for (size_t i = l->limits_first[workload]; i < l->limits_first[workload + 1]; i++) {
        if (limit_has_site(&p->limits[l->limits_of[i]], l->site_of[setting]))
            of_limits[l->limits_of[i]] -= 1;
    }
}

static int64_t resources_price(const struct dual *x, uint32_t setting)
{
    size_t n = x->l->p->n_resources;
    int64_t sum = 0;

    for (size_t r = 0; r < n; r++)
        sum += x->prices.resource[setting * n + r];
    return sum;
}

static int dual_reserve(struct dual *x, size_t n)
{
    size_t want = x->max_picks;
    struct dual_pick *more;

    while (want < x->n_picks + n)
        want *= 2;
    if (want == x->max_picks)
        return 0;
    more = realloc(x->picks, want * sizeof(*more));
    if (!more)
        return -ENOMEM;
    x->picks = more;
    x->max_picks = want;
    return 0;
}

/* The site takes what is worth most with its best setting. */
static int evaluate_site(struct dual *x, uint32_t site)
{
    const struct layout *l = x->l;
    const struct problem *p = l->p;
    struct knapsack *k = x->knapsack;
    uint32_t best = NO_SETTING;
    int64_t most = 0;

    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        int64_t value = resources_price(x, i);

        k->price = prices_of_cell(l, i, x->grain[i]);
        prices_items(&x->prices, &x->rows, i, k);
        value += knapsack_solve(k, l->cells[i]);
        x->grain[i] = prices_of_grain(l, i, k->price);
        x->n_cut += k->is_cut;
        if (value > most) {
            most = value;
            best = i;
            knapsack_hold(k);
        }
    }
    if (best == NO_SETTING)
        return 0;
    x->value += most;
    for (size_t r = 0; r < p->n_resources; r++)
        x->slope[p->n_workloads + best * p->n_resources + r] = r != l->main;
    if (dual_reserve(x, k->n_held) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < k->n_held; i++)
        add_pick(x, k->held[i].what, best);
    return 0;
}

/* Enough to choose from, and few enough to look at often. */
static size_t cells_wanted(const struct problem *p)
{
    return size_min(CELLS_OF_WORKLOAD * p->n_workloads * (p->n_settings / (p->n_sites + 1) + 1),
                    CELLS_WANTED);
}

/* What is not in the copied rows is worth less than the present prices of grains allow, or will be copied. */
static void refresh_rows(struct dual *x)
{
    if (rows_reach(&x->rows, &x->prices, x->margin) && x->n_cut <= x->l->p->n_sites / 8)
        return;
    for (size_t i = 0; i < x->l->p->n_settings; i++)
        x->rows.grain[i] = x->grain[i] - x->grain[i] / 16;
    x->margin = x->widest;
    while (x->margin > x->widest / 16 &&
           rows_estimate(&x->rows, &x->prices, x->margin) > cells_wanted(x->l->p))
        x->margin -= x->margin / 4;
    rows_fill(&x->rows, &x->prices, x->margin);
}

void dual_refresh(struct dual *x)
{
    round_prices(x);
    refresh_rows(x);
}

/* Rounds down, also below 0. */
static int64_t whole_of(int64_t value)
{
    return value >= 0 ? value / PRICE_ONE : -((-value + PRICE_ONE - 1) / PRICE_ONE);
}

static void note_value(struct dual *x)
{
    if (whole_of(x->value) < x->bound)
        x->bound = whole_of(x->value);
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
    const struct problem *p = x->l->p;

    if (layout_stopped(x->l))
        return -ECANCELED;
    round_prices(x);
    refresh_rows(x);
    x->n_cut = 0;
    begin_value(x);
    for (uint32_t s = 0; s < p->n_sites; s++) {
        int r;

        if (layout_stopped(x->l))
            return -ECANCELED;
        prices_at_site(&x->prices, s, true);
        r = evaluate_site(x, s);
        prices_at_site(&x->prices, s, false);
        if (r < 0)
            return r;
    }
    note_value(x);
    return 0;
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
    if (norm <= 0)
        return;
    length = x->factor * ((double)x->value - (double)target * PRICE_ONE) / norm;
    for (size_t i = 0; i < x->n; i++) {
        double price = x->price[i] - length * x->step[i];

        x->price[i] = price > 0 ? price : 0;
    }
}
