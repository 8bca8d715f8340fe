#include "exporter/base/def.h"
#include "exporter/base/hash.c" /* its key is set */
#include "exporter/base/hash.h"
#include "exporter/base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int by_value(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

static void gives_equal_bytes_equal_hashes(void **state)
{
    static const char text[] = "0123456789abcdef0123456789abcdef0123456789abcdef";
    char moved[64];

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        memcpy(moved + 3, text, n); /* at another alignment */
        assert_true(hash_bytes((struct str){text, n}) == hash_bytes((struct str){moved + 3, n}));
    }
}

static void tells_lengths_apart(void **state)
{
    static const char zeros[100] = {0};
    uint64_t h[100];

    (void)state;
    for (size_t n = 0; n < 100; n++)
        h[n] = hash_bytes((struct str){zeros, n});
    qsort(h, 100, sizeof(h[0]), by_value);
    for (size_t n = 1; n < 100; n++)
        assert_true(h[n] != h[n - 1]);
}

static void depends_on_the_key(void **state)
{
    static const char text[300] = "the same text";
    uint64_t key = process_key;

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        uint64_t one = hash_bytes((struct str){text, n});

        process_key = ~key;
        assert_true(hash_bytes((struct str){text, n}) != one);
        process_key = key;
        assert_true(hash_bytes((struct str){text, n}) == one);
    }
    assert_true(key != 0);
}

static void chains_tell_borders_and_order_apart(void **state)
{
    uint64_t ab = hash_chain(hash_bytes(STR("a")), STR("b"));

    (void)state;
    assert_true(ab == hash_chain(hash_bytes(STR("a")), STR("b")));
    assert_true(ab != hash_chain(hash_bytes(STR("b")), STR("a")));
    assert_true(ab != hash_chain(hash_bytes(STR("ab")), STR("")));
    assert_true(ab != hash_chain(hash_bytes(STR("")), STR("ab")));
    assert_true(hash_chain_u64(ab, 1) != hash_chain_u64(ab, 2));
    assert_true(hash_chain_u64(ab, 1) != hash_chain_u64(1, ab));
}

enum { FLOOD = 1024, FLOOD_CAP = 2048 };

/* How many slots past their own all names are, together: what searching for each of them costs. */
static size_t extra_probes(const struct map *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key.p)
            n += (i - m->slots[i].hash) & (m->cap - 1);
    return n;
}

static size_t extra_probes_of(char names[FLOOD][16])
{
    struct map m = {0};
    size_t n;

    for (size_t i = 0; i < FLOOD; i++)
        map_set(&m, names[i], names[i]);
    assert_int_equal(m.cap, FLOOD_CAP);
    n = extra_probes(&m);
    map_done(&m);
    return n;
}

/* Names that a sender chose for the published hash crowd into one slot of it, and spread like any others
 * with our key. */
static void withstands_a_flood_of_colliding_names(void **state)
{
    static char names[FLOOD][16];
    uint64_t key = process_key;
    size_t n = 0;

    (void)state;
    process_key = 0; /* XXH3 without a key */
    for (unsigned i = 0; n < FLOOD; i++) {
        (void)snprintf(names[n], sizeof(names[n]), "pod-%u", i);
        n += hash_bytes(str_of(names[n])) % FLOOD_CAP == 7;
    }
    assert_true(extra_probes_of(names) == (size_t)FLOOD * (FLOOD - 1) / 2);
    process_key = key;
    assert_true(extra_probes_of(names) < (size_t)2 * FLOOD);
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
        unsigned *slot = &slots[hash_bytes((struct str){name, (size_t)n}) % ARRAY_SIZE(slots)];
        most = ++*slot > most ? *slot : most;
    }
    assert_in_range(most, 10, 35); /* ten on average */
}

static void keeps_the_lasting_hash(void **state)
{
    (void)state;
    assert_true(hash_lasting(STR("")) == 0xcbf29ce484222325ull);
    assert_true(hash_lasting(STR("a")) == 0xaf63dc4c8601ec8cull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_equal_bytes_equal_hashes),
        cmocka_unit_test(tells_lengths_apart),
        cmocka_unit_test(depends_on_the_key),
        cmocka_unit_test(chains_tell_borders_and_order_apart),
        cmocka_unit_test(withstands_a_flood_of_colliding_names),
        cmocka_unit_test(spreads_similar_names),
        cmocka_unit_test(keeps_the_lasting_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
