#include "controller/optimize/dual.h"

#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS_OF_WORKLOAD = 120, /* in rows, for each setting of a site */
    MARGIN_PART = 25,        /* of the highest score: the margin of rows at first */
    CELLS_WANTED = 12 << 20, /* in all rows */
    PATIENCE = 30,           /* evaluations without a lower value, after which steps become shorter */
};

/* Of the highest score: a product and a difference that are not above it, in single precision. */
static const double ROUNDING = 0x1p-22;

/* Of slopes that are no more than what sums of fractions lose. */
static const double NORM_MIN = 1e-18;
/* More than any score or move, and little enough that sums of prices are exact. */
static const double PRICE_MAX = 0x1p41;

static const double FIRST_FACTOR = 0.4, LAST_FACTOR = 0.002;

__attribute__((optimize("O3"))) static void raise_best(int16_t *best, const int16_t *scores, size_t n)
{
    for (size_t i = 0; i < n; i++)
        best[i] = scores[i] > best[i] ? scores[i] : best[i];
}

/* Every replica at its workload's best score, and none is moved. */
static void bound_trivially(struct dual *x)
{
    const struct problem *p = x->l->p;
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
    const struct problem *p = l->p;
    size_t n = p->n_workloads + p->n_settings * p->n_resources + p->n_limits + 1;
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
        .price = layout_zeroed(l, n, sizeof(*x->price)),
        .slope = layout_zeroed(l, n, sizeof(*x->slope)),
        .step = layout_zeroed(l, n, sizeof(*x->step)),
        .lowest = layout_zeroed(l, n, sizeof(*x->lowest)),
        .picks = layout_alloc(l, max_picks, sizeof(*x->picks)),
        .worth = layout_alloc(l, p->n_settings + 1, sizeof(*x->worth)),
        .grain = layout_alloc(l, p->n_settings + 1, sizeof(*x->grain)),
    };
    prices_init(&x->prices, l);
    rows_init(&x->rows, l);
    bound_trivially(x);
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
        bound += (double)x->l->replicas[w] * ((double)best[w] + rounding);
    bound = floor(bound + 1e-9 * fabs(bound));
    if (bound < (double)x->bound)
        x->bound = (int64_t)bound;
}

/* Starts from prices per grain, x->grain, of what the sites are set to; settings may be NO_SETTING. With
 * all settings of the problem, that is a bound as well. */
static void dual_start(struct dual *x, const uint32_t *setting)
{
    const struct problem *p = x->l->p;
    size_t n = p->n_workloads;
    CLEANUP(cleanup_free) float *best = xcalloc(n + 1, sizeof(*best));
    double grains = 0;
    size_t n_set = 0;

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
        x->value += x->prices.workload[w] * l->replicas[w];
        *slope++ = l->replicas[w];
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
    const struct problem *p = l->p;
    struct knapsack *k = x->knapsack;
    uint32_t best = NO_SETTING;
    int64_t most = 0;

    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        int64_t value = resources_price(x, i);

        k->price = prices_of_cell(l, i, x->grain[i]);
        prices_items(&x->prices, &x->rows, i, k);
        x->worth[i].most = value;
        value += knapsack_solve(k, l->cells[i]);
        x->worth[i] = (struct dual_worth){value, x->worth[i].most + k->most, k->price};
        x->grain[i] = prices_of_grain(l, i, k->price);
        x->n_cut += k->is_cut;
        if (value > most) {
            most = value;
            best = i;
            knapsack_hold(k);
        }
    }
    if (best == NO_SETTING)
        return;
    x->value += most;
    for (size_t r = 0; r < p->n_resources; r++)
        x->slope[p->n_workloads + best * p->n_resources + r] = r != l->main;
    dual_reserve(x, k->n_held);
    for (size_t i = 0; i < k->n_held; i++)
        add_pick(x, k->held[i].what, best);
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
    if (x->is_dense)
        return;
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

static void dual_refresh(struct dual *x)
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
    int64_t value = prices_value(&x->prices, setting, workload);
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

/* ---- Prices to begin with ---- */

/* Each workload spreads over the sites, the more to a site the more it gains there after paying for its
 * grains. A site's price rises by the logarithm of what is requested from it to what it supplies: Sinkhorn's
 * iteration, with Nesterov's momentum, without which the level that all prices share takes hundreds of
 * rounds. Spreading is narrowed while the prices settle: at first with a sample of the workloads, then with
 * all of them, but only the sites that each may choose. Knows neither knapsacks nor settings. */
enum { STAGES = 2, SAMPLE_ROUNDS = 20, ROUNDS = 15, SAMPLE_CELLS = 1 << 20 };

