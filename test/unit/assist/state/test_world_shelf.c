#include "controller/assist/state/world_shelf.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int put(struct world_shelf *s, const char *namespace, const char *name, const char *value)
{
    const struct world_slot slot = {namespace, name, (void *)(uintptr_t)value, 1};
    void *old;

    return world_shelf_put(s, &slot, &old);
}

static void expect_order(const struct world_shelf *s, const char *namespace, const char *want)
{
    const struct world_slot *slot;
    char all[256] = "";
    size_t at = 0, n = 0;

    while ((slot = world_shelf_next(s, namespace, &at)))
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s/%s ", slot->namespace, slot->name);
    assert_null(world_shelf_next(s, namespace, &at));
    assert_string_equal(all, want);
}

static void iterates_by_namespace_and_name(void **state)
{
    struct world_shelf s = {0};

    (void)state;
    expect_order(&s, NULL, "");
    expect_order(&s, "a", "");
    assert_int_equal(put(&s, "b", "y", ""), 0);
    assert_int_equal(put(&s, "a-b", "x", ""), 0);
    assert_int_equal(put(&s, "a", "z", ""), 0);
    assert_int_equal(put(&s, "b", "x", ""), 0);
    assert_int_equal(put(&s, "c", "", ""), 0);
    expect_order(&s, NULL, "a/z a-b/x b/x b/y c/ ");
    expect_order(&s, "a", "a/z ");
    expect_order(&s, "b", "b/x b/y ");
    expect_order(&s, "c", "c/ ");
    expect_order(&s, "bb", "");
    expect_order(&s, "d", "");
    world_shelf_done(&s);
}

static void replaces_and_takes(void **state)
{
    const char *first = "first", *second = "second";
    const struct world_slot slot = {"a", "x", (void *)(uintptr_t)second, 2};
    struct world_shelf s = {0};
    void *old = NULL;

    (void)state;
    assert_int_equal(put(&s, "a", "x", first), 0);
    assert_int_equal(put(&s, "a", "y", first), 0);
    assert_int_equal(world_shelf_put(&s, &slot, &old), 0);
    assert_ptr_equal(old, first);
    assert_int_equal(s.n, 2);
    assert_null(world_shelf_get(&s, "a", "z"));
    assert_ptr_equal(world_shelf_take(&s, world_shelf_get(&s, "a", "x")), second);
    expect_order(&s, NULL, "a/y ");
    world_shelf_done(&s);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct world_shelf s = {0};
        char names[40][8];

        for (size_t i = 0; i < 40; i++) {
            int r;

            (void)snprintf(names[i], sizeof(names[i]), "%02u", (unsigned)(39 - i) % 100);
            r = put(&s, "n", names[i], "");
            assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
            assert_int_equal(world_shelf_get(&s, "n", names[i]) != NULL, r == 0);
        }
        assert_true(s.n >= 39);
        world_shelf_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterates_by_namespace_and_name),
        cmocka_unit_test(replaces_and_takes),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
