/* The mean of the values: the sample of the documents. */
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

#include <float.h>
#include <math.h>

static const struct model_endpoint mean_endpoint = {
    .prefix = "",
    .name = "sample-scorer",
    .description = "A sample score for time series data",
    MODEL_CPU_SOURCE,
    .range = 3600,
    .step = 60,
    .score_name = "sample_my_score",
    .interval = 30,
};

/* The mean of the finite values, each multiplied by a power of two, and their number. Neumaier's sum keeps
 * what each addition rounds away, and the division keeps its remainder: the result is as good as with long
 * double and, unlike that, which has 64, 106 or 113 bits, the same on each machine. Not finite if the sum is
 * not. */
static double mean_scaled(const struct input_series *series, double scale, size_t *ret_n)
{
    double sum = 0, lost = 0, mean, n;

    *ret_n = 0;
    for (size_t i = 0; i < series->n; i++) {
        double v = series->values[i] * scale, next = sum + v;

        if (!isfinite(v))
            continue;
        lost += fabs(sum) >= fabs(v) ? sum - next + v : v - next + sum;
        sum = next;
        ++*ret_n;
    }
    n = (double)*ret_n;
    mean = sum / n;
    return mean + (fma(-mean, n, sum) + lost) / n;
}

/* The mean of the finite values, and their number; 0 without one. */
static double mean_of(const struct input_series *series, size_t *ret_n)
{
    static const double scale = 0x1p-64; /* there are fewer values than 2^64 */
    double mean = mean_scaled(series, 1, ret_n);

    if (*ret_n == 0)
        return 0;
    if (isfinite(mean))
        return mean;
    mean = mean_scaled(series, scale, ret_n) / scale;
    return fmax(-DBL_MAX, fmin(mean, DBL_MAX)); /* which rounding could exceed */
}

/* A series with values of which none is finite is left out; one without values scores 0. */
static int mean_score(const void *state, struct scoring *s)
{
    struct input_series series;

    (void)state;
    while (request_next(&s->request, &series)) {
        struct result r = {.metric = series.metric, .meta = STR("my_something_meta_by_sample_scorer")};
        size_t n;

        r.score = mean_of(&series, &n);
        if (n > 0 || series.n == 0)
            results_add(&s->results, &r);
        else
            s->left_out[LEFT_OUT_NOT_FINITE]++;
    }
    return 0;
}

const struct model model_mean = {
    .name = "mean",
    .help = "The mean of each series, as the sample scorer of the documents answers it.",
    .endpoints = &mean_endpoint,
    .n_endpoints = 1,
    .score = mean_score,
};
