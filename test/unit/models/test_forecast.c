#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/json.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "test/unit/models/model_world.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { STEP = 30, META_MAX = 256 };

struct world {
    struct buf in, out;
    struct instance *instance;
    struct scoring s;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    buf_init(&w->in, 1u << 20);
    buf_init(&w->out, 1u << 20);
    w->instance = instance_new(&model_forecast);
    *state = w;
    buf_puts(&w->in, "{\"data\":[");
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    buf_done(&w->in);
    buf_done(&w->out);
    instance_free(w->instance);
    free(w);
    return 0;
}

static double constant(int i)
{
    (void)i;
    return 0.9;
}

static double ramp(int i)
{
    return 0.01 * i;
}

static double growth(int i)
{
    return pow(10, i);
}

/* Adds a series with samples at n steps, of which the last is `late` steps after time 0. A value of +Inf is a
 * step without a sample. */
static void add_metric(struct world *w, const char *metric, double (*value)(int i), int n, int late)
{
    const char *comma = "";

    buf_printf(&w->in, "%s{\"metric\":%s,\"values\":[", w->in.p[w->in.n - 1] == '[' ? "" : ",", metric);
    assert_int_equal(buf_failed(&w->in), 0);
    for (int i = 0; i < n; i++)
        if (value(i) < INFINITY || isnan(value(i))) {
            buf_printf(&w->in, isnan(value(i)) ? "%s[%d,\"NaN\"]" : "%s[%d,\"%.17g\"]", comma,
                       1718600000 + STEP * (late - n + i), value(i));
            assert_int_equal(buf_failed(&w->in), 0);
            comma = ",";
        }
    buf_puts(&w->in, "]}");
    assert_int_equal(buf_failed(&w->in), 0);
}

static void add_series(struct world *w, const char *pod, double (*value)(int i), int n, int late)
{
    char metric[100];

    (void)snprintf(metric, sizeof(metric), "{\"pod\":\"%s\"}", pod);
    add_metric(w, metric, value, n, late);
}

/* Ends the request and calls the model. */
static void call(struct world *w)
{
    buf_puts(&w->in, "]}");
    assert_int_equal(buf_failed(&w->in), 0);
    assert_int_equal(model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &w->s), 0);
    buf_putc(&w->out, '\0');
    assert_int_equal(buf_failed(&w->out), 0);
}

/* The number that follows `name` in the result of a pod; NAN if it has none. */
static double number_of(struct world *w, const char *pod, const char *name)
{
    char text[64];
    const char *p, *end;

    (void)snprintf(text, sizeof(text), "\"pod\":\"%s\"", pod);
    p = strstr(w->out.p, text);
    if (!p)
        return NAN;
    end = strstr(p, "}}") ?: w->out.p + w->out.n;
    end = strstr(p, "{\"metric\"") ?: end;
    p = strstr(p, name);
    return p && p < end ? strtod(p + strlen(name), NULL) : NAN;
}

static void scores_the_largest_predicted_value(void **state)
{
    struct world *w = *state;

    add_series(w, "flat", constant, 60, 0);
    add_series(w, "ramp", ramp, 100, 0);
    call(w);
    assert_true(fabs(number_of(w, "flat", "\"score\":") - 100 / (1 + exp(20 * (1 - 0.9)))) < 1e-9);
    assert_true(fabs(number_of(w, "ramp", "\"score\":") - 100 / (1 + exp(20 * (1 - 1.09)))) < 1e-6);
    assert_true(fabs(number_of(w, "ramp", "\"largest\":") - 1.09) < 1e-9);
    assert_true(number_of(w, "flat", "\"backtest\":") == 0);
    assert_non_null(strstr(w->out.p, "\"meta\":\"eyJwcmVkaWN0b3JfbGFiZWwi"));
    assert_int_equal(w->s.n_backtests, 2);
    assert_true(w->s.backtest_error >= 0 && w->s.backtest_error < 1e-9);
}

static void bounds_the_score_of_a_series_that_explodes(void **state)
{
    struct world *w = *state;

    add_series(w, "boom", growth, 300, 0);
    call(w);
    assert_true(number_of(w, "boom", "\"score\":") == 100);
    assert_non_null(strstr(w->out.p, "\"unreliable\":true"));
}

