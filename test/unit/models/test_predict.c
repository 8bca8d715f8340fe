#include "exporter/base/def.h"
#include "exporter/models/predict.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { N = 121, HORIZON = 10 };

static double random_value(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

/* CPU load: 2 for 10 steps of 30, otherwise 0. */
static double load_at(size_t i)
{
    return i % 30 < 10 ? 2 : 0;
}

static void chooses_smoothing_for_load_on_and_off(void **state)
{
    double v[N], out[HORIZON];
    struct prediction p;

    (void)state;
    for (size_t n = N - 17; n <= N; n++) {
        for (size_t i = 0; i < n; i++)
            v[i] = load_at(i) + 0.05 * random_value();
        predict(v, n, HORIZON, HORIZON, out, &p);
        assert_int_equal(p.method, PREDICT_SMOOTHING);
        assert_int_equal(p.period, 30);
        assert_true(p.tested && p.errors[PREDICT_SMOOTHING] < 0.1);
        for (size_t i = 0; i < HORIZON; i++)
            if (fabs(out[i] - load_at(n + i)) > 0.2)
                fail_msg("%zu values, step %zu: %g", n, i, out[i]);
    }
}

static void chooses_autoregression_for_growth(void **state)
{
    double v[N], out[HORIZON];
    struct prediction p;

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = pow(1.05, (double)i);
    predict(v, N, HORIZON, HORIZON, out, &p);
    assert_int_equal(p.method, PREDICT_AUTOREGRESSION);
    assert_true(fabs(out[HORIZON - 1] / pow(1.05, N + HORIZON - 1) - 1) < 1e-9);
    assert_string_equal(predict_method_word(p.method), "autoregression");
}

/* What the backtest says is the error over the values that it predicted, in their unit. */
static void measures_the_error_of_the_last_values(void **state)
{
    double v[N], out[HORIZON];
    struct prediction p;

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = i + HORIZON < N ? 5000 : 5300;
    predict(v, N, HORIZON, HORIZON, out, &p);
    assert_true(p.tested);
    assert_true(fabs(p.errors[PREDICT_AUTOREGRESSION] - 300) < 1e-9);
    assert_true(fabs(p.errors[PREDICT_SMOOTHING] - 300) < 1e-9);
}

static void uses_autoregression_without_a_backtest(void **state)
{
    double v[N], out[HORIZON];
    struct prediction p;

    (void)state;
    for (size_t n = 11; n < 40; n++) {
        for (size_t i = 0; i < n; i++)
            v[i] = random_value();
        predict(v, n, HORIZON, n < 30 ? HORIZON : 0, out, &p);
        assert_int_equal(p.method, PREDICT_AUTOREGRESSION);
        assert_false(p.tested);
    }
}

/* No prediction is NaN, whatever the series. */
static void survives_extreme_values(void **state)
{
    static const double extremes[] = {0,        1,       -1,     1e308,  -1e308, DBL_MAX,
                                      -DBL_MAX, DBL_MIN, 5e-324, 1e-300, 1e16};
    double v[N], out[HORIZON];
    struct prediction p;

    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        size_t n = 11 + (size_t)(random_value() * (N - 11));
        size_t kinds = 1 + (size_t)(random_value() * 3);
        double kind[3];

        for (size_t k = 0; k < kinds; k++)
            kind[k] = extremes[(size_t)(random_value() * ARRAY_SIZE(extremes))];
        for (size_t i = 0; i < n; i++)
            v[i] = kind[(size_t)(random_value() * (double)kinds)];
        predict(v, n, HORIZON, turn % 2 ? HORIZON : 0, out, &p);
        for (size_t i = 0; i < HORIZON; i++)
            if (isnan(out[i]))
                fail_msg("turn %d: NaN at step %zu", turn, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_smoothing_for_load_on_and_off),
        cmocka_unit_test(chooses_autoregression_for_growth),
        cmocka_unit_test(measures_the_error_of_the_last_values),
        cmocka_unit_test(uses_autoregression_without_a_backtest),
        cmocka_unit_test(survives_extreme_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
