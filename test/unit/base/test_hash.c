#include "exporter/base/def.h"
#include "exporter/base/hash.h"
#include "exporter/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int by_value(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

static void is_the_same_for_the_same(void **state)
{
    static const char text[] = "0123456789abcdef0123456789abcdef0123456789abcdef";
    char moved[64];

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        memcpy(moved + 3, text, n); /* at another alignment */
        assert_true(hash_bytes((struct str){text, n}, 7) == hash_bytes((struct str){moved + 3, n}, 7));
        assert_true(hash_bytes((struct str){text, n}, 7) != hash_bytes((struct str){text, n}, 8));
    }
}

static void tells_lengths_apart(void **state)
{
    static const char zeros[100] = {0};
    uint64_t h[100];

    (void)state;
    for (size_t n = 0; n < 100; n++)
        h[n] = hash_bytes((struct str){zeros, n}, 1);
    qsort(h, 100, sizeof(h[0]), by_value);
    for (size_t n = 1; n < 100; n++)
        assert_true(h[n] != h[n - 1]);
}

/* Bytes that cancel a constant of the hash must not take the seed, and what came before, out of it. */
static void no_block_erases_what_came_before(void **state)
{
    static const uint64_t constants[] = {0x9e3779b97f4a7c15ull, 0xd1b54a32d192ed03ull, 0};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(constants); k++)
        for (uint64_t seed = 1; seed < 20; seed++) {
            char a[40] = "first16bytes...", b[40] = "other16bytes...";
            memcpy(a + 16, &constants[k], 8);
            memcpy(b + 16, &constants[k], 8);
            for (size_t n = 17; n <= sizeof(a); n++)
                assert_true(hash_bytes((struct str){a, n}, seed) != hash_bytes((struct str){b, n}, seed));
        }
}

/* The lower bits choose a slot: names that differ in one digit must not crowd together. */
static void spreads_similar_names(void **state)
{
    static unsigned slots[1024];
    unsigned most = 0;
    char name[32];

    (void)state;
    for (int i = 0; i < 10240; i++) {
        int n = snprintf(name, sizeof(name), "ds_pod=\"web-%d\"", i);
        unsigned *slot = &slots[hash_bytes((struct str){name, (size_t)n}, 42) % ARRAY_SIZE(slots)];
        most = ++*slot > most ? *slot : most;
    }
    assert_in_range(most, 10, 35); /* ten on average */
}

static void random_numbers_keep_below(void **state)
{
    size_t seen[7] = {0};

    (void)state;
    assert_int_equal(rand_below(0), 0);
    assert_int_equal(rand_below(1), 0);
    for (int i = 0; i < 7000; i++) {
        uint64_t v = rand_below(7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (size_t i = 0; i < 7; i++)
        assert_in_range(seen[i], 700, 1300);
    assert_true(rand_u64() != rand_u64());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_same_for_the_same),         cmocka_unit_test(tells_lengths_apart),
        cmocka_unit_test(no_block_erases_what_came_before), cmocka_unit_test(spreads_similar_names),
        cmocka_unit_test(random_numbers_keep_below),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
