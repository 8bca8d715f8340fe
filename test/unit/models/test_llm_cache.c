#include "exporter/models/llm_cache.h"

#include "test/oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void keeps_the_last_answer_of_a_series(void **state)
{
    struct llm_cache c = {0};
    double v = 0;

    (void)state;
    assert_false(llm_cache_get(&c, 1, 10, &v));
    llm_cache_put(&c, 1, 10, 0.5);
    assert_false(llm_cache_get(&c, 1, 10, &v));
    llm_cache_reserve(&c, 3);
    llm_cache_put(&c, 1, 10, 0.5);
    assert_true(llm_cache_get(&c, 1, 10, &v));
    assert_true(v == 0.5);
    assert_false(llm_cache_get(&c, 1, 11, &v));
    assert_false(llm_cache_get(&c, 0, 0, &v));
    llm_cache_put(&c, 1, 11, 0.75);
    assert_false(llm_cache_get(&c, 1, 10, &v));
    assert_true(llm_cache_get(&c, 1, 11, &v));
    llm_cache_done(&c);
}

static void keeps_answers_while_it_grows(void **state)
{
    struct llm_cache c = {0};
    double v = 0;

    (void)state;
    for (size_t n = 1; n < 1u << 20; n *= 4) {
        llm_cache_reserve(&c, n);
        llm_cache_put(&c, n, n, (double)n);
    }
    for (size_t n = 1; n < 1u << 17; n *= 4)
        assert_true(llm_cache_get(&c, n, n, &v) && v == (double)n);
    assert_int_equal(c.cap, 128 << 10);
    llm_cache_done(&c);
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct llm_cache c = {0};
        double v;
        llm_cache_reserve(&c, 1);
        llm_cache_put(&c, 1, 1, 1);
        assert_true(llm_cache_get(&c, 1, 1, &v) || oom_happened());
        llm_cache_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_last_answer_of_a_series),
        cmocka_unit_test(keeps_answers_while_it_grows),
        cmocka_unit_test(survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
