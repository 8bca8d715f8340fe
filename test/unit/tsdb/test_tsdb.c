#include "exporter/tsdb/tsdb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void has_a_word_for_each_result(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TSDB_RESULTS; i++)
        assert_string_not_equal(tsdb_result_word((enum tsdb_result)i), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_word_for_each_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
