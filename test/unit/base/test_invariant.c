#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "test/unit/base/last_line.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void breaks_an_invariant(void)
{
    int refs = 0;

    invariant(refs > 0);
}

static void has_no_memory(void)
{
    memory_exhausted(77);
}

static void has_much_to_say(void)
{
    char text[2000];

    (void)memset(text, 'x', sizeof(text));
    die("%.*s", (int)sizeof(text), text);
}

static void names_what_failed_and_where(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(breaks_an_invariant, line, sizeof(line));
    assert_non_null(strstr(line, "dynamic-scoring: invariant failed: refs > 0 ("));
    assert_non_null(strstr(line, "test_invariant.c:"));
    assert_int_equal(line[strlen(line) - 1], '\n');
}

static void names_the_bytes_that_are_missing(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(has_no_memory, line, sizeof(line));
    assert_string_equal(line, "dynamic-scoring: out of memory: 77 bytes\n");
}

static void cuts_a_long_line(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(has_much_to_say, line, sizeof(line));
    assert_int_equal(strlen(line), 512);
    assert_int_equal(line[511], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_failed_and_where),
        cmocka_unit_test(names_the_bytes_that_are_missing),
        cmocka_unit_test(cuts_a_long_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
