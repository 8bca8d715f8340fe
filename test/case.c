/* Linked into every unit test: DS_TEST_CASE in the environment names the case to run, with * and ? as
 * wildcards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_case(void)
{
    const char *pattern = getenv("DS_TEST_CASE");

    if (pattern && *pattern)
        cmocka_set_test_filter(pattern);
}