static void leaves_out_what_it_cannot_forecast(void **state)
{
    struct world *w = *state;

    add_series(w, "ended", constant, 60, -11);
    add_series(w, "late", constant, 60, -10);
    add_series(w, "short", constant, 19, 0);
    add_series(w, "enough", constant, 20, 0);
    call(w);
    assert_int_equal(w->s.results.n, 2);
    assert_int_equal(w->s.left_out[LEFT_OUT_ENDED], 1);
    assert_int_equal(w->s.left_out[LEFT_OUT_SHORT], 1);
    assert_true(isnan(number_of(w, "ended", "\"score\":")) && isnan(number_of(w, "short", "\"score\":")));
    assert_false(isnan(number_of(w, "late", "\"score\":")) || isnan(number_of(w, "enough", "\"score\":")));
    assert_string_equal(left_out_word(LEFT_OUT_ENDED), "ended");
    assert_true(isnan(number_of(w, "enough", "\"backtest\":"))); /* too few values for one */
}

static void answers_no_series_with_no_results(void **state)
{
    struct world *w = *state;

    call(w);
    assert_string_equal(w->out.p, "{\"results\":[]}");
}

static void reports_an_invalid_request(void **state)
{
    struct world *w = *state;

    add_series(w, "a", constant, 30, 0);
    buf_puts(&w->in, "]");
    assert_int_equal(buf_failed(&w->in), 0);
    assert_int_equal(model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &w->s),
                     -EINVAL);
}

/* ---- Series that need care: ramps with steps that have no sample, or NaN ---- */

static double two_missing(int i)
{
    return i == 15 || i == 16 ? INFINITY : ramp(i);
}

static double nan_at_both_ends(int i)
{
    return i < 3 || i > 57 ? NAN : ramp(i);
}

static double gap_of_ten(int i)
{
    return i > 20 && i < 31 ? INFINITY : ramp(i);
}

/* What comes before the long gap is another series. */
static double long_gap_early(int i)
{
    return i < 5 ? 100 : i < 16 ? INFINITY : ramp(i);
}

static double long_gap_late(int i)
{
    return i > 40 && i < 52 ? NAN : ramp(i);
}

static double mostly_missing(int i)
{
    return i < 2 || i % 3 == 0 ? ramp(i) : INFINITY;
}

static double only_nan(int i)
{
    (void)i;
    return NAN;
}

static void fills_short_gaps_only(void **state)
{
    static const struct {
        const char *name;
        double (*value)(int i);
        double largest; /* NAN: it is left out */
        enum left_out why;
    } cases[] = {
        {"two missing", two_missing, 0.69, LEFT_OUTS},
        {"NaN at both ends", nan_at_both_ends, 0.67, LEFT_OUTS},
        {"gap of ten", gap_of_ten, 0.69, LEFT_OUTS},
        {"long gap early", long_gap_early, 0.69, LEFT_OUTS},
        {"long gap late", long_gap_late, NAN, LEFT_OUT_GAPPY},
        {"mostly missing", mostly_missing, NAN, LEFT_OUT_GAPPY},
        {"only NaN", only_nan, NAN, LEFT_OUT_NOT_FINITE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world *w = *state;
        double found;

        w->in.n = strlen("{\"data\":[");
        buf_truncate(&w->out, 0);
        add_series(w, "a", cases[i].value, 60, 0);
        call(w);
        found = number_of(w, "a", "\"largest\":");
        if (isnan(cases[i].largest) ? !isnan(found) || w->s.left_out[cases[i].why] != 1
                                    : !(fabs(found - cases[i].largest) < 1e-9))
            fail_msg("%s: %g", cases[i].name, found);
    }
}

static void leaves_out_times_that_do_not_increase(void **state)
{
    struct world *w = *state;
    static const int steps[] = {0, -1};

    for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
        buf_printf(&w->in, "%s{\"metric\":{},\"values\":[", k ? "," : "");
        for (int i = 0; i < 60; i++)
            buf_printf(&w->in, "%s[%d,\"1\"]", i ? "," : "", 1000 + steps[k] * i);
        buf_puts(&w->in, "]}");
        assert_int_equal(buf_failed(&w->in), 0);
    }
    call(w);
    assert_int_equal(w->s.left_out[LEFT_OUT_DISORDERED], 2);
}

