#include "exporter/base/clock.h"
#include "exporter/base/digest.h"
#include "exporter/web/auth_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char *digest_of(unsigned i)
{
    static char text[DIGEST_TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "%064u", i);
    return text;
}

static void put(struct auth_cache *c, unsigned i, int64_t at, bool good)
{
    auth_cache_put(c, digest_of(i), (mono_ms){at}, good);
}

/* 'g', 'b', or '-' if it is not known. */
static char get(struct auth_cache *c, unsigned i, int64_t at)
{
    bool good;

    return !auth_cache_get(c, digest_of(i), (mono_ms){at}, &good) ? '-' : good ? 'g' : 'b';
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct auth_cache));
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void keeps_good_results_and_forgets_bad_ones_soon(void **state)
{
    struct auth_cache *c = *state;

    put(c, 1, 1000, true);
    put(c, 2, 1000, false);
    assert_int_equal(get(c, 1, 1000), 'g');
    assert_int_equal(get(c, 2, 1000 + AUTH_CACHE_BAD_MS - 1), 'b');
    assert_int_equal(get(c, 2, 1000 + AUTH_CACHE_BAD_MS), '-');
    assert_int_equal(get(c, 1, 1000000000), 'g');
    assert_int_equal(get(c, 3, 1000), '-');
}

static void keeps_good_results_through_a_flood_of_bad_ones(void **state)
{
    struct auth_cache *c = *state;

    put(c, 1, 1, true);
    for (unsigned i = 2; i < 10000; i++)
        put(c, i, i, false);
    assert_int_equal(get(c, 1, 10000), 'g');
    assert_int_equal(get(c, 9999, 10000), 'b');
    assert_int_equal(get(c, 9999 - AUTH_CACHE_BAD, 10000), '-');
}

static void forgets_the_good_result_that_was_used_least_recently(void **state)
{
    struct auth_cache *c = *state;

    for (unsigned i = 1; i <= AUTH_CACHE_GOOD; i++)
        put(c, i, i, true);
    assert_int_equal(get(c, 1, 1000), 'g');
    put(c, 1, 1001, true); /* not a second time */
    put(c, 1000, 1002, true);
    assert_int_equal(get(c, 1, 1003), 'g');
    assert_int_equal(get(c, 2, 1003), '-');
    assert_int_equal(get(c, 3, 1003), 'g');
    assert_int_equal(get(c, 1000, 1003), 'g');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_good_results_and_forgets_bad_ones_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_good_results_through_a_flood_of_bad_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(forgets_the_good_result_that_was_used_least_recently, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