static const float MOMENTUM = 0.9F;
static const float CHANGE_MAX = 0.5F;
/* Of the rows' margin: how far workloads spread, at the beginning and at the end. */
static const float HEAT_OF_SAMPLE = 8, HEAT = 0.25F, LAST_HEAT = 0.015F;

struct tune_cell {
    uint32_t site;
    float score;
};

struct tune {
    struct dual *dual;
    const uint32_t *setting;
    struct tune_cell *cells; /* by workload */
    size_t *first;           /* [workload + 1] into cells */
    float *weight;           /* [site]: of a workload's cells */
    /* [site]: the price of a grain; the same ahead, where it is evaluated, and that with the lowest value;
     * what is requested; and that by the size of requests */
    float *price, *ahead, *lowest, *requested, *squares;
    float mean;  /* of the grains of a workload */
    float share; /* of all requests, by the workloads that have cells */
};

static float tune_supply(const struct tune *t, uint32_t setting)
{
    return (float)layout_supply(t->dual->l, setting);
}

static void tune_init(struct tune *t, struct dual *x, const uint32_t *setting)
{
    const struct problem *p = x->l->p;
    size_t n = p->n_sites + 1;

    *t = (struct tune){
        .dual = x,
        .setting = setting,
        .first = layout_zeroed(x->l, p->n_workloads + 2, sizeof(*t->first)),
        .weight = layout_alloc(x->l, n, sizeof(*t->weight)),
        .price = layout_zeroed(x->l, 5 * n, sizeof(*t->price)),
    };
    t->ahead = t->price + n;
    t->lowest = t->ahead + n;
    t->requested = t->lowest + n;
    t->squares = t->requested + n;
    for (size_t w = 0; w < p->n_workloads; w++)
        t->mean += x->rows.grains[w] / (float)p->n_workloads;
    for (size_t s = 0; s < p->n_sites; s++)
        t->lowest[s] = setting[s] == NO_SETTING ? 0 : (float)x->grain[setting[s]] / PRICE_ONE;
}

static void tune_reserve(struct tune *t, size_t n)
{
    free(t->cells);
    t->cells = xmalloc((n + 1) * sizeof(*t->cells));
}

/* All sites, of one in so many workloads. */
static void take_sample(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    size_t n = p->n_workloads, used = 0;
    size_t wanted = size_max(SAMPLE_CELLS / (p->n_sites + 1), p->n_sites) + 1, stride = n / wanted + 1;
    float all = 0, sampled = 0;

    tune_reserve(t, (n / stride + 1) * p->n_sites);
    for (size_t w = 0; w < n; w++) {
        t->first[w] = used;
        all += t->dual->rows.grains[w];
        if (w != layout_sample(w / stride, 0, stride))
            continue;
        sampled += t->dual->rows.grains[w];
        for (uint32_t s = 0; s < p->n_sites; s++) {
            if (t->setting[s] != NO_SETTING && problem_score(p, t->setting[s], w) > 0)
                t->cells[used++] = (struct tune_cell){s, problem_score(p, t->setting[s], w)};
        }
    }
    t->first[n] = used;
    t->share = sampled / all;
}

/* The cells of the rows. */
static void take_rows(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    const struct rows *rows = &t->dual->rows;
    size_t *first = t->first + 1; /* one further while they are counted and filled in */

    memset(t->first, 0, (p->n_workloads + 2) * sizeof(*t->first));
    for (size_t s = 0; s < p->n_sites; s++) {
        uint32_t k = t->setting[s];

        for (size_t i = 0; k != NO_SETTING && i < rows_length(rows, k); i++)
            first[rows->cells[rows->first[k] + i].workload + 1]++;
    }
    for (size_t w = 0; w < p->n_workloads; w++)
        first[w + 1] += first[w];
    tune_reserve(t, first[p->n_workloads]);
    for (uint32_t s = 0; s < p->n_sites; s++) {
        uint32_t k = t->setting[s];

        for (size_t i = 0; k != NO_SETTING && i < rows_length(rows, k); i++) {
            const struct row_cell *c = &rows->cells[rows->first[k] + i];

            t->cells[first[c->workload]++] = (struct tune_cell){s, c->score};
        }
    }
    t->share = 1;
}

/* exp(x) for x <= 0, about: all that matters is that it falls fast. The same on every machine. */
static inline float weight_of(float x)
{
    float y = 1 + x / 16;

    y = y > 0 ? y : 0;
    y *= y;
    y *= y;
    y *= y;
    return y * y;
}

