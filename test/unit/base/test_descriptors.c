#include "exporter/base/descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

static void raises_the_soft_limit(void **state)
{
    struct rlimit was, now;

    (void)state;
    (void)getrlimit(RLIMIT_NOFILE, &was);
    now = (struct rlimit){.rlim_cur = 100, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(descriptors_raise(), was.rlim_max < 65536 ? was.rlim_max : 65536);
    (void)getrlimit(RLIMIT_NOFILE, &now);
    assert_int_equal(now.rlim_cur, was.rlim_max < 65536 ? was.rlim_max : 65536);
}

static void stays_within_the_hard_limit(void **state)
{
    struct rlimit few = {.rlim_cur = 30, .rlim_max = 40};

    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(descriptors_raise(), 40);
    assert_int_equal(descriptors_raise(), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raises_the_soft_limit),
        cmocka_unit_test(stays_within_the_hard_limit), /* last: it cannot be undone */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
