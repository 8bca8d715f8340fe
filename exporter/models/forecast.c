/* The model `forecast`: brings the values of each series to even steps, predicts those that follow
 * (autoregression.h), and scores how far the largest of them is above a threshold. Owns what it computes
 * during a call, and nothing between two. Any thread. */
#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/utf8.h"
#include "exporter/models/autoregression.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"
#include "exporter/models/wire.h"
#include "exporter/ui/member.h"

#include <float.h>
#include <math.h>

enum {
    HORIZON_MAX = 1000,
    MEMBERS_MAX = 256,
    MAX_GAP = 10,   /* steps without a sample that are interpolated */
    META_MAX = 256, /* an agent cuts longer values of labels, after which they are no base64 any more */
    META_JSON_MAX = META_MAX / 4 * 3,
};

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
    .has_reset = true, /* there are no models to forget: each call fits anew */
};

#define FIELD(name) offsetof(struct forecast, name)

static const struct setting forecast_settings[] = {
    {"alpha", "X", "Steepness of the score around the threshold", SETTING_NUMBER, FIELD(alpha), "20", NULL,
     -1e6, 1e6},
    {"threshold", "X", "Predicted value that scores 50", SETTING_NUMBER, FIELD(threshold), "1", NULL, -1e300,
     1e300},
    {"min-length", "N", "Values that a series needs; shorter ones have no result", SETTING_COUNT,
     FIELD(min_length), "20", NULL, LAGS + 1, 1e6},
    {"horizon-length", "N", "Steps to predict", SETTING_COUNT, FIELD(horizon), "10", NULL, 1, HORIZON_MAX},
    {"validation-length", "N", "Last values that the backtest predicts; 0: no backtest", SETTING_COUNT,
     FIELD(validation), "10", NULL, 0, HORIZON_MAX},
    {"max-rmse-threshold", "X", "Backtest error above which a result is marked unreliable", SETTING_NUMBER,
     FIELD(max_rmse), "20", NULL, 0, 1e300},
    {0},
};

#undef FIELD

/* ---- Values at even steps ---- */

/* The shortest distance of two samples; 0 if timestamps do not increase. */
static double spacing_step(const struct input_series *in)
{
    double step = DBL_MAX;

    for (size_t i = 1; i < in->n; i++) {
        double distance = in->times[i] - in->times[i - 1];

        if (!(distance > 0))
            return 0;
        step = fmin(step, distance);
    }
    return step;
}

/* What can be used: up to the last finite value, after the last long gap. */
struct spacing {
    size_t last;            /* sample */
    size_t samples, length; /* samples with a value, steps */
};

/* Writes a value for each step, gaps filled linearly: as many as there is room for. */
static struct spacing spacing_fill(const struct input_series *in, double step, double *out, size_t room)
{
    struct spacing s = {0};

    for (size_t i = 0; i < in->n; i++) {
        double distance = (in->times[i] - in->times[s.last]) / step, v = in->values[i], from;
        size_t steps = 1;

        if (!isfinite(v))
            continue;
        if (s.samples && !(distance < MAX_GAP + 1.5))
            s.samples = s.length = 0;
        else if (s.samples)
            steps = (size_t)(distance + 0.5);
        from = in->values[s.last];
        for (size_t k = 1; k <= steps; k++, s.length++)
            if (s.length < room)
                out[s.length] =
                    k == steps ? v : from * (1 - (double)k / (double)steps) + v * ((double)k / (double)steps);
        s.samples++;
        s.last = i;
    }
    return s;
}

/* ---- Forecasts ---- */

/* The forecast of one series. Those that turn out to have ended, once the newest sample of all series is
 * known, have no result. */
struct forecast_row {
    struct str metric;
    double last, step;     /* time of the last value, in seconds */
    double largest, error; /* NAN: no backtest */
};

struct forecast_rows {
    struct forecast_row *rows; /* owned */
    size_t n;
    double *values; /* owned: room for the values of a series at even steps */
    size_t room;
    double newest;
};

/* Adds the forecast of one series; LEFT_OUTS, or why there is none. Room for 2 * series->n values is
 * reserved: at least half of the steps have a value. */
static enum left_out rows_add(struct forecast_rows *rows, const struct forecast *f,
                              const struct input_series *series)
{
    double step = spacing_step(series), out[HORIZON_MAX], largest, error;
    struct spacing s;

    if (series->n < (size_t)f->min_length)
        return LEFT_OUT_SHORT;
    if (step == 0)
        return LEFT_OUT_DISORDERED;
    s = spacing_fill(series, step, rows->values, rows->room);
    if (s.samples < (size_t)f->min_length || s.length > 2 * s.samples)
        return s.samples == 0 ? LEFT_OUT_NOT_FINITE : LEFT_OUT_GAPPY;
    error = autoregression_predict(rows->values, s.length, out, (size_t)f->horizon, (size_t)f->validation);
    largest = out[0];
    for (size_t i = 1; i < (size_t)f->horizon; i++)
        largest = fmax(largest, out[i]);
    rows->rows[rows->n++] = (struct forecast_row){.metric = series->metric,
                                                  .last = series->times[s.last],
                                                  .step = step,
                                                  .largest = largest,
                                                  .error = error};
    return LEFT_OUTS;
}

