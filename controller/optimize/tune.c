/* Finds prices to begin with by Sinkhorn's iteration, with momentum. Owns a sample of the scores while it
 * runs. On the thread that solves. Its sums are in single precision, and so only a guess: no bound rests
 * on them unrounded. */
#include "controller/optimize/tune.h"

#include "controller/optimize/dual.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/alloc.h"

#include <math.h>

/* Of the highest score: a product and a difference that are not above it, in single precision. */
static const double ROUNDING = 0x1p-22;

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
    const struct opt_problem *p = x->l->p;
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
    const struct opt_problem *p = x->l->p;
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

static float tune_supply(const struct tune *t, size_t site)
{
    return t->setting[site] == NO_SETTING ? 0 : (float)layout_supply(t->dual->l, t->setting[site]);
}

static void tune_init(struct tune *t, struct dual *x, const uint32_t *setting)
{
    const struct opt_problem *p = x->l->p;
    size_t n = p->n_sites + 1;

    *t = (struct tune){
        .dual = x,
        .setting = setting,
        .first = layout_alloc(x->l, p->n_workloads + 2, sizeof(*t->first)),
        .weight = layout_alloc(x->l, n, sizeof(*t->weight)),
        .price = layout_alloc(x->l, 5 * n, sizeof(*t->price)),
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

/* All sites, of one in so many workloads. */
static void take_sample(struct tune *t)
{
    const struct opt_problem *p = t->dual->l->p;
    size_t n = p->n_workloads, used = 0;
    size_t wanted = size_max(SAMPLE_CELLS / (p->n_sites + 1), p->n_sites) + 1, stride = n / wanted + 1;
    float all = 0, sampled = 0;

    t->cells = xmalloc(((n / stride + 1) * p->n_sites + 1) * sizeof(*t->cells));
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
    const struct opt_problem *p = t->dual->l->p;
    const struct rows *rows = &t->dual->rows;
    size_t *first = t->first + 1; /* one further while they are counted and filled in */

    memset(t->first, 0, (p->n_workloads + 2) * sizeof(*t->first));
    for (size_t s = 0; s < p->n_sites; s++) {
        uint32_t k = t->setting[s];

        for (size_t i = 0; k != NO_SETTING && i < rows->n[k]; i++)
            first[rows->cells[rows->first[k] + i].workload + 1]++;
    }
    free(t->cells);
    t->cells = xmalloc((layout_sum_up(first, p->n_workloads) + 1) * sizeof(*t->cells));
    for (uint32_t s = 0; s < p->n_sites; s++) {
        uint32_t k = t->setting[s];

        for (size_t i = 0; k != NO_SETTING && i < rows->n[k]; i++) {
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
        float supply = t->share * tune_supply(t, s);
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
    const struct opt_problem *p = t->dual->l->p;
    double value = 0;

    memset(t->requested, 0, p->n_sites * sizeof(*t->requested));
    memset(t->squares, 0, p->n_sites * sizeof(*t->squares));
    for (size_t s = 0; s < p->n_sites; s++)
        value += (double)t->ahead[s] * t->share * tune_supply(t, s);
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

void tune_prices(struct dual *x, const uint32_t *setting, bool by_sample)
{
    float margin = (float)x->widest / PRICE_ONE, heat = margin * HEAT, cooling = sqrtf(LAST_HEAT / HEAT);
    struct tune t;

    tune_init(&t, x, setting);
    if (t.mean > 0 && by_sample) {
        take_sample(&t);
        tune_rounds(&t, SAMPLE_ROUNDS, margin * HEAT_OF_SAMPLE, margin * HEAT);
        dual_start(x, setting);
    }
    for (int stage = 0; t.mean > 0 && !by_sample && stage < STAGES && !layout_stopped(x->l); stage++) {
        dual_refresh(x);
        take_rows(&t);
        tune_rounds(&t, ROUNDS, heat, heat * cooling);
        heat *= cooling;
        dual_start(x, setting);
    }
    free(t.cells);
}
