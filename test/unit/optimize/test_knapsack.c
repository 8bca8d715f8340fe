#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "exporter/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 400, ROUNDS = 300 };

static uint64_t random_state = 1;

/* 0 .. below - 1. */
static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % n;
}

/* Plain dynamic programming over all items. */
static int64_t best_of(const struct knapsack_item *items, size_t n, uint32_t cells)
{
    int64_t best[KNAPSACK_CELLS + 1] = {0};

    for (size_t i = 0; i < n; i++) {
        for (uint32_t c = cells + 1; c-- > items[i].amount;) {
            int64_t with = best[c - items[i].amount] + items[i].value;

            best[c] = with > best[c] ? with : best[c];
        }
    }
    return best[cells];
}

/* Items of all amounts, also 0 and more than fits; few different values in every other round, so that many
 * are equal. */
static size_t make_items(struct knapsack_item *items, unsigned round)
{
    uint32_t amounts = 1 + below(round % 3 == 0 ? 600 : 12), values = round % 2 ? 5 : 100000;
    size_t n = below(ITEMS + 1);

    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct knapsack_item){1 + below(values), below(amounts), i};
    return n;
}

static void assert_taken_are_worth(const struct knapsack *k, const struct knapsack_item *items,
                                   uint32_t cells, int64_t value)
{
    bool seen[ITEMS] = {false};
    uint64_t amount = 0;

    for (size_t i = 0; i < k->n; i++) {
        uint32_t what = k->items[i].what;

        assert_false(seen[what]);
        seen[what] = true;
        assert_int_equal(k->items[i].value, items[what].value);
        amount += items[what].amount;
        value -= items[what].value;
    }
    assert_int_equal(value, 0);
    assert_true(amount <= cells);
}

static void finds_what_plain_dynamic_programming_finds(void **state)
{
    struct arena arena = {0};
    struct knapsack k;

    (void)state;
    knapsack_init(&k, &arena, ITEMS);
    for (unsigned round = 0; round < ROUNDS; round++) { /* price and tolerance of the round before are kept */
        struct knapsack_item items[ITEMS];
        size_t n = make_items(items, round);
        uint32_t cells = below(round % 4 == 0 ? 20 : KNAPSACK_CELLS + 1);
        int64_t value;

        knapsack_clear(&k);
        k.n = n;
        memcpy(k.items, items, n * sizeof(*items));
        value = knapsack_solve(&k, cells);
        assert_int_equal(value, best_of(items, n, cells));
        assert_false(k.is_cut);
        assert_taken_are_worth(&k, items, cells, value);
    }
    arena_done(&arena);
}

/* Items whose worth is at or below a line are not given; they count in the answer as if they might be. */
static void bounds_the_best_when_items_are_not_given(void **state)
{
    struct arena arena = {0};
    struct knapsack k;
    unsigned cut = 0;

    (void)state;
    knapsack_init(&k, &arena, ITEMS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct knapsack_item items[ITEMS];
        size_t n = make_items(items, round);
        uint32_t cells = below(KNAPSACK_CELLS + 1);
        int64_t best = best_of(items, n, cells), value;

        knapsack_clear(&k);
        k.outside_price = below(1000);
        k.outside = below(1000);
        for (size_t i = 0; i < n; i++) {
            if (items[i].value > k.outside_price * items[i].amount - k.outside)
                k.items[k.n++] = items[i];
        }
        value = knapsack_solve(&k, cells);
        assert_true(value >= best);
        assert_true(k.is_cut || value == best);
        cut += k.is_cut;
    }
    assert_true(cut > 0);
    arena_done(&arena);
}

static void puts_items_aside(void **state)
{
    struct arena arena = {0};
    struct knapsack k;

    (void)state;
    knapsack_init(&k, &arena, 2);
    k.items[k.n++] = (struct knapsack_item){7, 3, 0};
    k.items[k.n++] = (struct knapsack_item){5, 3, 1};
    assert_int_equal(knapsack_solve(&k, 5), 7);
    knapsack_put_aside(&k);
    assert_int_equal(k.n, 0);
    assert_int_equal(k.n_aside, 1);
    assert_int_equal(k.aside[0].what, 0);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_plain_dynamic_programming_finds),
        cmocka_unit_test(bounds_the_best_when_items_are_not_given),
        cmocka_unit_test(puts_items_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
