/* test_sklearn.py compares forecasts with scikit-learn's. */
#include "exporter/base/def.h"
#include "exporter/models/autoregression.h"

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

static double constant(size_t i)
{
    (void)i;
    return 0.75;
}

/* Infinitely many sets of coefficients fit it. */
static double ramp(size_t i)
{
    return 3 + 0.25 * (double)i;
}

static double growth(size_t i)
{
    return pow(1.05, (double)i);
}

/* The difference of neighbors is a thousandth of the values: normal equations would lose these digits. */
static double slow_wave(size_t i)
{
    return sin((double)i / 1000);
}

static double wave(size_t i)
{
    return sin((double)i / 7);
}

/* A period of eight steps, as of a job that runs every four minutes. */
static double pulse(size_t i)
{
    return i % 8 < 2 ? 2 : 0.1;
}

static void continues_series_without_noise(void **state)
{
    static const struct {
        double (*value)(size_t i);
        size_t n;
        double tolerance; /* relative to the largest value */
    } cases[] = {
        {constant, 61, 0},     {constant, 11, 0},   {ramp, 60, 1e-10},  {ramp, 20, 1e-10}, {growth, N, 1e-9},
        {slow_wave, 60, 1e-9}, {wave, 2400, 1e-10}, {pulse, 40, 1e-10}, {pulse, N, 1e-10},
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        double v[2400], out[HORIZON], size = 0, error;
        size_t n = cases[k].n;

        for (size_t i = 0; i < n + HORIZON; i++)
            size = fmax(size, fabs(cases[k].value(i)));
        for (size_t i = 0; i < n; i++)
            v[i] = cases[k].value(i);
        error = autoregression_predict(v, n, out, HORIZON, HORIZON);
        assert_int_equal(isnan(error) != 0, n < 30);
        assert_false(error > 1e-8 * size);
        for (size_t i = 0; i < HORIZON; i++)
            if (!(fabs(out[i] - cases[k].value(n + i)) <= cases[k].tolerance * size))
                fail_msg("case %zu, step %zu: %.17g", k, i, out[i]);
    }
}

/* The backtest's error is that over the values that it predicted, in their unit. */
static void measures_the_error_of_the_last_values(void **state)
{
    double v[N], out[HORIZON];

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = i + HORIZON < N ? 5000 : 5300;
    assert_true(fabs(autoregression_predict(v, N, out, HORIZON, HORIZON) - 300) < 1e-9);
    assert_true(isnan(autoregression_predict(v, N, out, HORIZON, 0)));
}

/* The forecast is that of the scaled series, however large or small the values are. */
static void survives_extreme_values(void **state)
{
    static const double extremes[] = {0,        1,       -1,     1e308,  -1e308, DBL_MAX,
                                      -DBL_MAX, DBL_MIN, 5e-324, 1e-300, 1e16};
    double v[N], out[HORIZON];

    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        size_t n = 11 + (size_t)(random_value() * (N - 11));
        size_t kinds = 1 + (size_t)(random_value() * 3);
        double kind[3];

        for (size_t k = 0; k < kinds; k++)
            kind[k] = extremes[(size_t)(random_value() * ARRAY_SIZE(extremes))];
        for (size_t i = 0; i < n; i++)
            v[i] = kind[(size_t)(random_value() * (double)kinds)];
        (void)autoregression_predict(v, n, out, HORIZON, turn % 2 ? HORIZON : 0);
        for (size_t i = 0; i < HORIZON; i++)
            if (isnan(out[i]))
                fail_msg("turn %d: NaN at step %zu", turn, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continues_series_without_noise),
        cmocka_unit_test(measures_the_error_of_the_last_values),
        cmocka_unit_test(survives_extreme_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
