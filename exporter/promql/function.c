/* Each function does what the one of its name does in Prometheus 3, in the same order of operations, so that
 * results have the same bits. */
#include "exporter/promql/function.h"

#include "exporter/promql/fold.h"

#include <math.h>
#include <string.h>

static double last_value(const struct window *w)
{
    return w->v[w->end - 1];
}

/* Go's Duration.Seconds(). */
static double duration_seconds(int64_t ms)
{
    int64_t whole = ms / 1000, rest_ns = ms % 1000 * 1000000;

    return (double)whole + (double)rest_ns / 1e9;
}

/* By how much the values changed; a counter continues at 0 after a reset. */
static double window_change(const struct window *w, bool is_counter)
{
    double change = last_value(w) - w->v[w->first];

    for (size_t i = w->first_reset; is_counter && i < w->end_reset; i++)
        change += w->v[w->resets[i] - 1];
    return change;
}

/* The seconds by which the change is extended beyond a sample that lies `gap` seconds from the border of the
 * window: up to the border, or by half the usual interval if more than one sample seems to be missing. */
static double extension(double gap, double interval)
{
    return gap >= interval * 1.1 ? interval / 2 : gap;
}

static double extrapolated(const struct window *w, int64_t at, int64_t range_ms, bool is_counter,
                           bool is_rate)
{
    double change, start, end, sampled, interval, factor, first;

    if (window_count(w) < 2)
        return value_absent();
    first = w->v[w->first];
    change = window_change(w, is_counter);
    start = (double)(w->t[w->first] - (at - range_ms)) / 1000;
    end = (double)(at - w->t[w->end - 1]) / 1000;
    sampled = (double)(w->t[w->end - 1] - w->t[w->first]) / 1000;
    interval = sampled / (double)(window_count(w) - 1);
    start = extension(start, interval);
    if (is_counter && change > 0 && first >= 0) {
        /* A counter is not extended to before it was 0. */
        double to_zero = sampled * (first / change);

        if (to_zero < start)
            start = to_zero;
    }
    factor = (sampled + start + extension(end, interval)) / sampled;
    if (is_rate)
        factor /= duration_seconds(range_ms);
    return change * factor;
}

static double fn_rate(const struct window *w, int64_t at, int64_t range_ms)
{
    return extrapolated(w, at, range_ms, true, true);
}

static double fn_increase(const struct window *w, int64_t at, int64_t range_ms)
{
    return extrapolated(w, at, range_ms, true, false);
}

static double fn_delta(const struct window *w, int64_t at, int64_t range_ms)
{
    return extrapolated(w, at, range_ms, false, false);
}

static double fn_irate(const struct window *w, int64_t at, int64_t range_ms)
{
    double last, before;

    (void)at;
    (void)range_ms;
    if (window_count(w) < 2)
        return value_absent();
    last = last_value(w);
    before = w->v[w->end - 2];
    return (last < before ? last : last - before) / ((double)(w->t[w->end - 1] - w->t[w->end - 2]) / 1000);
}

static double fn_last(const struct window *w, int64_t at, int64_t range_ms)
{
    (void)at;
    (void)range_ms;
    return last_value(w);
}

static double fn_count(const struct window *w, int64_t at, int64_t range_ms)
{
    (void)at;
    (void)range_ms;
    return (double)window_count(w);
}

static double fn_sum(const struct window *w, int64_t at, int64_t range_ms)
{
    struct fold sum = window_fold(w);

    (void)at;
    (void)range_ms;
    return fold_total(&sum);
}

static double fn_extreme(const struct window *w, int64_t at, int64_t range_ms)
{
    (void)at;
    (void)range_ms;
    return window_fold(w).value;
}

static double fn_avg(const struct window *w, int64_t at, int64_t range_ms)
{
    struct mean mean = {.count = 0};
    struct fold sum = window_fold(w);
    double n = (double)window_count(w);

    (void)at;
    (void)range_ms;
    if (!isinf(sum.value))
        return sum.value / n + sum.error / n;
    for (size_t i = w->first; i < w->end; i++)
        mean_add(&mean, w->v[i]);
    return mean_value(&mean);
}

const struct range_function range_functions[] = {
    {"avg_over_time", TRACK_SUM, false, fn_avg},
    {"count_over_time", TRACK_NOTHING, false, fn_count},
    {"delta", TRACK_NOTHING, false, fn_delta},
    {"increase", TRACK_RESETS, false, fn_increase},
    {"irate", TRACK_NOTHING, false, fn_irate},
    {"last_over_time", TRACK_NOTHING, true, fn_last},
    {"max_over_time", TRACK_MAX, false, fn_extreme},
    {"min_over_time", TRACK_MIN, false, fn_extreme},
    {"rate", TRACK_RESETS, false, fn_rate},
    {"sum_over_time", TRACK_SUM, false, fn_sum},
    {.name = NULL},
};

const struct range_function *range_function_of(struct str name)
{
    for (const struct range_function *f = range_functions; f->name; f++)
        if (str_eq(name, str_of(f->name)))
            return f;
    return NULL;
}
