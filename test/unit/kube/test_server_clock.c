/* The offset to the API server's clock, by the Date of its answers. */
#include "controller/kube/server_clock.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DATE "Sat, 21 Nov 2026 06:23:01 GMT"
enum { DATE_S = 1795242181 };

/* Our own time when the request was sent, `ms` after the Date. */
static unix_ms ours(int64_t ms)
{
    return (unix_ms){(int64_t)DATE_S * 1000 + ms};
}

static void follows_the_date(void **state)
{
    static const struct {
        int64_t before, sent, received, after; /* sent, received: after the Date, by our clock */
    } cases[] = {
        {0, 0, 10, 0},
        {0, 900, 990, 0},
        /* Below five seconds, there is none. */
        {0, 4000, 4900, 0},
        {0, -4900, -4800, 0},
        /* Two minutes behind and ahead. The answer was made half a second after its Date, on average. */
        {0, -120000, -119980, 120490},
        {0, 120000, 120020, -119510},
        /* It changes by more than five seconds only, */
        {120490, -120000, -119980, 120490},
        {120490, -116000, -115980, 120490},
        {120490, -124900, -124880, 120490},
        {120490, -113000, -112980, 113490},
        {120490, 0, 20, 0},
        {5200, -300, -280, 5200},
        /* and not by an answer that took so long that it says nothing. */
        {0, -40000, 0, 0},
        {120490, -140000, -100000, 120490},
        /* The clock went back meanwhile. */
        {120490, 5000, -5000, 120490},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(
            kube_clock_offset_by(cases[i].before, STR(DATE), ours(cases[i].sent), ours(cases[i].received)),
            cases[i].after);
}

static void ignores_a_date_that_is_none(void **state)
{
    static const char *const dates[] = {
        "",
        "Sat, 21 Nov 2026 06:23:01",
        "Sat, 21 Nov 2026 06:23:01 UTC",
        "Sat, 21 Foo 2026 06:23:01 GMT",
        "Sat, 21 nov 2026 06:23:01 GMT",
        "Sat; 21 Nov 2026 06:23:01 GMT",
        "Sat, xx Nov 2026 06:23:01 GMT",
        "Sat, 21 Nov 2026 66:23:01 GMT",
        "Saturday, 21-Nov-26 06:23:01 GMT",
        "Sat Nov 21 06:23:01 2026",
        "2026-11-21T06:23:01Z",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(dates); i++)
        assert_int_equal(kube_clock_offset_by(7, str_of(dates[i]), ours(-200000), ours(-199000)), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_date),
        cmocka_unit_test(ignores_a_date_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
