#include "exporter/base/map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 5000 };

struct thing {
    char name[16];
    bool in, seen;
};

static void finds_nothing_when_empty(void **state)
{
    struct map m = {0};
    size_t at = 0;

    (void)state;
    assert_null(map_get(&m, "x"));
    assert_null(map_take(&m, "x"));
    assert_null(map_next(&m, &at));
    map_done(&m);
}

static void replaces_a_value(void **state)
{
    struct map m = {0};
    int a, b;

    (void)state;
    map_set(&m, "k", &a);
    map_set(&m, "k", &b);
    assert_int_equal(m.n, 1);
    assert_ptr_equal(map_get(&m, "k"), &b);
    assert_ptr_equal(map_take(&m, "k"), &b);
    assert_null(map_get(&m, "k"));
    map_done(&m);
}

/* Other than strings, slices may hold any byte, and end anywhere. */
static void tells_slices_apart_by_every_byte(void **state)
{
    static const char text[] = "a\0b\0c";
    struct map m = {0};
    int values[5];

    (void)state;
    for (size_t n = 0; n < ARRAY_SIZE(values); n++)
        map_set_str(&m, (struct str){text, n}, &values[n]);
    assert_int_equal(m.n, 5);
    for (size_t n = 0; n < ARRAY_SIZE(values); n++)
        assert_ptr_equal(map_get_str(&m, (struct str){text, n}), &values[n]);
    assert_ptr_equal(map_get(&m, "a"), &values[1]);
    assert_ptr_equal(map_take_str(&m, (struct str){text, 3}), &values[3]);
    assert_null(map_get_str(&m, (struct str){text, 3}));
    assert_ptr_equal(map_get_str(&m, (struct str){text, 4}), &values[4]);
    map_done(&m);
}

static void check_all(struct map *m, struct thing *things)
{
    size_t at = 0, n = 0;
    const struct thing *t;

    for (size_t i = 0; i < MANY; i++) {
        things[i].seen = false;
        assert_ptr_equal(map_get(m, things[i].name), things[i].in ? &things[i] : NULL);
        n += things[i].in;
    }
    assert_int_equal(m->n, n);
    while ((t = map_next(m, &at))) {
        assert_false(t->seen);
        ((struct thing *)(uintptr_t)t)->seen = true;
        n--;
    }
    assert_int_equal(n, 0);
}

/* Removal in an order unlike that of insertion leaves every other name where it can be found. */
static void finds_every_other_name_after_removals(void **state)
{
    static struct thing things[MANY];
    struct map m = {0};
    unsigned random = 1;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(things[i].name, sizeof(things[i].name), "name-%zu", i);
        things[i].in = true;
        map_set(&m, things[i].name, &things[i]);
    }
    check_all(&m, things);
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < MANY; i++) {
            random = random * 1664525u + 1013904223u;
            if (random >> 31)
                continue;
            if (things[i].in)
                assert_ptr_equal(map_take(&m, things[i].name), &things[i]);
            else
                map_set(&m, things[i].name, &things[i]);
            things[i].in = !things[i].in;
        }
        check_all(&m, things);
    }
    map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_nothing_when_empty),
        cmocka_unit_test(replaces_a_value),
        cmocka_unit_test(tells_slices_apart_by_every_byte),
        cmocka_unit_test(finds_every_other_name_after_removals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
