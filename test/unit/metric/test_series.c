#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = batch_builder_new("c1", "cpu", 1000);
    return 0;
}

static int teardown(void **state)
{
    *state = batch_builder_free(*state);
    return 0;
}

static ssize_t find(const struct series_set *s, struct str name)
{
    for (size_t i = 0; i < series_count(s); i++)
        if (str_eq(series_name(s, i), name))
            return (ssize_t)i;
    return -1;
}

static int add(struct batch_builder *b, const char *node, const char *meta, double value)
{
    struct batch_labels l = {.escapes = 1u << DS_META};

    l.value[DS_NODE] = str_of(node);
    l.value[DS_META] = str_of(meta);
    return batch_add(b, &l, value);
}

/* One batch of the nodes in `nodes` (one letter each), with values 0, 1, 2, ... plus `from`. */
static struct batch *round_of(struct batch_builder *b, const char *nodes, double from, size_t *duplicates)
{
    struct batch *batch = NULL;

    batch_begin(b, 0, 0);
    for (size_t i = 0; nodes[i]; i++)
        assert_int_equal(add(b, (char[]){nodes[i], '\0'}, "", from + (double)i), 0);
    batch_seal(b, (unix_ms){12345}, &batch, duplicates);
    assert_int_equal(batch->at.ms, 12345);
    assert_string_equal(batch->score_name, "cpu");
    return batch;
}

/* Compares with "a=1 b=2", nodes in the order of the set. */
static void assert_batch(const struct batch *b, const char *want)
{
    BUF_AUTO(got, 4096);

    for (size_t i = 0; i < series_count(b->set); i++) {
        struct str labels[DS_LABELS];
        series_labels(b->set, i, labels);
        buf_printf(&got, "%s%.*s=%g", i ? " " : "", STR_ARG(labels[DS_NODE]), b->values[i]);
        assert_int_equal(buf_failed(&got), 0);
    }
    buf_putc(&got, '\0');
    assert_int_equal(buf_failed(&got), 0);
    assert_string_equal(got.p, want);
}

static void renders_every_label_of_a_name(void **state)
{
    struct batch_builder *b = *state;
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    struct batch_labels l = {.value = {[DS_APP] = STR("app"),
                                       [DS_CONTAINER] = STR("co"),
                                       [DS_DEVICE] = STR("gpu0"),
                                       [DS_META] = STR("m"),
                                       [DS_NAMESPACE] = STR("ns"),
                                       [DS_NODE] = STR("n"),
                                       [DS_POD] = STR("p"),
                                       /* The builder's own win. */
                                       [DS_CLUSTER] = STR("elsewhere"),
                                       [DS_SCORE_NAME] = STR("other")}};

    batch_begin(b, 0, 0);
    assert_int_equal(batch_add(b, &(struct batch_labels){.escapes = 0}, 1), 0);
    assert_int_equal(batch_add(b, &l, 2), 0);
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    assert_true(
        str_eq(series_name(batch->set, 0),
               STR("dynamic_score{ds_app=\"\",ds_cluster=\"c1\",ds_container=\"\",ds_device=\"\","
                   "ds_meta=\"\",ds_namespace=\"\",ds_node=\"\",ds_pod=\"\",ds_score_name=\"cpu\"}")));
    assert_true(
        str_eq(series_name(batch->set, 1),
               STR("dynamic_score{ds_app=\"app\",ds_cluster=\"c1\",ds_container=\"co\",ds_device=\"gpu0\","
                   "ds_meta=\"m\",ds_namespace=\"ns\",ds_node=\"n\",ds_pod=\"p\",ds_score_name=\"cpu\"}")));
    assert_int_equal(series_names_bytes(batch->set),
                     series_name(batch->set, 0).n + series_name(batch->set, 1).n);
}

