/* The mean of the values: the sample of the documents. */
#include "exporter/models/model.h"

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

/* A series with values of which none is finite is left out; one without values scores 0. */
static int mean_score(const void *state, struct scoring *s)
{
    struct input_series series;

    (void)state;
    while (request_next(&s->request, &series)) {
        struct result r = {.metric = series.metric, .meta = STR("my_something_meta_by_sample_scorer")};
        long double sum = 0; /* wider than double, so that large values of both signs do not overflow */
        size_t n = 0;

        for (size_t i = 0; i < series.n; i++)
            if (isfinite(series.values[i])) {
                sum += series.values[i];
                n++;
            }
        r.score = n ? (double)(sum / (long double)n) : 0;
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
