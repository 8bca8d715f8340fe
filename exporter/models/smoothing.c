#include "exporter/models/smoothing.h"

#include "exporter/base/def.h"

struct smoothing_parameters {
    double level[SMOOTHING_LANES], trend[SMOOTHING_LANES], damping[SMOOTHING_LANES], season[SMOOTHING_LANES];
};

/* Weights of the last error in level, trend and season, and how much of the trend is left after a step.
 * With damping 0 there is no trend. */
static const struct smoothing_parameters PLAIN = {
    .level = {0.1, 0.3, 0.6, 0.95, 0.2, 0.5, 0.5, 0.9},
    .trend = {0, 0, 0, 0, 0.02, 0.1, 0.2, 0.4},
    .damping = {0, 0, 0, 0, 0.98, 0.9, 0.98, 0.98},
};
static const struct smoothing_parameters SEASONAL = {
    .level = {0.02, 0.1, 0.3, 0.7, 0.02, 0.1, 0.3, 0.1},
    .trend = {0, 0, 0, 0, 0, 0, 0, 0.02},
    .damping = {0, 0, 0, 0, 0, 0, 0, 0.98},
    .season = {0.1, 0.1, 0.1, 0.1, 0.4, 0.4, 0.4, 0.2},
};

static double smoothing_mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

/* Without a season, from the first values; with one, from the first two periods. */
static void family_start(struct smoothing_family *f, const double *v, size_t period,
                         const struct smoothing_parameters *parameters)
{
    double level = period ? smoothing_mean(v, 2 * period) : v[0];
    double trend = period ? 0 : (v[SMOOTHING_MIN - 1] - v[0]) / (SMOOTHING_MIN - 1);

    f->parameters = parameters;
    f->period = period;
    for (size_t k = 0; k < SMOOTHING_LANES; k++) {
        f->level[k] = level;
        f->trend[k] = parameters->damping[k] > 0 ? trend : 0;
        f->squared_error[k] = 0;
        for (size_t i = 0; i < period; i++)
            f->season[i][k] = (v[i] + v[i + period]) / 2 - level;
    }
}

/* Takes in value `v` of every set. `counts` is 1 if the error is to be counted, otherwise 0. */
static void family_step(struct smoothing_family *f, double v, double *season, double counts)
{
    const struct smoothing_parameters *p = f->parameters;

    for (size_t k = 0; k < SMOOTHING_LANES; k++) {
        double trend = p->damping[k] * f->trend[k], expected = f->level[k] + trend;
        double error = v - expected - season[k];

        f->level[k] = expected + p->level[k] * error;
        f->trend[k] = trend + p->trend[k] * error;
        season[k] += p->season[k] * error;
        f->squared_error[k] += counts * error * error;
    }
}

static void family_advance(struct smoothing_family *f, const struct smoothing *s, size_t n)
{
    double none[SMOOTHING_LANES] = {0};

    for (size_t i = s->n, at = f->period ? s->n % f->period : 0; i < n; i++) {
        family_step(f, s->values[i], f->period ? f->season[at] : none, i >= s->scored_from ? 1 : 0);
        at = at + 1 < f->period ? at + 1 : 0;
    }
}

static size_t family_best(const struct smoothing_family *f)
{
    size_t best = 0;

    for (size_t k = 1; k < SMOOTHING_LANES; k++)
        if (f->squared_error[k] < f->squared_error[best])
            best = k;
    return best;
}

void smoothing_start(struct smoothing *s, const double *values, size_t period)
{
    s->values = values;
    s->n = 0;
    s->seasonal = period > 0;
    s->scored_from = size_max(SMOOTHING_MIN, 2 * period);
    family_start(&s->plain, values, 0, &PLAIN);
    if (s->seasonal)
        family_start(&s->season, values, period, &SEASONAL);
}

void smoothing_advance(struct smoothing *s, size_t n)
{
    family_advance(&s->plain, s, n);
    if (s->seasonal)
        family_advance(&s->season, s, n);
    s->n = n;
}

void smoothing_forecast(const struct smoothing *s, double *out, size_t horizon)
{
    const struct smoothing_family *f = &s->plain;
    size_t k = family_best(f);
    double level, trend;

    if (s->seasonal && s->season.squared_error[family_best(&s->season)] < f->squared_error[k]) {
        f = &s->season;
        k = family_best(f);
    }
    level = f->level[k];
    trend = f->trend[k];
    for (size_t h = 0; h < horizon; h++) {
        trend *= f->parameters->damping[k];
        level += trend;
        out[h] = level + (f->period ? f->season[(s->n + h) % f->period][k] : 0);
    }
}
