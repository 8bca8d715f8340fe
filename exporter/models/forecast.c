/* Forecasts each series by autoregression, and scores how far its largest predicted value is above a
 * threshold.
 *
 * The fit: a QR decomposition of the centered rows, and back substitution. If R is nearly singular, its
 * singular value decomposition by Jacobi rotations instead, which costs five times as much. Normal equations
 * would lose half of the digits of smooth series. */
#include "exporter/models/forecast.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/utf8.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"
#include "exporter/models/wire.h"
#include "exporter/ui/member.h"

#include <float.h>
#include <math.h>

enum {
    COLUMNS = LAGS + 1, /* the lags, oldest first, and then the value to be explained */
    CHUNK = 64,         /* rows that are added to the triangle at a time */
    HEIGHT = LAGS + CHUNK,
    MAX_SWEEPS = 30 /* of Jacobi rotations; 3 to 6 are usual */
};

/* Smallest element of R's diagonal, relative to the largest, for back substitution. Ten columns hide singular
 * values at most some hundred times smaller, far above those that count as zero. */
static const double MIN_DIAGONAL = 1e-6;

/* Rows of R, each with its right-hand side last. */
struct triangle {
    double rows[LAGS][COLUMNS];
    double squares[LAGS]; /* of the rows' norms, without the right-hand side */
    size_t n;
};

/* ---- Least squares ---- */

/* Several sums, so that an addition does not wait for the one before. */
static double dot_product(const double *a, const double *b, size_t n)
{
    double s[4] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            s[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return s[0] + s[1] + (s[2] + s[3]);
}

static void add_multiple(double *into, const double *from, double factor, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            into[i + k] += factor * from[i + k];
    for (; i < n; i++)
        into[i] += factor * from[i];
}

/* A Householder reflection that makes column c zero below row c; applied to the columns after it. */
static void reflect_column(double columns[COLUMNS][HEIGHT], size_t rows, size_t c)
{
    double *x = columns[c] + c, norm = sqrt(dot_product(x, x, rows - c));

    if (norm == 0)
        return;
    norm = x[0] > 0 ? -norm : norm;
    x[0] -= norm;
    for (size_t j = c + 1; j < COLUMNS; j++) {
        double *y = columns[j] + c;

        add_multiple(y, x, dot_product(x, y, rows - c) / (norm * x[0]), rows - c);
    }
    x[0] = norm;
    for (size_t i = 1; i < rows - c; i++)
        x[i] = 0;
}

/* Row i is v[i] to v[i + LAGS], minus the columns' means. */
static void triangle_make(struct triangle *r, const double *v, size_t rows, const double *means)
{
    double columns[COLUMNS][HEIGHT]; /* of some rows */
    size_t kept = 0;

    for (size_t at = 0; at < rows;) {
        size_t n = size_min(CHUNK, rows - at);

        for (size_t j = 0; j < COLUMNS; j++)
            for (size_t i = 0; i < n; i++)
                columns[j][kept + i] = v[at + i + j] - means[j];
        for (size_t c = 0; c < size_min(LAGS, kept + n); c++)
            reflect_column(columns, kept + n, c);
        kept = size_min(LAGS, kept + n);
        at += n;
    }
    for (size_t i = 0; i < kept; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            r->rows[i][j] = columns[j][i];
    for (size_t i = 0; i < kept; i++)
        r->squares[i] = dot_product(r->rows[i], r->rows[i], LAGS);
    r->n = kept;
}

/* Back substitution; false if R is nearly singular. */
static bool triangle_substitute(const struct triangle *r, double solution[LAGS])
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < r->n; i++) {
        least = fmin(least, fabs(r->rows[i][i]));
        most = fmax(most, fabs(r->rows[i][i]));
    }
    if (r->n < LAGS || !(least > MIN_DIAGONAL * most))
        return false;
    for (size_t i = LAGS; i-- > 0;) {
        double s = r->rows[i][LAGS];

        for (size_t k = i + 1; k < LAGS; k++)
            s -= r->rows[i][k] * solution[k];
        solution[i] = s / r->rows[i][i];
    }
    return true;
}