/* ---- The label `meta` ---- */

/* Decodes that of the only result into `json`. */
static void read_meta(struct world *w, struct buf *json)
{
    const char *meta = strstr(w->out.p, "\"meta\":\"");

    assert_non_null(meta);
    meta += strlen("\"meta\":\"");
    assert_true(strcspn(meta, "\"") <= META_MAX);
    buf_truncate(json, 0);
    assert_int_equal(base64_decode((struct str){meta, strcspn(meta, "\"")}, json), 0);
    buf_putc(json, '\0');
    assert_int_equal(buf_failed(json), 0);
}

/* The example of the documents. */
static void writes_the_label_that_users_know(void **state)
{
    struct world *w = *state;

    add_metric(w,
               "{\"__name__\":\"x\",\"pod\":\"skupper-site-controller-6dc45fff49-mdrt7\",\"node\":\"cluster1-"
               "control-"
               "plane\",\"namespace\":\"skupper-site-controller\"}",
               constant, 20, 0);
    call(w);
    assert_non_null(strstr(
        w->out.p,
        "\"eyJwcmVkaWN0b3JfbGFiZWwiOiJjbHVzdGVyMS1jb250cm9sLXBsYW5lX3NrdXBwZXItc2l0ZS1jb250cm9sbGVyX3Nr"
        "dXBwZXItc2l0ZS1jb250cm9sbGVyLTZkYzQ1ZmZmNDktbWRydDciLCJhbHBoYSI6MjAuMCwidGhyZXNob2xkIjoxLjB9\""));
}

/* A label that an agent would cut is no base64 any more. */
static void cuts_long_names_between_characters(void **state)
{
    static const char *const parts[] = {"n", "\\u00e9", "\\\"", "\xc3\xa9", "\xf0\x9f\x98\x80"};
    struct world *w = *state;
    BUF_AUTO(metric, 10000);
    BUF_AUTO(json, 1000);
    struct jr j;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        for (size_t shift = 0; shift < 12; shift++) {
            buf_truncate(&metric, 0);
            buf_printf(&metric, "{\"node\":\"%.*s", (int)shift, "abcdefghijkl");
            for (size_t k = 0; k < 253; k++)
                buf_puts(&metric, parts[i]);
            buf_puts(&metric, "\",\"pod\":\"p\"}");
            buf_putc(&metric, '\0');
            assert_int_equal(buf_failed(&metric), 0);
            w->in.n = strlen("{\"data\":[");
            buf_truncate(&w->out, 0);
            add_metric(w, metric.p, constant, 20, 0);
            call(w);
            read_meta(w, &json);
            jr_init(&j, (struct str){json.p, json.n - 1}, JR_STRICT);
            assert_true(jr_skip(&j, NULL) && jr_end(&j));
            assert_non_null(strstr(json.p, "\",\"alpha\":20.0,\"threshold\":1.0}"));
        }
    buf_truncate(&w->out, 0);
    w->in.n = strlen("{\"data\":[");
    add_metric(w, "{\"pod\":\"p\\u00e9\\\"\",\"job\":\"j\"}", constant, 20, 0);
    call(w);
    read_meta(w, &json);
    assert_string_equal(
        json.p, "{\"predictor_label\":\"unknown_unknown_p\\u00e9\\\"\",\"alpha\":20.0,\"threshold\":1.0}");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(scores_the_largest_predicted_value),
        CASE(bounds_the_score_of_a_series_that_explodes),
        CASE(leaves_out_what_it_cannot_forecast),
        CASE(answers_no_series_with_no_results),
        CASE(reports_an_invalid_request),
        CASE(fills_short_gaps_only),
        CASE(leaves_out_times_that_do_not_increase),
        CASE(writes_the_label_that_users_know),
        CASE(cuts_long_names_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
