#include "exporter/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

static void spreads_evenly_below_the_limit(void **state)
{
    size_t seen[7] = {0};

    (void)state;
    assert_int_equal(rand_below(0), 0);
    assert_int_equal(rand_below(1), 0);
    for (int i = 0; i < 7000; i++) {
        uint64_t v = rand_below(7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (size_t i = 0; i < 7; i++)
        assert_in_range(seen[i], 700, 1300);
    assert_true(rand_u64() != rand_u64());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spreads_evenly_below_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
