#include "exporter/tsdb/slab.h"

#include "test/oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 5000 };

static void gives_each_item_its_own_zeroed_bytes(void **state)
{
    struct tsdb_budget budget = {.max = UINT64_MAX};
    static uint32_t ids[MANY];
    struct slab s;

    (void)state;
    slab_init(&s, &budget, 64);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            static const char zeros[64];

            assert_int_equal(slab_alloc(&s, &ids[i]), 0);
            assert_int_not_equal(ids[i], 0);
            assert_memory_equal(slab_at(&s, ids[i]), zeros, 64);
            memset(slab_at(&s, ids[i]), (int)(i % 255) + 1, 64);
        }
        for (uint32_t i = 0; i < MANY; i++)
            assert_int_equal(((unsigned char *)slab_at(&s, ids[i]))[63], i % 255 + 1);
        assert_int_equal(s.used, MANY);
        for (uint32_t i = 0; i < MANY; i += 2)
            slab_free(&s, ids[i]);
        assert_true(slab_spare(&s) >= MANY / 2 * 64);
        for (uint32_t i = 1; i < MANY; i += 2)
            slab_free(&s, ids[i]);
        assert_int_equal(s.used, 0);
        assert_int_equal(budget.bytes, 0);
    }
    slab_done(&s);
}

static void reuses_items_before_it_takes_more_memory(void **state)
{
    struct tsdb_budget budget = {.max = UINT64_MAX};
    uint32_t ids[600], id;
    struct slab s;
    uint64_t bytes;

    (void)state;
    slab_init(&s, &budget, 64);
    for (unsigned i = 0; i < 600; i++)
        assert_int_equal(slab_alloc(&s, &ids[i]), 0);
    bytes = budget.bytes;
    for (unsigned i = 0; i < 600; i += 3)
        slab_free(&s, ids[i]);
    for (unsigned i = 0; i < 600; i += 3)
        assert_int_equal(slab_alloc(&s, &id), 0);
    assert_int_equal(budget.bytes, bytes);
    assert_null(slab_find(&s, slab_last(&s)));
    assert_non_null(slab_find(&s, id));
    slab_done(&s);
}

static void stays_within_its_budget(void **state)
{
    struct tsdb_budget budget = {.max = 100 << 10};
    struct slab s;
    uint32_t id;
    int r;

    (void)state;
    slab_init(&s, &budget, 64);
    while ((r = slab_alloc(&s, &id)) == 0)
        continue;
    assert_int_equal(r, -ENOBUFS);
    assert_true(budget.bytes <= budget.max && budget.bytes > budget.max / 2);
    slab_free(&s, id);
    assert_int_equal(slab_alloc(&s, &id), 0);
    slab_done(&s);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct tsdb_budget budget = {.max = UINT64_MAX};
        struct slab s;
        uint32_t id;
        int r = 0;

        slab_init(&s, &budget, 4096);
        for (unsigned i = 0; i < 200 && r == 0; i++)
            r = slab_alloc(&s, &id);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        if (oom_happened())
            assert_int_equal(slab_alloc(&s, &id), 0);
        slab_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_each_item_its_own_zeroed_bytes),
        cmocka_unit_test(reuses_items_before_it_takes_more_memory),
        cmocka_unit_test(stays_within_its_budget),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
