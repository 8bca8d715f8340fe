/* Each workload spreads over the sites, the more to a site the more it gains there after paying for its
 * grains. A site's price rises by the logarithm of what is requested from it to what it supplies: Sinkhorn's
 * iteration, with Nesterov's momentum, without which the level that all prices share takes hundreds of
 * rounds. Spreading is narrowed while the prices settle: at first with a sample of the workloads, then with
 * all of them, but only the sites that each may choose. Knows neither knapsacks nor settings. */
#include "controller/optimize/tune.h"

#include "controller/optimize/layout.h"
#include "controller/optimize/prices.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void tune_done(struct tune *t)
{
    free(t->cells);
    free(t->first);
    free(t->weight);
    free(t->price);
    *t = (struct tune){0};
}

static int tune_init(struct tune *t, struct dual *x, const uint32_t *setting)
{
    const struct problem *p = x->l->p;
    size_t n = p->n_sites + 1;

    *t = (struct tune){.dual = x, .setting = setting};
    t->first = calloc(p->n_workloads + 2, sizeof(*t->first));
    t->weight = malloc(n * sizeof(*t->weight));
    t->price = calloc(5 * n, sizeof(*t->price));
    if (!t->first || !t->weight || !t->price) {
        tune_done(t);
        return -ENOMEM;
    }
    t->ahead = t->price + n;
    t->lowest = t->ahead + n;
    t->requested = t->lowest + n;
    t->squares = t->requested + n;
    for (size_t w = 0; w < p->n_workloads; w++)
        t->mean += x->rows.grains[w] / (float)p->n_workloads;
    for (size_t s = 0; s < p->n_sites; s++)
        t->lowest[s] = setting[s] == NO_SETTING ? 0 : (float)x->grain[setting[s]] / PRICE_ONE;
    return 0;
}

static int tune_reserve(struct tune *t, size_t n)
{
    free(t->cells);
    t->cells = malloc((n + 1) * sizeof(*t->cells));
    return t->cells ? 0 : -ENOMEM;
}

/* All sites, of one in so many workloads. */
static int take_sample(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    size_t n = p->n_workloads, used = 0;
    size_t wanted = size_max(SAMPLE_CELLS / (p->n_sites + 1), p->n_sites) + 1, stride = n / wanted + 1;
    float all = 0, sampled = 0;

    if (tune_reserve(t, (n / stride + 1) * p->n_sites) < 0)
        return -ENOMEM;
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
    return 0;
}

/* The cells of the rows. */
static int take_rows(struct tune *t)
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
    if (tune_reserve(t, first[p->n_workloads]) < 0)
        return -ENOMEM;
    for (uint32_t s = 0; s < p->n_sites; s++) {
        uint32_t k = t->setting[s];

        for (size_t i = 0; k != NO_SETTING && i < rows_length(rows, k); i++) {
            const struct row_cell *c = &rows->cells[rows->first[k] + i];

            t->cells[first[c->workload]++] = (struct tune_cell){s, c->score};
        }
    }
    t->share = 1;
    return 0;
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

static int tune_by_sample(struct tune *t, float margin)
{
    int r = take_sample(t);

    if (r < 0)
        return r;
    tune_rounds(t, SAMPLE_ROUNDS, margin * HEAT_OF_SAMPLE, margin * HEAT);
    return dual_start(t->dual, t->setting);
}

static int tune_by_rows(struct tune *t, float margin)
{
    float heat = margin * HEAT, cooling = sqrtf(LAST_HEAT / HEAT);
    int r = 0;

    for (int stage = 0; stage < STAGES && r == 0 && !layout_stopped(t->dual->l); stage++) {
        dual_refresh(t->dual);
        r = take_rows(t);
        if (r < 0)
            break;
        tune_rounds(t, ROUNDS, heat, heat * cooling);
        heat *= cooling;
        r = dual_start(t->dual, t->setting);
    }
    return r;
}

int tune_prices(struct dual *x, const uint32_t *setting, bool by_sample)
{
    float margin = (float)x->widest / PRICE_ONE;
    struct tune t;
    int r = tune_init(&t, x, setting);

    if (r == 0 && t.mean > 0)
        r = by_sample ? tune_by_sample(&t, margin) : tune_by_rows(&t, margin);
    tune_done(&t);
    return r;
}
