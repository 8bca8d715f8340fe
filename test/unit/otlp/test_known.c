#include "exporter/otlp/known.h"

#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void finds_series_by_all_their_names(void **state)
{
    struct known k = {.max = 10000};
    uint32_t at, other;

    (void)state;
    assert_int_equal(known_find(&k, 7), KNOWN_NONE);
    for (uint64_t i = 1; i <= 5000; i++) {
        assert_int_equal(known_enter(&k, i << 20, i, i + 100, &at), 0);
        assert_int_equal(k.series[at].ref, i + 100);
    }
    assert_int_equal(known_enter(&k, UINT64_C(99) << 40, 77, 500, &other), 0);
    assert_int_equal(known_find(&k, UINT64_C(77) << 20), other);
    assert_int_equal(known_find(&k, UINT64_C(99) << 40), other);
    assert_int_equal(k.series[other].ref, 500);
    assert_int_equal(k.n, 5000);
    known_done(&k);
}

static void forgets_all_when_full(void **state)
{
    struct known k = {.max = 100};
    uint32_t at;

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) {
        assert_int_equal(known_enter(&k, i << 32, i, i, &at), 0);
        assert_int_equal(known_find(&k, i << 32), at);
        assert_true(k.n <= 100);
    }
    /* Other names of one series count, too. */
    for (uint64_t i = 1; i <= 1000; i++) {
        assert_int_equal(known_enter(&k, i << 33, 1, 1, &at), 0);
        assert_true(k.used <= 301);
    }
    known_done(&k);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct known k = {.max = 10000};
        uint32_t at;
        int r = 0;
        for (uint64_t i = 1; i <= 3000 && r == 0; i++)
            r = known_enter(&k, i << 32, i, i, &at);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        known_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_series_by_all_their_names),
        cmocka_unit_test(forgets_all_when_full),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
