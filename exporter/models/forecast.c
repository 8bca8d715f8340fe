/* Forecasts each series, and scores by how far its largest predicted value is above a threshold. */
#include "exporter/base/buf.h"
#include "exporter/models/autoregression.h"
#include "exporter/models/model.h"
#include "exporter/models/predict.h"
#include "exporter/models/predictor_label.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"
#include "exporter/models/spacing.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>

enum { HORIZON_MAX = 1000, MEMBERS_MAX = 256 };

struct forecast {
    double alpha, threshold, max_rmse;
    int64_t min_length, horizon, validation;
};

static const struct model_endpoint forecast_endpoint = {
    .prefix = "",
    .name = "simple-prediction-scorer",
    .description = "A simple prediction score for time series data",
    MODEL_CPU_SOURCE,
    .range = 3600,
    .step = 30,
    .score_name = "simple_prediction_score",
    .interval = 30,
    .has_reset = true,
};

#define FORECAST_FIELD(name) offsetof(struct forecast, name)

static const struct setting forecast_settings[] = {
    {"alpha", "X", "Steepness of the score around the threshold", SETTING_NUMBER, FORECAST_FIELD(alpha), "20",
     NULL, -1e6, 1e6},
    {"threshold", "X", "Predicted value that scores 50", SETTING_NUMBER, FORECAST_FIELD(threshold), "1", NULL,
     -1e300, 1e300},
    {"min-length", "N", "Values that a series needs; shorter ones have no result", SETTING_COUNT,
     FORECAST_FIELD(min_length), "20", NULL, LAGS + 1, 1e6},
    {"horizon-length", "N", "Steps to predict", SETTING_COUNT, FORECAST_FIELD(horizon), "10", NULL, 1,
     HORIZON_MAX},
    {"validation-length", "N", "Last values that the backtest of the methods predicts; 0: no backtest",
     SETTING_COUNT, FORECAST_FIELD(validation), "10", NULL, 0, HORIZON_MAX},
    {"max-rmse-threshold", "X", "Backtest error above which a result is marked unreliable", SETTING_NUMBER,
     FORECAST_FIELD(max_rmse), "20", NULL, 0, 1e300},
    {0},
};

/* The forecast of one series. Those that turn out to have ended, once the newest sample of all series is
 * known, have no result. */
struct forecast_row {
    struct str metric;
    double last, step; /* time of the last value, in seconds */
    double largest, error;
    enum predict_method method;
    bool tested;
};

struct forecast_rows {
    struct forecast_row *rows; /* owned */
    size_t n, cap;
    double *values; /* owned: room for the values of a series at even steps */
    size_t room;
    double newest;
};

static int rows_reserve(struct forecast_rows *f, size_t samples)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        void *rows = realloc(f->rows, cap * sizeof(*f->rows));

        if (!rows)
            return -ENOMEM;
        f->rows = rows;
        f->cap = cap;
    }
    if (f->room < 2 * samples) {
        size_t room = size_max(2 * samples, 2 * f->room);
        void *values = realloc(f->values, room * sizeof(*f->values));

        if (!values)
            return -ENOMEM;
        f->values = values;
        f->room = room;
    }
    return 0;
}

static void cleanup_rows(struct forecast_rows *f)
{
    free(f->rows);
    free(f->values);
}

static void forecast_series(const struct forecast *f, const struct input_series *series, double *values,
                            const struct spacing *even, struct forecast_row *ret)
{
    double out[HORIZON_MAX], largest;
    struct prediction p;

    predict(values, even->n, (size_t)f->horizon, (size_t)f->validation, out, &p);
    largest = out[0];
    for (size_t i = 1; i < (size_t)f->horizon; i++)
        largest = fmax(largest, out[i]);
    *ret = (struct forecast_row){.metric = series->metric,
                                 .last = even->last,
                                 .step = even->step,
                                 .largest = largest,
                                 .error = p.errors[p.method],
                                 .method = p.method,
                                 .tested = p.tested};
}

static int forecast_all(const struct forecast *f, struct scoring *s, struct forecast_rows *rows)
{
    struct input_series series;
    struct spacing even;
    enum left_out why;
    int r;

    while (request_next(&s->request, &series)) {
        r = rows_reserve(rows, series.n);
        if (r < 0)
            return r;
        if (series.n)
            rows->newest = fmax(rows->newest, series.times[series.n - 1]);
        if (space_evenly(&series, (size_t)f->min_length, rows->values, &even, &why))
            forecast_series(f, &series, rows->values, &even, &rows->rows[rows->n++]);
        else
            s->left_out[why]++;
    }
    return 0;
}

/* More members of a result, for people; agents ignore them. */
static int put_members(struct buf *b, const struct forecast *f, const struct forecast_row *row)
{
    char text[NUM_MAX];
    int r = buf_printf(b, "\"method\":\"%s\"", predict_method_word(row->method));

    if (isfinite(row->largest))
        r = r ?: buf_puts(b, ",\"largest\":") ?: buf_put(b, text, num_put_double(text, row->largest));
    if (row->tested && isfinite(row->error))
        r = r ?: buf_puts(b, ",\"backtest\":") ?: buf_put(b, text, num_put_double(text, row->error));
    if (row->tested && row->error > f->max_rmse)
        r = r ?: buf_puts(b, ",\"unreliable\":true");
    return r;
}

static int put_row(const struct forecast *f, const struct forecast_row *row, struct buf *members,
                   struct scoring *s)
{
    char meta[PREDICTOR_LABEL_MAX];
    struct result_label label = {"meta", {meta, predictor_label(meta, row->metric, f->alpha, f->threshold)}};
    struct result result = {.metric = row->metric, .labels = &label, .n_labels = 1};
    int r;

    result.score = 100 / (1 + exp(-f->alpha * (row->largest - f->threshold)));
    if (isnan(result.score)) { /* with ALPHA 0, or a threshold as infinite as the forecast */
        s->left_out[LEFT_OUT_NOT_FINITE]++;
        return 0;
    }
    if (row->tested && isfinite(row->error)) {
        s->backtest_error += row->error;
        s->n_backtests++;
    }
    buf_truncate(members, 0);
    r = put_members(members, f, row);
    if (r < 0)
        return r;
    result.members = buf_str(members);
    results_add(&s->results, &result);
    return 0;
}

static int forecast_score(const void *state, struct scoring *s)
{
    CLEANUP(cleanup_rows) struct forecast_rows rows = {.newest = -INFINITY};
    BUF_AUTO(members, MEMBERS_MAX);
    int r = forecast_all(state, s, &rows);

    for (size_t i = 0; r == 0 && i < rows.n; i++) {
        const struct forecast_row *row = &rows.rows[i];

        if (rows.newest - row->last > (MAX_GAP + 0.5) * row->step)
            s->left_out[LEFT_OUT_ENDED]++;
        else
            r = put_row(state, row, &members, s);
    }
    return r;
}

/* There are no models to forget: each call fits anew. */
static void forecast_reset(void *state)
{
    (void)state;
}

const struct model model_forecast = {
    .name = "forecast",
    .help = "How likely each series exceeds a threshold soon: a forecast by autoregression or exponential "
            "smoothing.",
    .endpoints = &forecast_endpoint,
    .n_endpoints = 1,
    .settings = forecast_settings,
    .size = sizeof(struct forecast),
    .score = forecast_score,
    .reset = forecast_reset,
};
