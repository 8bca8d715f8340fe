#include "exporter/base/buf.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "test/oom.h"
#include "test/unit/models/model_world.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { STEP = 30 };

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
    assert_int_equal(instance_new(&w->instance, &model_forecast), 0);
    *state = w;
    return buf_puts(&w->in, "{\"data\":[");
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

/* Adds a series of n samples, of which the last is `late` steps after time 0. */
static void add_series(struct world *w, const char *pod, double (*value)(int i), int n, int late)
{
    assert_int_equal(buf_printf(&w->in, "%s{\"metric\":{\"pod\":\"%s\"},\"values\":[",
                                w->in.p[w->in.n - 1] == '[' ? "" : ",", pod),
                     0);
    for (int i = 0; i < n; i++)
        assert_int_equal(buf_printf(&w->in, "%s[%d,\"%.17g\"]", i ? "," : "",
                                    1718600000 + STEP * (late - n + i), value(i)),
                         0);
    assert_int_equal(buf_puts(&w->in, "]}"), 0);
}

/* Ends the request and calls the model. */
static void call(struct world *w)
{
    assert_int_equal(buf_puts(&w->in, "]}"), 0);
    assert_int_equal(model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &w->s), 0);
    assert_int_equal(buf_putc(&w->out, '\0'), 0);
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
    assert_non_null(strstr(w->out.p, "\"method\":\"autoregression\""));
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
    assert_int_equal(buf_puts(&w->in, "]"), 0);
    assert_int_equal(model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &w->s),
                     -EINVAL);
}

static void survives_each_failed_allocation(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 70; i++)
        add_series(w, "a", constant, 20 + 8 * i, 0);
    assert_int_equal(buf_puts(&w->in, "]}"), 0);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        int r = model_call(&model_forecast, w->instance->state, buf_str(&w->in), &w->out, &w->s);

        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        buf_done(&w->out);
    }
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(scores_the_largest_predicted_value), CASE(bounds_the_score_of_a_series_that_explodes),
        CASE(leaves_out_what_it_cannot_forecast), CASE(answers_no_series_with_no_results),
        CASE(reports_an_invalid_request),         CASE(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
