#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void formats_as_rfc_3339(void **state)
{
    static const struct {
        int64_t ms;
        const char *want;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-1000, "1969-12-31T23:59:59.000Z"},
        {-1001, "1969-12-31T23:59:58.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {1795242181123, "2026-11-21T06:23:01.123Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "10000-01-01T00:00:00.000Z"},
    };
    char out[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        unix_ms_format((unix_ms){cases[i].ms}, out);
        assert_string_equal(out, cases[i].want);
    }
}

/* A clock gone mad must not take the log with it. */
static void formats_any_value_within_its_room(void **state)
{
    static const int64_t odd[] = {INT64_MAX,         INT64_MIN, INT64_MAX - 999,  INT64_MIN + 1,
                                  67767976233532799, -1,        (int64_t)1 << 55, -((int64_t)1 << 55)};
    char out[40];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        memset(out, '#', sizeof(out));
        unix_ms_format((unix_ms){odd[i]}, out);
        assert_non_null(memchr(out, '\0', 32));
        assert_int_equal(out[strlen(out) - 1], 'Z');
        assert_int_equal(out[32], '#');
    }
}

static void system_clock_goes_forward(void **state)
{
    mono_ms a = clock_system.mono(&clock_system), b = clock_system.mono(&clock_system);
    int64_t wall = clock_system.wall(&clock_system).ms / 1000, t = time(NULL);

    (void)state;
    assert_false(mono_before(b, a));
    assert_true(mono_diff(a, b) >= 0);
    assert_true(t - wall <= 1 && wall - t <= 1);
}

static void counts_differences(void **state)
{
    mono_ms t = {1000};

    (void)state;
    assert_int_equal(mono_add(t, -1500).ms, -500);
    assert_int_equal(mono_diff(t, mono_add(t, 250)), 250);
    assert_int_equal(mono_diff(mono_add(t, 250), t), -250);
    assert_true(mono_before(t, mono_add(t, 1)));
    assert_false(mono_before(t, t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_as_rfc_3339),
        cmocka_unit_test(formats_any_value_within_its_room),
        cmocka_unit_test(system_clock_goes_forward),
        cmocka_unit_test(counts_differences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
