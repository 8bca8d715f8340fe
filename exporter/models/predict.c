#include "exporter/models/predict.h"

#include "exporter/base/def.h"
#include "exporter/models/autoregression.h"
#include "exporter/models/period.h"
#include "exporter/models/smoothing.h"

#include <math.h>

WORD_TABLE(predict_method_word, enum predict_method, PREDICT_METHODS,
           {[PREDICT_AUTOREGRESSION] = "autoregression", [PREDICT_SMOOTHING] = "smoothing"});

/* value = scaled * unit + zero */
struct scale {
    double unit, zero;
};

/* Scales the values to a range of 2 around the mean of the first `known`: no sum of squares overflows or
 * vanishes, and a large constant part costs no digits. Both methods are invariant to it. */
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

/* Root of the mean of squares; a difference that is not finite counts as infinite. */
static double error_of(const double *predicted, const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (predicted[i] - v[i]) * (predicted[i] - v[i]);
    return isfinite(sum) ? sqrt(sum / (double)n) : INFINITY;
}

static void autoregress(const double *v, size_t n, double *out, size_t horizon)
{
    struct autoregression a;

    autoregression_fit(&a, v, n);
    autoregression_forecast(&a, v, n, out, horizon);
}

static bool all_finite(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

/* Tests both methods and chooses. Smoothing is left with the values that were known to it. */
static void backtest(const double *v, size_t known, size_t validation, double *out, struct smoothing *s,
                     struct prediction *p)
{
    autoregress(v, known, out, validation);
    p->errors[PREDICT_AUTOREGRESSION] = error_of(out, v + known, validation);
    p->period = find_period(v, known);
    smoothing_start(s, v, p->period);
    smoothing_advance(s, known);
    smoothing_forecast(s, out, validation);
    p->errors[PREDICT_SMOOTHING] = error_of(out, v + known, validation);
    if (p->errors[PREDICT_SMOOTHING] < p->errors[PREDICT_AUTOREGRESSION])
        p->method = PREDICT_SMOOTHING;
}

static bool is_constant(const double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

void predict(double *v, size_t n, size_t horizon, size_t validation, double *out, struct prediction *ret)
{
    bool tested = validation > 0 && n >= validation + 2 * LAGS;
    struct prediction p = {.tested = tested};
    struct smoothing s;
    struct scale scale;

    if (is_constant(v, n)) { /* as pods that idle: nothing needs to be computed */
        for (size_t i = 0; i < horizon; i++)
            out[i] = v[0];
        *ret = p;
        return;
    }
    scale = scale_values(v, n, tested ? n - validation : n);
    if (p.tested)
        backtest(v, n - validation, validation, out, &s, &p);
    else
        smoothing_start(&s, v, 0);
    if (p.method == PREDICT_AUTOREGRESSION) {
        autoregress(v, n, out, horizon);
        if (!all_finite(out, horizon))
            p.method = PREDICT_SMOOTHING;
    }
    if (p.method == PREDICT_SMOOTHING) {
        smoothing_advance(&s, n);
        smoothing_forecast(&s, out, horizon);
    }
    for (size_t i = 0; i < horizon; i++)
        out[i] = out[i] * scale.unit + scale.zero;
    for (size_t i = 0; i < PREDICT_METHODS; i++)
        p.errors[i] *= scale.unit;
    *ret = p;
}
