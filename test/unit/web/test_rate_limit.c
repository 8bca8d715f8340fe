#include "exporter/base/clock.h"
#include "exporter/web/rate_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool take(struct rate_limit *l, int64_t at)
{
    return rate_limit_take(l, (mono_ms){at});
}

static void allows_everything_without_an_interval(void **state)
{
    struct rate_limit l = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(take(&l, 5));
}

static void allows_a_burst_and_then_one_for_each_interval(void **state)
{
    struct rate_limit l = {.interval_ms = 100, .burst = 3};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(take(&l, 1000));
    assert_false(take(&l, 1000));
    assert_false(take(&l, 1099));
    assert_true(take(&l, 1100));
    assert_false(take(&l, 1199));
    assert_true(take(&l, 1350)); /* half of another has come back meanwhile */
    assert_true(take(&l, 1400));
    assert_true(take(&l, 1401));
    assert_false(take(&l, 1499));
    for (int i = 0; i < 3; i++)
        assert_true(take(&l, 100000)); /* no more than the burst is saved */
    assert_false(take(&l, 100000));
}

static void refuses_everything_with_a_burst_of_0(void **state)
{
    struct rate_limit l = {.interval_ms = 100};

    (void)state;
    assert_false(take(&l, 1));
    assert_false(take(&l, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allows_everything_without_an_interval),
        cmocka_unit_test(allows_a_burst_and_then_one_for_each_interval),
        cmocka_unit_test(refuses_everything_with_a_burst_of_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