static void keeps_the_label_tables_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < DS_LABELS; i++) {
        assert_int_equal(ds_label_names[i].n, strlen(ds_label_names[i].p));
        assert_int_equal(ds_label_sources[i].n, strlen(ds_label_sources[i].p ? ds_label_sources[i].p : ""));
        if (i)
            assert_true(str_cmp(ds_label_names[i - 1], ds_label_names[i]) < 0);
        if (ds_label_sources[i].n)
            assert_true(
                str_eq((struct str){ds_label_names[i].p + 3, ds_label_names[i].n - 3}, ds_label_sources[i]));
        else
            assert_true(i == DS_CLUSTER || i == DS_SCORE_NAME);
    }
}

static void sorts_the_first_batch(void **state)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = round_of(*state, "cabed", 0, NULL);

    assert_batch(batch, "a=1 b=2 c=0 d=4 e=3");
    for (size_t i = 1; i < series_count(batch->set); i++)
        assert_true(str_cmp(series_name(batch->set, i - 1), series_name(batch->set, i)) < 0);
    for (size_t i = 0; i < series_count(batch->set); i++)
        assert_int_equal(find(batch->set, series_name(batch->set, i)), i);
    assert_int_equal(find(batch->set, STR("dynamic_score{}")), -1);
    assert_int_equal(find(batch->set, STR("")), -1);
}

static void shares_one_set_between_equal_rounds(void **state)
{
    CLEANUP(cleanup_batch_unref) struct batch *first = round_of(*state, "cab", 0, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *second = round_of(*state, "cab", 10, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *shuffled = round_of(*state, "abc", 20, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *twice = round_of(*state, "bcaab", 30, NULL);

    assert_ptr_equal(first->set, second->set);
    assert_ptr_equal(first->set, shuffled->set);
    assert_ptr_equal(first->set, twice->set);
    assert_batch(first, "a=1 b=2 c=0"); /* batches do not change once sealed */
    assert_batch(second, "a=11 b=12 c=10");
    assert_batch(shuffled, "a=20 b=21 c=22");
    assert_batch(twice, "a=33 b=34 c=31");
}

static void follows_series_that_come_and_go(void **state)
{
    CLEANUP(cleanup_batch_unref) struct batch *first = round_of(*state, "bdf", 0, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *come = round_of(*state, "bdfe", 10, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *gone = round_of(*state, "dfe", 20, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *both = round_of(*state, "zfea", 30, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *other = round_of(*state, "qr", 40, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *none = round_of(*state, "", 50, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *again = round_of(*state, "", 60, NULL);
    CLEANUP(cleanup_batch_unref) struct batch *back = round_of(*state, "bdf", 70, NULL);

    assert_batch(first, "b=0 d=1 f=2");
    assert_batch(come, "b=10 d=11 e=13 f=12");
    assert_batch(gone, "d=20 e=22 f=21");
    assert_batch(both, "a=33 e=32 f=31 z=30");
    assert_batch(other, "q=40 r=41");
    assert_batch(none, "");
    assert_ptr_equal(none->set, again->set);
    assert_batch(back, "b=70 d=71 f=72");
    assert_ptr_not_equal(back->set, first->set);
}

static void keeps_the_last_of_duplicates(void **state)
{
    size_t duplicates = 99;
    struct batch *b = round_of(*state, "abab", 0, &duplicates);

    assert_batch(b, "a=2 b=3");
    assert_int_equal(duplicates, 2);
    (void)batch_unref(b);
    b = round_of(*state, "abcacaa", 10, &duplicates); /* of known and of fresh ones */
    assert_batch(b, "a=16 b=11 c=14");
    assert_int_equal(duplicates, 4);
    (void)batch_unref(b);
    b = round_of(*state, "abc", 20, &duplicates);
    assert_int_equal(duplicates, 0);
    (void)batch_unref(b);
}

static void refuses_more_than_max_series(void **state)
{
    struct batch_builder *b = *state;
    struct batch *batch;

    batch_builder_set_max(b, 2);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "a", "", 1), 0);
    assert_int_equal(add(b, "b", "", 1), 0);
    assert_int_equal(add(b, "a", "", 1), 0); /* no series of its own */
    assert_int_equal(add(b, "c", "", 1), -ENOSPC);
    batch_abandon(b);
    batch = round_of(b, "ab", 0, NULL);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "c", "", 1), 0); /* those of the last batch count only when seen again */
    assert_int_equal(add(b, "a", "", 1), 0);
    assert_int_equal(add(b, "b", "", 1), -ENOSPC);
    batch_abandon(b);
    batch_builder_set_max(b, 0);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "a", "", 1), -ENOSPC);
    (void)batch_unref(batch);
}

static void forgets_an_abandoned_batch(void **state)
{
    struct batch_builder *b = *state;
    CLEANUP(cleanup_batch_unref) struct batch *first = NULL, *second = NULL;

    batch_abandon(b); /* none was begun */
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "lost", "", 1), 0);
    batch_abandon(b);
    first = round_of(b, "abc", 0, NULL);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "b", "", 100), 0);
    assert_int_equal(add(b, "lost", "", 100), 0);
    batch_abandon(b);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "lost", "", 100), 0);
    second = round_of(b, "cba", 10, NULL); /* drops the one begun */
    assert_ptr_equal(first->set, second->set);
    assert_batch(second, "a=12 b=11 c=10");
}

