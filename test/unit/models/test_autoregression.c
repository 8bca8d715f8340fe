#include "exporter/base/def.h"
#include "exporter/models/autoregression.h"
#include "exporter/models/least_squares.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { N = 60, HORIZON = 10 };

static double random_value(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

/* Residuals of a fit by least squares are orthogonal to a constant and to each lag. */
static void assert_residuals_are_orthogonal(const struct autoregression *a, const double *v, size_t n)
{
    double sums[LAGS + 1] = {0}, next;

    for (size_t i = 0; i + LAGS < n; i++) {
        autoregression_forecast(a, v + i, LAGS, &next, 1);
        for (size_t j = 0; j < LAGS; j++)
            sums[j] += (v[i + LAGS] - next) * v[i + j];
        sums[LAGS] += v[i + LAGS] - next;
    }
    for (size_t j = 0; j <= LAGS; j++)
        if (fabs(sums[j]) > 1e-10)
            fail_msg("column %zu: %g", j, sums[j]);
}

static void fits_by_least_squares(void **state)
{
    struct autoregression a;
    double v[N];

    (void)state;
    for (size_t n = LAGS + 1; n <= N; n++) {
        for (size_t i = 0; i < n; i++)
            v[i] = random_value() + 0.02 * (double)i;
        autoregression_fit(&a, v, n);
        assert_residuals_are_orthogonal(&a, v, n);
    }
}

/* Normal equations alone would lose these digits: the difference of neighbors is a millionth of the
 * values. */
static void keeps_digits_of_smooth_series(void **state)
{
    struct autoregression a;
    double v[N], out[HORIZON];

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = sin((double)i / 1000);
    autoregression_fit(&a, v, N);
    autoregression_forecast(&a, v, N, out, HORIZON);
    for (size_t i = 0; i < HORIZON; i++)
        if (fabs(out[i] - sin((double)(N + i) / 1000)) > 1e-9)
            fail_msg("step %zu: %.17g", i, out[i]);
}

/* A ramp fits infinitely many sets of coefficients. Those of minimum norm are equal. */
static void takes_the_fit_of_minimum_norm(void **state)
{
    struct autoregression a;
    double v[N], out[HORIZON];

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = 3 + 0.25 * (double)i;
    autoregression_fit(&a, v, N);
    autoregression_forecast(&a, v, N, out, HORIZON);
    for (size_t j = 0; j < LAGS; j++)
        assert_true(fabs(a.coefficients[j] - 0.1) < 1e-12);
    for (size_t i = 0; i < HORIZON; i++)
        assert_true(fabs(out[i] - 3 - 0.25 * (double)(N + i)) < 1e-10);
}

static void predicts_the_constant_of_a_constant_series(void **state)
{
    struct autoregression a;
    double v[N], out[HORIZON];

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = 0.75;
    autoregression_fit(&a, v, N);
    autoregression_forecast(&a, v, N, out, HORIZON);
    for (size_t i = 0; i < HORIZON; i++)
        assert_true(out[i] == 0.75);
}

/* More rows than the decomposition takes at a time, of rank 2. */
static void continues_a_long_wave(void **state)
{
    struct autoregression a;
    double v[40 * N], out[HORIZON];
    size_t n = ARRAY_SIZE(v);

    (void)state;
    for (size_t i = 0; i < n; i++)
        v[i] = sin((double)i / 7);
    autoregression_fit(&a, v, n);
    autoregression_forecast(&a, v, n, out, HORIZON);
    for (size_t i = 0; i < HORIZON; i++)
        assert_true(fabs(out[i] - sin((double)(n + i) / 7)) < 1e-10);
}

static double value_without_noise(int kind, size_t i)
{
    static const double shape[] = {0, 2, 2, 1, 5};

    switch (kind) {
    case 0:
        return 3 + 0.25 * (double)i;
    case 1:
        return pow(1.05, (double)i);
    case 2:
        return sin((double)i / 5);
    case 3:
        return 0.1 * (double)i + sin((double)i / 2);
    default:
        return shape[i % (size_t)(kind - 2)]; /* periods of 2, 3, 4, 5 */
    }
}

/* Coefficients of series that follow from a few values are those of the decomposition of all lags; also
 * where the recurrence does not hold throughout. */
static void agrees_with_the_decomposition_on_series_without_noise(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++)
        for (size_t at = 0; at <= N; at += N / 3) {
            struct autoregression a;
            double v[N], means[LS_COLUMNS] = {0}, want[LAGS];

            for (size_t i = 0; i < N; i++)
                v[i] = value_without_noise(kind, i);
            if (at < N)
                v[at] += 1e-6;
            for (size_t i = 0; i < LS_COLUMNS * (N - LAGS); i++)
                means[i % LS_COLUMNS] += v[i % LS_COLUMNS + i / LS_COLUMNS] / (N - LAGS);
            least_squares(v, N - LAGS, means, want);
            autoregression_fit(&a, v, N);
            for (size_t j = 0; j < LAGS; j++)
                if (fabs(a.coefficients[j] - want[j]) > 1e-8)
                    fail_msg("kind %d, %zu: coefficient %zu is %.17g, not %.17g", kind, at, j,
                             a.coefficients[j], want[j]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_by_least_squares),
        cmocka_unit_test(keeps_digits_of_smooth_series),
        cmocka_unit_test(takes_the_fit_of_minimum_norm),
        cmocka_unit_test(predicts_the_constant_of_a_constant_series),
        cmocka_unit_test(continues_a_long_wave),
        cmocka_unit_test(agrees_with_the_decomposition_on_series_without_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
