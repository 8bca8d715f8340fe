/* Times of objects: what API servers accept as date-time is RFC 3339, and they store it as it was written. */
#include "controller/kube/time.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int64_t ms;
} times[] = {
    {"1970-01-01T00:00:10Z", 10000},
    {"1970-01-01t00:00:10z", 10000},
    {"1970-01-01T00:00:10.999999Z", 10000},
    {"1970-01-01T09:00:10+09:00", 10000},
    {"1969-12-31T19:00:10-05:00", 10000},
    {"1970-01-01T00:30:10.5+00:30", 10000},
    {"1970-01-01T00:00:00Z", 0},
    {"0001-01-01T00:00:00Z", -62135596800000},
    /* What is no time is 0. */
    {NULL, 0},
    {"", 0},
    {"tomorrow", 0},
    {"1970-01-01", 0},
    {"1970-01-01 00:00:10Z", 0},
    {"1970-01-01T00:00Z", 0},
    {"1970-01-01T00:00:10", 0},
    {"1970-01-01T00:00:10.", 0},
    {"1970-01-01T00:00:10UTC", 0},
    {"1970-01-01T00:00:10Z ", 0},
    {"1970-01-01T00:00:10+9", 0},
    {"1970-01-01T00:00:10+9:00", 0},
    {"1970-01-01T00:00:10+0900", 0},
    {"1970-01-01T00:00:10+ 9:00", 0},
    {"1970-01-01T00:00:10+24:00", 0},
    {"1970-01-01T00:00:10+09:60", 0},
    {"1970-01-01T00:00:10+09:000", 0},
};

static void reads_times_with_their_zone(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        int64_t ms = kube_time_parse(times[i].text).ms;

        if (ms != times[i].ms)
            fail_msg("%s is %lld", cstr(times[i].text), (long long)ms);
    }
}

static void reads_what_it_prints(void **state)
{
    char text[KUBE_TIME_BYTES];

    (void)state;
    kube_time_format((unix_ms){1795242181042}, text);
    assert_string_equal(text, "2026-11-21T06:23:01Z");
    assert_int_equal(kube_time_parse(text).ms, 1795242181000);
    kube_micro_time_format((unix_ms){1795242181042}, text);
    assert_string_equal(text, "2026-11-21T06:23:01.042000Z");
    assert_int_equal(kube_time_parse(text).ms, 1795242181000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_with_their_zone),
        cmocka_unit_test(reads_what_it_prints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