/* ---- Results ---- */

/* The longest part of a JSON string, raw between its quotes, that has at most `max` bytes and cuts no escape
 * and no character. */
static struct str cut_raw(struct str raw, size_t max)
{
    size_t n = 0;

    while (n < raw.n) {
        struct str rest = {raw.p + n, raw.n - n};
        size_t next = *rest.p == '\\' ? jr_escape(rest, &(uint32_t){0}) : size_max(1, utf8_char(rest));

        if (n + next > size_min(max, raw.n))
            break;
        n += next;
    }
    return (struct str){raw.p, n};
}

/* The label `meta`, as the documents print it: base64 of
 * {"predictor_label":"<node>_<namespace>_<pod>","alpha":20.0,"threshold":1.0}. Long names are cut. */
static size_t put_meta(char ret[META_MAX], struct str metric, const struct forecast *f)
{
    static const char *const labels[] = {"node", "namespace", "pod"};
    BUF_AUTO(json, META_JSON_MAX);
    BUF_AUTO(tail, META_JSON_MAX);

    buf_puts(&tail, "\",\"alpha\":");
    put_decimal(&tail, f->alpha);
    buf_puts(&tail, ",\"threshold\":");
    put_decimal(&tail, f->threshold);
    buf_puts(&tail, "}");
    buf_puts(&json, "{\"predictor_label\":\"");
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        struct str name = STR("unknown");

        (void)series_label(metric, labels[i], &name);
        if (i > 0 && json.n + tail.n < META_JSON_MAX)
            buf_puts(&json, "_");
        buf_put_str(&json, cut_raw(name, META_JSON_MAX - tail.n - json.n));
    }
    buf_put_str(&json, buf_str(&tail));
    return base64_encode(buf_str(&json), ret);
}

static void put_row(const struct forecast *f, const struct forecast_row *row, struct scoring *s)
{
    char meta[META_MAX];
    BUF_AUTO(members, MEMBERS_MAX);
    struct result result = {.metric = row->metric, .meta = {meta, put_meta(meta, row->metric, f)}};

    result.score = 100 / (1 + exp(-f->alpha * (row->largest - f->threshold)));
    if (isnan(result.score)) { /* with ALPHA 0, or a forecast that overflows in both directions */
        s->left_out[LEFT_OUT_NOT_FINITE]++;
        return;
    }
    /* For people: agents ignore these members. */
    if (isfinite(row->largest)) {
        buf_puts(&members, ",\"largest\":");
        value_number(&members, row->largest);
    }
    if (isfinite(row->error)) {
        s->backtest_error += row->error;
        s->n_backtests++;
        buf_puts(&members, ",\"backtest\":");
        value_number(&members, row->error);
    }
    if (row->error > f->max_rmse)
        buf_puts(&members, ",\"unreliable\":true");
    result.members = buf_str(&members);
    results_add(&s->results, &result);
}

static void rows_done(struct forecast_rows *f)
{
    free(f->rows);
    free(f->values);
}

static int forecast_score(const void *state, struct scoring *s)
{
    CLEANUP(rows_done) struct forecast_rows rows = {.newest = -INFINITY};
    struct input_series series;

    while (request_next(&s->request, &series)) {
        enum left_out why;

        if ((rows.n & (rows.n - 1)) == 0)
            rows.rows = xreallocarray(rows.rows, rows.n ? 2 * rows.n : 1, sizeof(*rows.rows));
        if (rows.room < 2 * series.n) {
            rows.room = size_max(2 * series.n, 2 * rows.room);
            rows.values = xreallocarray(rows.values, rows.room, sizeof(*rows.values));
        }
        if (series.n)
            rows.newest = fmax(rows.newest, series.times[series.n - 1]);
        why = rows_add(&rows, state, &series);
        if (why != LEFT_OUTS)
            s->left_out[why]++;
    }
    for (size_t i = 0; i < rows.n; i++) {
        const struct forecast_row *row = &rows.rows[i];

        if (rows.newest - row->last > (MAX_GAP + 0.5) * row->step)
            s->left_out[LEFT_OUT_ENDED]++;
        else
            put_row(state, row, s);
    }
    return 0;
}

const struct model model_forecast = {
    .name = "forecast",
    .help = "How likely each series exceeds a threshold soon: a forecast by autoregression.",
    .endpoints = &forecast_endpoint,
    .n_endpoints = 1,
    .settings = forecast_settings,
    .size = sizeof(struct forecast),
    .score = forecast_score,
};
