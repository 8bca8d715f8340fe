/* Each workload spreads over the sites, the more to a site the more it gains there after paying for its
 * grains. A site's price rises by the logarithm of what is requested from it to what it supplies:
 * Sinkhorn's iteration. Spreading is narrowed while the prices settle. Converges in some twenty rounds,
 * where subgradient steps of thousands of prices take hundreds; but it knows neither knapsacks nor
 * settings. */
#include "controller/optimize/tune.h"

#include "controller/optimize/layout.h"
#include "controller/optimize/prices.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STAGES = 3, ROUNDS = 8, ROUNDS_AT_HEAT = 4 };

static const float COOLING = 0.7F;
/* A row that was copied without the scores that count now must not make a site worthless at once. */
static const float CHANGE_MAX = 0.5F;

struct tune {
    struct dual *dual;
    const uint32_t *setting;
    float *price;        /* [site]: of a grain */
    float *best, *total; /* [workload]: its best gain after paying, and the sum of its weights */
    float heat, mean;    /* mean: of the grains of a workload */
    double lowest;       /* value: as the dual's, with fractions of workloads */
};

static float tune_supply(const struct tune *t, uint32_t setting)
{
    const struct layout *l = t->dual->l;

    return (float)(problem_supply(l->p, setting)[l->main] / l->grain);
}

/* The site's cells; none if its row was not copied. */
static size_t tune_row(const struct tune *t, uint32_t site, const struct row_cell **ret)
{
    const struct rows *rows = &t->dual->rows;
    uint32_t k = t->setting[site];

    if (k == NO_SETTING || rows->first[k] == SIZE_MAX)
        return 0;
    *ret = &rows->cells[rows->first[k]];
    return rows->n[k];
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

static double find_best(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    const float *grains = t->dual->rows.grains;
    double value = 0;

    memset(t->best, 0, p->n_workloads * sizeof(*t->best));
    for (uint32_t s = 0; s < p->n_sites; s++) {
        const struct row_cell *c = NULL;
        size_t n = tune_row(t, s, &c);

        value += t->setting[s] == NO_SETTING ? 0 : (double)t->price[s] * tune_supply(t, t->setting[s]);
        for (size_t i = 0; i < n; i++) {
            float gain = (float)c[i].score - t->price[s] * grains[c[i].workload];

            t->best[c[i].workload] = gain > t->best[c[i].workload] ? gain : t->best[c[i].workload];
        }
    }
    for (size_t w = 0; w < p->n_workloads; w++)
        value += (double)t->best[w];
    return value;
}

static void keep_prices(struct tune *t)
{
    const struct problem *p = t->dual->l->p;

    for (size_t w = 0; w < p->n_workloads; w++)
        t->dual->price[w] = (double)t->best[w] * PRICE_ONE;
    for (size_t s = 0; s < p->n_sites; s++) {
        if (t->setting[s] != NO_SETTING)
            t->dual->grain[t->setting[s]] = (int64_t)(t->price[s] * PRICE_ONE);
    }
}

static void sum_weights(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    const float *grains = t->dual->rows.grains;

    for (size_t w = 0; w < p->n_workloads; w++)
        t->total[w] = weight_of(-t->best[w] / t->heat); /* of being left out */
    for (uint32_t s = 0; s < p->n_sites; s++) {
        const struct row_cell *c = NULL;
        size_t n = tune_row(t, s, &c);

        for (size_t i = 0; i < n; i++) {
            uint32_t w = c[i].workload;

            t->total[w] += weight_of(((float)c[i].score - t->price[s] * grains[w] - t->best[w]) / t->heat);
        }
    }
}

static void change_prices(struct tune *t)
{
    const struct problem *p = t->dual->l->p;
    const float *grains = t->dual->rows.grains;

    for (uint32_t s = 0; s < p->n_sites; s++) {
        const struct row_cell *c = NULL;
        size_t n = tune_row(t, s, &c);
        float change, requested = 0, supply = n > 0 ? tune_supply(t, t->setting[s]) : 0;

        if (supply <= 0)
            continue;
        for (size_t i = 0; i < n; i++) {
            uint32_t w = c[i].workload;

            requested += grains[w] / t->total[w] *
                         weight_of(((float)c[i].score - t->price[s] * grains[w] - t->best[w]) / t->heat);
        }
        change = logf(requested / supply + 1e-6F);
        change = change < -CHANGE_MAX ? -CHANGE_MAX : change > CHANGE_MAX ? CHANGE_MAX : change;
        t->price[s] += t->heat / t->mean * change;
        t->price[s] = t->price[s] > 0 ? t->price[s] : 0;
    }
}

static void tune_stage(struct tune *t)
{
    t->lowest = INFINITY;
    dual_refresh(t->dual);
    for (int round = 0; round < ROUNDS && !layout_stopped(t->dual->l); round++) {
        double value = find_best(t);

        if (value < t->lowest) {
            t->lowest = value;
            keep_prices(t);
        }
        sum_weights(t);
        change_prices(t);
        if (round % ROUNDS_AT_HEAT == ROUNDS_AT_HEAT - 1)
            t->heat *= COOLING;
    }
}

int tune_prices(struct dual *x, const uint32_t *setting)
{
    const struct problem *p = x->l->p;
    CLEANUP(cleanup_free) float *price = calloc(p->n_sites + 1, sizeof(*price));
    CLEANUP(cleanup_free) float *best = malloc((p->n_workloads + 1) * sizeof(*best));
    CLEANUP(cleanup_free) float *total = malloc((p->n_workloads + 1) * sizeof(*total));
    struct tune t = {.dual = x, .setting = setting, .heat = (float)x->margin / PRICE_ONE};

    if (!price || !best || !total)
        return -ENOMEM;
    for (size_t w = 0; w < p->n_workloads; w++)
        t.mean += x->rows.grains[w] / (float)p->n_workloads;
    if (t.mean <= 0)
        return 0;
    for (size_t s = 0; s < p->n_sites; s++)
        price[s] = setting[s] == NO_SETTING ? 0 : (float)x->grain[setting[s]] / PRICE_ONE;
    t.price = price;
    t.best = best;
    t.total = total;
    for (int stage = 0; stage < STAGES; stage++)
        tune_stage(&t);
    return 0;
}