/* Makes two rows orthogonal, with their right-hand sides. False if they were. */
static bool triangle_rotate(struct triangle *r, size_t i, size_t k)
{
    double *p = r->rows[i], *q = r->rows[k], pq = dot_product(p, q, LAGS), zeta, t, c, s;

    if (pq * pq <= DBL_EPSILON * DBL_EPSILON * r->squares[i] * r->squares[k])
        return false;
    zeta = (r->squares[k] - r->squares[i]) / (2 * pq);
    t = (zeta > 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    c = 1 / sqrt(1 + t * t);
    s = c * t;
    for (size_t j = 0; j < COLUMNS; j++) {
        double was = p[j];

        p[j] = c * was - s * q[j];
        q[j] = s * was + c * q[j];
    }
    r->squares[i] = dot_product(p, p, LAGS);
    r->squares[k] = dot_product(q, q, LAGS);
    return true;
}

/* The solution of minimum norm. One-sided Jacobi on the rows of R = USV' leaves s[i] * v[i]' in row i, and
 * u[i]'z as its right-hand side. As in scikit-learn, singular values below max(rows, LAGS) * DBL_EPSILON of
 * the largest count as zero. */
static void triangle_decompose(struct triangle *r, size_t rows, double solution[LAGS])
{
    double largest = 0, noise = pow((double)size_max(rows, LAGS) * DBL_EPSILON, 2);
    bool rotated = true;

    for (int sweep = 0; rotated && sweep < MAX_SWEEPS; sweep++) {
        double sum = 0; /* that of all squared singular values, of which there are at most LAGS */
        size_t kept = 0;

        rotated = false;
        for (size_t i = 0; i < r->n; i++)
            sum += r->squares[i];
        /* Rows whose square is below `noise` times the mean of all are rounding errors. */
        for (size_t i = 0; i < r->n; i++)
            if (r->squares[i] > noise * sum / LAGS) {
                memmove(r->rows[kept], r->rows[i], sizeof(r->rows[i]));
                r->squares[kept++] = r->squares[i];
            }
        r->n = kept;
        for (size_t i = 0; i + 1 < r->n; i++)
            for (size_t k = i + 1; k < r->n; k++)
                rotated |= triangle_rotate(r, i, k);
    }
    for (size_t i = 0; i < r->n; i++)
        largest = fmax(largest, r->squares[i]);
    memset(solution, 0, LAGS * sizeof(*solution));
    for (size_t i = 0; i < r->n; i++)
        if (r->squares[i] > noise * largest)
            add_multiple(solution, r->rows[i], r->rows[i][LAGS] / r->squares[i], LAGS);
}

/* ---- The model ---- */

/* Fits n values and predicts those that follow, each from predictions where it reaches beyond the series. */
static void autoregression_continue(const double *v, size_t n, double *out, size_t horizon)
{
    double means[COLUMNS] = {0}, coefficients[LAGS], intercept, window[LAGS];
    struct triangle r;
    size_t rows = n - LAGS;

    for (size_t j = 0; j < COLUMNS; j++) {
        for (size_t i = 0; i < rows; i++)
            means[j] += v[i + j];
        means[j] /= (double)rows;
    }
    triangle_make(&r, v, rows, means);
    if (!triangle_substitute(&r, coefficients))
        triangle_decompose(&r, rows, coefficients);
    intercept = means[LAGS] - dot_product(coefficients, means, LAGS);
    memcpy(window, v + n - LAGS, sizeof(window));
    for (size_t h = 0; h < horizon; h++) {
        out[h] = intercept + dot_product(coefficients, window, LAGS);
        memmove(window, window + 1, sizeof(window) - sizeof(*window));
        window[LAGS - 1] = out[h];
    }
}

/* value = scaled * unit + zero */
struct scale {
    double unit, zero;
};

/* Scales the values to a range of 2 around the mean of the first `known`: no sum of squares overflows or
 * vanishes, and a large constant part costs no digits. */
static struct scale scale_values(double *v, size_t n, size_t known)
{
    double least = v[0], most = v[0], sum = 0, unit, middle;

    for (size_t i = 1; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    unit = most / 2 - least / 2;
    middle = most / 2 + least / 2;
    if (!(unit >= 1e-290)) /* constant, but for differences whose squares no double holds */
        unit = 1;
    for (size_t i = 0; i < n; i++)
        v[i] = (v[i] - middle) / unit;
    for (size_t i = 0; i < known; i++)
        sum += v[i];
    sum /= (double)known;
    for (size_t i = 0; i < n; i++)
        v[i] -= sum;
    return (struct scale){.unit = unit, .zero = middle + unit * sum};
}

double autoregression_predict(double *v, size_t n, double *out, size_t horizon, size_t validation)
{
    bool tested = validation > 0 && n >= validation + 2 * LAGS;
    struct scale scale = scale_values(v, n, tested ? n - validation : n);
    double error = NAN, sum = 0;

    if (tested) {
        const double *known = v + n - validation;

        autoregression_continue(v, n - validation, out, validation);
        for (size_t i = 0; i < validation; i++)
            sum += (out[i] - known[i]) * (out[i] - known[i]);
        /* A difference that is not finite counts as infinite. */
        error = (isfinite(sum) ? sqrt(sum / (double)validation) : INFINITY) * scale.unit;
    }
    autoregression_continue(v, n, out, horizon);
    for (size_t i = 0; i < horizon; i++)
        out[i] = out[i] * scale.unit + scale.zero;
    return error;
}

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
