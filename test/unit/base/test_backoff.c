
#include "exporter/base/backoff.h"
#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static void doubles_up_to_the_longest_pause(void **state)
{
    static const struct {
        unsigned nth;
        int64_t ms;
    } cases[] = {{0, 1000}, {1, 1000}, {2, 2000}, {3, 4000}, {6, 32000}, {7, 60000}, {4000000000u, 60000}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(backoff_doubled_ms(cases[i].nth, 1000, 60000), cases[i].ms);
    assert_int_equal(backoff_doubled_ms(1, 5000, 1000), 1000); /* an interval shorter than the first pause */
}

static void spreads_the_pauses_of_many_clients(void **state)
{
    static const struct backoff b = {.min_ms = 1000, .max_ms = 60000, .retry_after_max_ms = 120000};
    static const struct {
        unsigned nth;
        int64_t retry_after, low, high;
    } cases[] = {
        {1, -1, 500, 1000},
        {2, -1, 1000, 2000},
        {7, -1, 30000, 60000},
        {4000000000u, -1, 30000, 60000},
        {1, 5000, 5000, 6250},
        {7, 5000, 30000, 60000},
        {1, 0, 500, 1000},
        {1, 120000, 120000, 150000},
        {1, 86400000, 120000, 150000}, /* longer than we wait for anyone */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t least = INT64_MAX, most = 0;

        for (unsigned k = 0; k < 500; k++) {
            int64_t ms = backoff_ms(&b, cases[i].nth, cases[i].retry_after);
            least = ms < least ? ms : least;
            most = ms > most ? ms : most;
        }
        assert_in_range(least, cases[i].low, cases[i].high);
        assert_in_range(most, cases[i].low, cases[i].high);
        assert_true(most - least > (cases[i].high - cases[i].low) / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_up_to_the_longest_pause),
        cmocka_unit_test(spreads_the_pauses_of_many_clients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
