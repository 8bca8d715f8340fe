/* Interned texts, and with them the index. */
#include "exporter/tsdb/symbols.h"

#include "exporter/base/hash.h"
#include "test/oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 20000 };

static struct str text_of(unsigned i, char buf[32])
{
    return (struct str){buf, (size_t)snprintf(buf, 32, "value-%u", i)};
}

static void finds_what_was_added_and_not_freed(void **state)
{
    struct tsdb_budget budget = {.max = UINT64_MAX};
    static uint32_t ids[MANY];
    struct symbols s;
    char buf[32];

    (void)state;
    symbols_init(&s, &budget);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(symbols_ref(&s, text_of(i, buf), &ids[i]), 0);
    for (unsigned i = 0; i < MANY; i += 2)
        symbols_unref(&s, ids[i]);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(symbols_find(&s, text_of(i, buf)), i % 2 ? ids[i] : 0);
        if (i % 2)
            assert_true(str_eq(symbols_text(&s, ids[i]), text_of(i, buf)));
    }
    symbols_done(&s);
}

static void frees_a_text_with_its_last_reference(void **state)
{
    struct tsdb_budget budget = {.max = UINT64_MAX};
    struct symbols s;
    uint32_t a, b;

    (void)state;
    symbols_init(&s, &budget);
    assert_int_equal(symbols_ref(&s, STR("a"), &a), 0);
    assert_int_equal(symbols_ref(&s, STR("a"), &b), 0);
    assert_int_equal(a, b);
    symbols_unref(&s, a);
    assert_int_equal(symbols_find(&s, STR("a")), a);
    symbols_unref(&s, a);
    assert_int_equal(symbols_find(&s, STR("a")), 0);
    assert_int_equal(symbols_ref(&s, STR(""), &b), 0);
    assert_int_equal(symbols_find(&s, STR("")), b);
    symbols_done(&s);
}

static void refuses_texts_beyond_the_budget(void **state)
{
    struct tsdb_budget budget = {.max = 64 << 10};
    struct symbols s;
    char buf[32];
    uint32_t id;
    unsigned n = 0;
    uint64_t bytes;

    (void)state;
    symbols_init(&s, &budget);
    while (symbols_ref(&s, text_of(n, buf), &id) == 0)
        n++;
    bytes = budget.bytes;
    assert_true(n > 100 && bytes <= budget.max);
    assert_int_equal(symbols_ref(&s, text_of(n, buf), &id), -ENOBUFS);
    assert_int_equal(budget.bytes, bytes);
    assert_int_equal(symbols_ref(&s, text_of(n - 1, buf), &id), 0);
    symbols_done(&s);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct tsdb_budget budget = {.max = UINT64_MAX};
        struct symbols s;
        char buf[32];
        uint32_t id;
        int r = 0;

        symbols_init(&s, &budget);
        for (unsigned i = 0; i < 50 && r == 0; i++)
            r = symbols_ref(&s, text_of(i, buf), &id);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        if (oom_happened())
            assert_int_equal(symbols_ref(&s, STR("more"), &id), 0);
        symbols_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_added_and_not_freed),
        cmocka_unit_test(frees_a_text_with_its_last_reference),
        cmocka_unit_test(refuses_texts_beyond_the_budget),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    (void)hash_set_key(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
