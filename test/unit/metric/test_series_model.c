/* Thousands of rounds against a model that keeps a plain list; many series; every allocation failing. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static uint64_t random_u64(void)
{
    static uint64_t x = 0x853c49e6748fea9b;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static size_t below(size_t n)
{
    return (size_t)(random_u64() >> 20) % n;
}

enum { KEYS = 60, MAX_RESULTS = 120, ROUNDS = 6000 };

/* What each key stands for: a few labels, some of which must be escaped, and some the same in one label. */
static void labels_of(size_t key, char room[2][32], struct batch_labels *ret)
{
    static const char *const spice[] = {"", "\"", "\\", "\n", "z", "\xc3\xa4"};
    int n = snprintf(room[0], 32, "%s%zu", spice[key % 6], key % 7);
    int m = snprintf(room[1], 32, "%zu%s", key / 7, spice[key % 5]);

    *ret = (struct batch_labels){.escapes = 1u << DS_POD | 1u << DS_APP};
    ret->value[DS_POD] = (struct str){room[0], (size_t)n};
    ret->value[DS_APP] = (struct str){room[1], (size_t)m};
}

/* The name by the slowest and plainest way. */
static void model_name(size_t key, char out[512])
{
    struct batch_labels l;
    char room[2][32], *o = out;

    labels_of(key, room, &l);
    l.value[DS_CLUSTER] = STR("c1");
    l.value[DS_SCORE_NAME] = STR("cpu");
    o += sprintf(o, "dynamic_score{");
    for (size_t i = 0; i < DS_LABELS; i++) {
        o += sprintf(o, "%s%s=\"", i ? "," : "", ds_label_names[i].p);
        for (size_t k = 0; k < l.value[i].n; k++) {
            char c = l.value[i].p[k];
            if (c == '"' || c == '\\' || c == '\n')
                *o++ = '\\';
            *o++ = c == '\n' ? 'n' : c;
        }
        *o++ = '"';
    }
    (void)strcpy(o, "}");
}

struct model {
    bool has[KEYS];
    double value[KEYS];
    size_t result[KEYS]; /* that brought the value */
    char name[KEYS][512];
    struct batch *last; /* of the real thing */
    bool last_has[KEYS];
};

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static ssize_t find(const struct series_set *s, struct str name)
{
    for (size_t i = 0; i < series_count(s); i++)
        if (str_eq(series_name(s, i), name))
            return (ssize_t)i;
    return -1;
}

static void assert_labels(const struct series_set *s, size_t i, size_t key)
{
    struct batch_labels want;
    struct str got[DS_LABELS];
    char room[2][32];

    labels_of(key, room, &want);
    want.value[DS_CLUSTER] = STR("c1");
    want.value[DS_SCORE_NAME] = STR("cpu");
    series_labels(s, i, got);
    for (size_t k = 0; k < DS_LABELS; k++)
        assert_true(str_eq(got[k], want.value[k]));
}

static void compare(const struct model *m, const struct batch *b)
{
    const char *names[KEYS];
    size_t n = 0;

    for (size_t i = 0; i < KEYS; i++)
        if (m->has[i])
            names[n++] = m->name[i];
    qsort(names, n, sizeof(names[0]), by_name);
    assert_int_equal(series_count(b->set), n);
    for (size_t i = 0; i < n; i++) {
        size_t key = (size_t)(names[i] - m->name[0]) / sizeof(m->name[0]);
        assert_true(str_eq(series_name(b->set, i), str_of(names[i])));
        assert_true(b->values[i] == m->value[key]);
        assert_int_equal(b->order[i], m->result[key]);
        assert_int_equal(find(b->set, str_of(names[i])), i);
        assert_labels(b->set, i, key);
    }
    for (size_t i = 0; i < KEYS; i++)
        if (!m->has[i])
            assert_int_equal(find(b->set, str_of(m->name[i])), -1);
}

/* The keys of the next round: mostly those of the last, in the same order, shuffled, or with some changes. */
static size_t choose(const struct model *m, size_t keys[MAX_RESULTS])
{
    size_t how = below(8), n = 0;

    for (size_t i = 0; i < KEYS; i++)
        if (how == 0 ? below(2) : (m->last_has[i] ? below(30) || how < 4 : how > 4 && below(20) == 0))
            keys[n++] = i;
    if (how == 7)
        while (n > 0 && n < MAX_RESULTS && below(4))
            keys[n] = keys[below(n)], n++;
    if (how & 1)
        for (size_t i = n; i > 1; i--) {
            size_t k = below(i), was = keys[i - 1];
            keys[i - 1] = keys[k];
            keys[k] = was;
        }
    return n;
}

static void one_round(struct batch_builder *b, struct model *m)
{
    size_t keys[MAX_RESULTS], n = choose(m, keys), duplicates = 0, got_duplicates = 0;
    size_t abandon_at = below(10) ? SIZE_MAX : below(n + 1);
    struct batch *batch = NULL;

    memset(m->has, 0, sizeof(m->has));
    batch_begin(b, 0, 0);
    for (size_t i = 0; i < n; i++) {
        struct batch_labels l;
        char room[2][32];
        if (i == abandon_at) {
            batch_abandon(b);
            return;
        }
        labels_of(keys[i], room, &l);
        duplicates += m->has[keys[i]];
        m->has[keys[i]] = true;
        m->result[keys[i]] = i;
        m->value[keys[i]] = (double)(random_u64() >> 40);
        assert_int_equal(batch_add(b, &l, m->value[keys[i]]), 0);
    }
    batch_seal(b, (unix_ms){7}, &batch, &got_duplicates);
    assert_int_equal(got_duplicates, duplicates);
    compare(m, batch);
    if (m->last)
        assert_int_equal(m->last->set == batch->set, memcmp(m->has, m->last_has, sizeof(m->has)) == 0);
    memcpy(m->last_has, m->has, sizeof(m->has));
    (void)batch_unref(m->last);
    m->last = batch;
}

static void agrees_with_a_plain_list(void **state)
{
    static struct model m;
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;

    (void)state;
    for (size_t i = 0; i < KEYS; i++)
        model_name(i, m.name[i]);
    b = batch_builder_new("c1", "cpu", 1000000);
    for (size_t i = 0; i < ROUNDS; i++)
        one_round(b, &m);
    m.last = batch_unref(m.last);
}

/* CPU seconds for three rounds of n series in an order that is far from sorted: new, again, shuffled and
 * half new. */
static double time_rounds(size_t n)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    clock_t began = clock();

    b = batch_builder_new("c1", "cpu", 1000000);
    for (size_t round = 0; round < 3; round++) {
        CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
        batch_begin(b, 0, 0);
        for (size_t i = 0; i < n; i++) {
            char pod[32];
            size_t k = i * 7919 % n + (round == 2 ? n / 2 : 0);
            struct batch_labels l = {.value[DS_NODE] = STR("node-1")};
            l.value[DS_POD] = (struct str){pod, (size_t)snprintf(pod, sizeof(pod), "pod-%zu", k)};
            assert_int_equal(batch_add(b, &l, (double)k), 0);
        }
        batch_seal(b, (unix_ms){0}, &batch, NULL);
        assert_int_equal(series_count(batch->set), n);
    }
    return (double)(clock() - began) / CLOCKS_PER_SEC;
}

/* Five times the series may take five times the time and somewhat more, not twenty-five times. */
static void costs_in_proportion_to_the_series(void **state)
{
    double some = time_rounds(20000), many = time_rounds(100000);

    (void)state;
    assert_true(many < some * 14 + 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_plain_list),
        cmocka_unit_test(costs_in_proportion_to_the_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
