#include "exporter/base/def.h"
#include "exporter/models/period.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { N = 1200 };

static double random_value(void)
{
    static uint64_t x = 88172645463325252;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

static size_t period_of(double (*value)(size_t i, size_t period), size_t n, size_t period)
{
    double v[N], mean = 0;

    for (size_t i = 0; i < n; i++) {
        v[i] = value(i, period);
        mean += v[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        v[i] -= mean;
    return find_period(v, n);
}

static double pulse(size_t i, size_t period)
{
    return (i % period < period / 3 ? 1 : 0) + 0.1 * random_value();
}

static double saw(size_t i, size_t period)
{
    return (double)(i % period) + 0.002 * (double)i;
}

static double ramp(size_t i, size_t period)
{
    return (double)i + (double)period;
}

static double noise(size_t i, size_t period)
{
    (void)i, (void)period;
    return random_value();
}

static void finds_the_shortest_period(void **state)
{
    static const size_t periods[] = {3, 7, 12, 15, 30, 90, 288, 360};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
        assert_int_equal(period_of(pulse, size_min(N, 40 + 4 * periods[i]), periods[i]), periods[i]);
        assert_int_equal(period_of(saw, size_min(N, 40 + 10 * periods[i]), periods[i]), periods[i]);
    }
}

static void finds_none_where_nothing_repeats(void **state)
{
    int found = 0;

    (void)state;
    assert_int_equal(period_of(ramp, 100, 0), 0);
    assert_int_equal(period_of(pulse, 80, 30), 0); /* fewer than three periods */
    for (size_t n = 0; n < 6; n++)
        assert_int_equal(period_of(noise, n, 0), 0);
    for (int i = 0; i < 200; i++)
        found += period_of(noise, 120, 0) > 0;
    assert_true(found <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_shortest_period),
        cmocka_unit_test(finds_none_where_nothing_repeats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