enum { CHURN_SERIES = 300, CHURN_ROUNDS = 200, CHURN_KEPT = 7 };

/* Series i of a round is of that round if i is its turn to change, else of the last such round. */
static struct batch *churned_round(struct batch_builder *b, int round, int names[CHURN_SERIES])
{
    struct batch *batch = NULL;

    names[round * 7 % CHURN_SERIES] = round;
    batch_begin(b, 0, 0);
    for (int i = 0; i < CHURN_SERIES; i++) {
        char node[32];
        (void)snprintf(node, sizeof(node), "%03d-%d", i, names[i]);
        assert_int_equal(add(b, node, "a\"b", names[i]), 0);
    }
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    return batch;
}

static void assert_churned(const struct batch *b, const int names[CHURN_SERIES])
{
    assert_int_equal(series_count(b->set), CHURN_SERIES);
    for (int i = 0; i < CHURN_SERIES; i++) {
        struct str labels[DS_LABELS];
        char node[32];
        (void)snprintf(node, sizeof(node), "%03d-%d", i, names[i]);
        series_labels(b->set, (size_t)i, labels);
        assert_true(str_eq(labels[DS_NODE], str_of(node)) && str_eq(labels[DS_META], STR("a\"b")));
        assert_true(b->values[i] == names[i]);
    }
}

/* Sets share the texts of their series for a while: whichever ends first, the others are whole. */
static void keeps_batches_whole_while_series_change(void **state)
{
    static int names[CHURN_ROUNDS][CHURN_SERIES];
    struct batch *kept[CHURN_KEPT] = {NULL};
    int of[CHURN_KEPT] = {0};

    for (int round = 0; round < CHURN_ROUNDS; round++) {
        size_t k = (size_t)(round * round) % CHURN_KEPT;
        if (round)
            memcpy(names[round], names[round - 1], sizeof(names[0]));
        (void)batch_unref(kept[k]);
        kept[k] = churned_round(*state, round, names[round]);
        of[k] = round;
        for (size_t i = 0; i < CHURN_KEPT; i++)
            if (kept[i])
                assert_churned(kept[i], names[of[i]]);
    }
    for (size_t i = 0; i < CHURN_KEPT; i++)
        (void)batch_unref(kept[i]);
}

static void lets_batches_outlive_the_builder(void **state)
{
    struct batch_builder *b = NULL;
    struct batch *batch;
    struct series_set *set;

    (void)state;
    b = batch_builder_new("c1", "cpu", 1000);
    batch = round_of(b, "ab", 0, NULL);
    assert_null(batch_builder_free(b));
    assert_batch(batch_ref(batch), "a=0 b=1");
    set = series_set_ref(batch->set);
    assert_null(batch_unref(batch));
    assert_batch(batch, "a=0 b=1");
    assert_null(batch_unref(batch));
    assert_int_equal(series_count(set), 2);
    assert_null(series_set_unref(set));
    assert_null(series_set_unref(NULL));
    assert_null(batch_unref(NULL));
    assert_null(batch_builder_free(NULL));
}