/* What a workload requests of each site. Returns its best gain. */
__attribute__((optimize("O3"))) static float request_sites(struct tune *t, size_t workload, float cold)
{
    const struct tune_cell *c = &t->cells[t->first[workload]];
    size_t n = t->first[workload + 1] - t->first[workload];
    float grains = t->dual->rows.grains[workload], best = 0, total;

    for (size_t i = 0; i < n; i++) {
        t->weight[i] = c[i].score - t->ahead[c[i].site] * grains;
        best = t->weight[i] > best ? t->weight[i] : best;
    }
    total = weight_of(-best * cold); /* of being left out */
    for (size_t i = 0; i < n; i++) {
        t->weight[i] = weight_of((t->weight[i] - best) * cold);
        total += t->weight[i];
    }
    for (size_t i = 0; i < n; i++) {
        float requested = t->weight[i] * grains / total;

        t->requested[c[i].site] += requested;
        t->squares[c[i].site] += requested * grains;
    }
    return best;
}

static void change_prices(struct tune *t, float heat)
{
    for (size_t s = 0; s < t->dual->l->p->n_sites; s++) {
        float supply = t->setting[s] == NO_SETTING ? 0 : t->share * tune_supply(t, t->setting[s]);
        float was = t->price[s], size = t->mean / 2, change;

        if (supply <= 0)
            continue;
        if (t->squares[s] > size * t->requested[s])
            size = t->squares[s] / t->requested[s];
        change = logf(t->requested[s] / supply + 1e-6F);
        change = change < -CHANGE_MAX ? -CHANGE_MAX : change > CHANGE_MAX ? CHANGE_MAX : change;
        t->price[s] = t->ahead[s] + heat / size * change;
        t->price[s] = t->price[s] > 0 ? t->price[s] : 0;
        t->ahead[s] = t->price[s] + MOMENTUM * (t->price[s] - was);
        t->ahead[s] = t->ahead[s] > 0 ? t->ahead[s] : 0;
    }
}

/* The value of the prices ahead: as the dual's, with fractions of workloads. */
static double tune_round(struct tune *t, float heat)
{
    const struct problem *p = t->dual->l->p;
    double value = 0;

    memset(t->requested, 0, p->n_sites * sizeof(*t->requested));
    memset(t->squares, 0, p->n_sites * sizeof(*t->squares));
    for (size_t s = 0; s < p->n_sites; s++)
        value +=
            t->setting[s] == NO_SETTING ? 0 : (double)t->ahead[s] * t->share * tune_supply(t, t->setting[s]);
    for (size_t w = 0; w < p->n_workloads; w++) {
        if (t->first[w + 1] > t->first[w])
            value += (double)request_sites(t, w, 1 / heat);
    }
    return value;
}

static void tune_rounds(struct tune *t, int rounds, float from, float to)
{
    size_t n = t->dual->l->p->n_sites;
    double lowest = INFINITY;
    float cooling = powf(to / from, 1.0F / (float)rounds), heat = from;

    memcpy(t->price, t->lowest, n * sizeof(*t->price));
    memcpy(t->ahead, t->lowest, n * sizeof(*t->price));
    for (int i = 0; i < rounds && !layout_stopped(t->dual->l); i++) {
        double value = tune_round(t, heat);

        if (value < lowest) {
            lowest = value;
            memcpy(t->lowest, t->ahead, n * sizeof(*t->lowest));
        }
        change_prices(t, heat);
        heat *= cooling;
    }
    for (size_t s = 0; s < n; s++) {
        if (t->setting[s] != NO_SETTING)
            t->dual->grain[t->setting[s]] = (int64_t)(t->lowest[s] * PRICE_ONE);
    }
}

static void tune_by_sample(struct tune *t, float margin)
{
    take_sample(t);
    tune_rounds(t, SAMPLE_ROUNDS, margin * HEAT_OF_SAMPLE, margin * HEAT);
    dual_start(t->dual, t->setting);
}

static void tune_by_rows(struct tune *t, float margin)
{
    float heat = margin * HEAT, cooling = sqrtf(LAST_HEAT / HEAT);

    for (int stage = 0; stage < STAGES && !layout_stopped(t->dual->l); stage++) {
        dual_refresh(t->dual);
        take_rows(t);
        tune_rounds(t, ROUNDS, heat, heat * cooling);
        heat *= cooling;
        dual_start(t->dual, t->setting);
    }
}

void tune_prices(struct dual *x, const uint32_t *setting, bool by_sample)
{
    float margin = (float)x->widest / PRICE_ONE;
    struct tune t;

    tune_init(&t, x, setting);
    if (t.mean > 0)
        by_sample ? tune_by_sample(&t, margin) : tune_by_rows(&t, margin);
    free(t.cells);
}
