#include "exporter/base/clock.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/ui/ranking.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct batch *make_batch(const double *values, size_t n)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    const struct batch_options o = {.cluster_name = "c1", .score_name = "s", .max_series = 1000000};
    struct batch *ret;
    char name[32];

    assert_int_equal(batch_builder_new(&b, &o), 0);
    assert_int_equal(batch_begin(b), 0);
    for (size_t i = 0; i < n; i++) {
        struct batch_labels labels = {.escapes = (1u << DS_LABELS) - 1};

        (void)snprintf(name, sizeof(name), "n%06zu", i);
        labels.value[DS_NODE] = str_of(name);
        labels.value[DS_POD] = i ? STR("") : STR("a\"\\b");
        assert_int_equal(batch_add(b, &labels, values[i]), 0);
    }
    assert_int_equal(batch_seal(b, (unix_ms){1}, &ret, NULL), 0);
    return ret;
}

static void ranks_scores(void **state)
{
    const double values[] = {3, NAN, -INFINITY, 3, INFINITY, -0.0, 0, NAN};
    CLEANUP(cleanup_batch_unref) struct batch *b = make_batch(values, ARRAY_SIZE(values));
    const size_t high[] = {4, 0, 3, 5}, low[] = {2, 5, 6, 0};
    struct ranking r;

    (void)state;
    rank_scores(b, 4, &r);
    assert_int_equal(r.numbers, 6);
    assert_int_equal(r.nans, 2);
    assert_int_equal(r.n, 4);
    assert_memory_equal(r.highest, high, sizeof(high));
    assert_memory_equal(r.lowest, low, sizeof(low));
    rank_scores(NULL, 4, &r);
    assert_int_equal(r.numbers + r.nans + r.n, 0);
}

static void ranks_many_scores(void **state)
{
    enum { N = 100000 };
    CLEANUP(cleanup_free) double *values = calloc(N, sizeof(double));
    CLEANUP(cleanup_batch_unref) struct batch *b = NULL;
    struct ranking r;

    (void)state;
    for (size_t i = 0; i < N; i++)
        values[i] = (double)(i * 7919 % N); /* each value once */
    b = make_batch(values, N);
    rank_scores(b, RANKED_MAX, &r);
    assert_int_equal(r.n, RANKED_MAX);
    for (size_t i = 0; i < RANKED_MAX; i++) {
        assert_true(b->values[r.highest[i]] == (double)(N - 1 - i));
        assert_true(b->values[r.lowest[i]] == (double)i);
    }
}

static void shows_only_labels_that_are_set(void **state)
{
    CLEANUP(cleanup_batch_unref) struct batch *b = make_batch((const double[]){1, 2}, 2);
    struct shown_label labels[SHOWN_LABELS];

    (void)state;
    assert_int_equal(shown_labels(b, 1, labels), 1);
    assert_string_equal(labels[0].name, "node");
    assert_true(str_eq(labels[0].value, STR("n000001")));
    assert_int_equal(shown_labels(b, 0, labels), 2);
    assert_string_equal(labels[1].name, "pod");
    assert_int_equal(labels[1].place, 3);
    assert_true(str_eq(labels[1].value, STR("a\"\\b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_scores),
        cmocka_unit_test(ranks_many_scores),
        cmocka_unit_test(shows_only_labels_that_are_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