static void escapes_names_and_returns_plain_values(void **state)
{
    static const struct {
        struct str plain, escaped;
    } cases[] = {
        {STR(""), STR("")},
        {STR("plain"), STR("plain")},
        {STR("\\"), STR("\\\\")},
        {STR("\""), STR("\\\"")},
        {STR("\n"), STR("\\n")},
        {STR("\\n"), STR("\\\\n")},
        {STR("\\\"\n"), STR("\\\\\\\"\\n")},
        {STR("\",ds_node=\"x"), STR("\\\",ds_node=\\\"x")},
        {STR("} 5\ndynamic_score 1"), STR("} 5\\ndynamic_score 1")},
        {STR("a\\"), STR("a\\\\")},
        {STR("\t\r\x7f\xc3\xa4"), STR("\t\r\x7f\xc3\xa4")},
    };
    struct batch_builder *b = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
        struct str labels[DS_LABELS];
        struct batch_labels l = {.escapes = 1u << DS_META | 1u << DS_POD, .value[DS_META] = cases[i].plain};
        l.value[DS_POD] = cases[i].plain;
        batch_begin(b, 0, 0);
        assert_int_equal(batch_add(b, &l, 0), 0);
        batch_seal(b, (unix_ms){0}, &batch, NULL);
        BUF_AUTO(want, 256);
        buf_printf(&want, "ds_meta=\"%s\",", cases[i].escaped.p);
        assert_int_equal(buf_failed(&want), 0);
        assert_non_null(memmem(series_name(batch->set, 0).p, series_name(batch->set, 0).n, want.p, want.n));
        series_labels(batch->set, 0, labels);
        assert_true(str_eq(labels[DS_META], cases[i].plain));
        assert_true(str_eq(labels[DS_POD], cases[i].plain));
        assert_true(str_eq(labels[DS_CLUSTER], STR("c1")) && str_eq(labels[DS_SCORE_NAME], STR("cpu")));
        assert_true(str_eq(labels[DS_NODE], STR("")));
    }
}

static void escapes_the_own_labels(void **state)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    struct str labels[DS_LABELS];

    (void)state;
    b = batch_builder_new("c\"\\\n", "s\"", 10);
    batch_begin(b, 0, 0);
    assert_int_equal(add(b, "n", "", 0), 0);
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    series_labels(batch->set, 0, labels);
    assert_true(str_eq(labels[DS_CLUSTER], STR("c\"\\\n")));
    assert_true(str_eq(labels[DS_SCORE_NAME], STR("s\"")));
    assert_true(str_eq(labels[DS_NODE], STR("n")));
    assert_true(
        str_eq(series_name(batch->set, 0),
               STR("dynamic_score{ds_app=\"\",ds_cluster=\"c\\\"\\\\\\n\",ds_container=\"\",ds_device=\"\","
                   "ds_meta=\"\",ds_namespace=\"\",ds_node=\"n\",ds_pod=\"\",ds_score_name=\"s\\\"\"}")));
    assert_string_equal(batch->score_name, "s\"");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renders_every_label_of_a_name),
        TEST(keeps_the_label_tables_consistent),
        TEST(sorts_the_first_batch),
        TEST(shares_one_set_between_equal_rounds),
        TEST(follows_series_that_come_and_go),
        TEST(keeps_the_last_of_duplicates),
        TEST(refuses_more_than_max_series),
        TEST(forgets_an_abandoned_batch),
        TEST(keeps_batches_whole_while_series_change),
        TEST(lets_batches_outlive_the_builder),
        TEST(escapes_names_and_returns_plain_values),
        TEST(escapes_the_own_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
