/* Kubernetes' two forms of a time. */
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    int64_t ms;
    const char *seconds, *micro;
} cases[] = {
    {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
    {1795242181042, "2026-11-21T06:23:01Z", "2026-11-21T06:23:01.042000Z"},
    {1795242181999, "2026-11-21T06:23:01Z", "2026-11-21T06:23:01.999000Z"},
    {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999000Z"},
};

static void formats_whole_seconds_and_microseconds(void **state)
{
    char text[KUBE_TIME_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        kube_time_format((unix_ms){cases[i].ms}, text);
        assert_string_equal(text, cases[i].seconds);
        kube_micro_time_format((unix_ms){cases[i].ms}, text);
        assert_string_equal(text, cases[i].micro);
    }
}

static void reads_back_what_it_formats(void **state)
{
    (void)state;
    assert_int_equal(kube_time_parse(cases[1].seconds).ms, 1795242181000);
    assert_int_equal(kube_time_parse(cases[1].micro).ms, 1795242181000);
}

static void reads_anything_else_as_zero(void **state)
{
    static const char *const others[] = {NULL, "", "yesterday", "2026-11-21", "1795242181"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(kube_time_parse(others[i]).ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_whole_seconds_and_microseconds),
        cmocka_unit_test(reads_back_what_it_formats),
        cmocka_unit_test(reads_anything_else_as_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
