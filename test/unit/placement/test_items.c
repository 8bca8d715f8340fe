#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"

#include "test/unit/placement/placement_world.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static struct items make(const struct result *results, size_t n, const struct summary *s)
{
    CLEANUP(cleanup_batch_unref) struct batch *b = batch_of(s->score_name, results, n);

    return items_make(b, s, &(struct adjuster){0});
}

static void assert_json(const struct items *i, const char *want)
{
    if (!str_eq(buf_str(&i->json), str_of(want)))
        fail_msg("got %.*s\nexpected %s", STR_ARG(buf_str(&i->json)), want);
}

static void floors_and_clamps_values(void **state)
{
    static const struct {
        double score;
        int want;
        bool clamped;
    } cases[] = {
        {0, 0, false},
        {-0.0, 0, false},
        {0.99, 0, false},
        {-0.01, -1, false},
        {-0.5, -1, false},
        {100, 100, false},
        {100.9, 100, false},
        {101, 100, true},
        {-100, -100, false},
        {-100.1, -100, true},
        {1e300, 100, true},
        {-1e300, -100, true},
        {2147483648.0, 100, true},
        {5e-324, 0, false},
    };
    struct summary s = summary_of("cpu", "x");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct items got = make(&(struct result){"n", "p", cases[i].score}, 1, &s);
        char want[64];

        (void)snprintf(want, sizeof(want), "[{\"name\":\"x\",\"value\":%d}]", cases[i].want);
        assert_json(&got, want);
        assert_int_equal(got.clamped, cases[i].clamped);
        items_done(&got);
    }
}

static void scales_a_range(void **state)
{
    static const struct {
        double min, max, score;
        int want;
        bool clamped;
    } cases[] = {
        {0, 1, 0, -100, false},
        {0, 1, 1, 100, false},
        {0, 1, 0.5, 0, false},
        {0, 1, 0.3, -40, false},
        {0, 1, 1.1, 100, true},
        {0, 1, -0.1, -100, true},
        {-50, 50, 0, 0, false},
        {0, 3, 1, -34, false},
        {0, 0.3, 0.3, 100, false},
        {0.1, 0.7, 0.7, 100, false},
        {1, 1e300, 1e300, 100, false},
        /* Less is better. */
        {10, 0, 0, 100, false},
        {10, 0, 10, -100, false},
        {10, 0, 2.5, 50, false},
        {10, 0, 11, -100, true},
        {0.7, 0.1, 0.1, 100, false},
        {1, -1, 3, -100, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summary s = summary_of("cpu", "x");
        struct items got;
        char want[64];

        s.has_range = true;
        s.range_min = cases[i].min;
        s.range_max = cases[i].max;
        got = make(&(struct result){"n", "p", cases[i].score}, 1, &s);
        (void)snprintf(want, sizeof(want), "[{\"name\":\"x\",\"value\":%d}]", cases[i].want);
        assert_json(&got, want);
        assert_int_equal(got.clamped, cases[i].clamped);
        items_done(&got);
    }
}

static void compares_the_items_of_two_rounds(void **state)
{
    static const struct {
        double a, b;        /* of one node */
        const char *second; /* the other node of the second round */
        int tolerance;
        bool are_near;
    } cases[] = {
        {10, 15, "n2", 5, true},      {10, 15.9, "n2", 5, true}, {10, 16, "n2", 5, false},
        {15, 10, "n2", 5, true},      {16, 10, "n2", 5, false},  {-100, -50, "n2", 50, true},
        {-100, 100, "n2", 50, false}, {10, 10, "n3", 50, false}, {10, 10, "", 50, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summary s = summary_of("cpu", "${node}");
        struct items a, b;

        s.score_tolerance = cases[i].tolerance;
        a = make((const struct result[]){{"n1", "p", cases[i].a}, {"n2", "p", 0}}, 2, &s);
        b = make((const struct result[]){{"n1", "p", cases[i].b}, {cases[i].second, "p", 0}},
                 *cases[i].second ? 2 : 1, &s);
        assert_int_equal(items_are_near(&a, &b, cases[i].tolerance), cases[i].are_near);
        assert_int_equal(items_are_near(&b, &a, cases[i].tolerance), cases[i].are_near);
        items_done(&a);
        items_done(&b);
    }
}

static void leaves_out_nan_and_infinities(void **state)
{
    static const struct result results[] = {
        {"a", "", NAN}, {"b", "", 1}, {"c", "", INFINITY}, {"d", "", -INFINITY}, {"e", "", -2}};
    struct summary s = summary_of("cpu", "${node}");
    struct items got = make(results, ARRAY_SIZE(results), &s);

    (void)state;
    assert_json(&got, "[{\"name\":\"b\",\"value\":1},{\"name\":\"e\",\"value\":-2}]");
    assert_int_equal(got.left_out, 3);
    assert_int_equal(got.n, 2);
    items_done(&got);
}

/* The order of the answer counts, not that of the labels. */
static void aggregates_results_of_one_name(void **state)
{
    static const struct result results[] = {{"z", "p", 10},  {"m", "p", 40},  {"b", "q", 7},
                                            {"q", "p", NAN}, {"a", "p", 5.5}, {"c", "p", 20}};
    static const struct {
        enum score_aggregation how;
        int want;
    } cases[] = {{AGGREGATE_LAST, 20},
                 {AGGREGATE_AVG, 18},
                 {AGGREGATE_MAX, 40},
                 {AGGREGATE_MIN, 5},
                 {AGGREGATE_SUM, 75}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summary s = summary_of("cpu", "${pod}");
        struct items got;
        char want[128];

        s.items[0].aggregation = cases[i].how;
        got = make(results, ARRAY_SIZE(results), &s);
        (void)snprintf(want, sizeof(want), "[{\"name\":\"p\",\"value\":%d},{\"name\":\"q\",\"value\":7}]",
                       cases[i].want);
        assert_json(&got, want);
        assert_int_equal(got.merged, 3);
        items_done(&got);
    }
}

/* Rounds after the first take another way through the batch builder. */
static void keeps_the_order_of_results_across_rounds(void **state)
{
    static const char *const rounds[] = {"ab", "ba", "ab", "abc", "cab", "ba"};
    struct summary s = summary_of("cpu", "x");
    struct batch_builder *b;

    (void)state;
    b = batch_builder_new("c1", "cpu", 10);
    for (size_t i = 0; i < ARRAY_SIZE(rounds); i++) {
        struct batch *batch;
        struct items got;
        char want[64];

        batch_begin(b, 0, 0);
        for (size_t k = 0; rounds[i][k]; k++) {
            struct batch_labels l = {.value = {[DS_NODE] = {&rounds[i][k], 1}}};
            assert_int_equal(batch_add(b, &l, rounds[i][k]), 0);
        }
        batch_seal(b, (unix_ms){0}, &batch, NULL);
        got = items_make(batch, &s, &(struct adjuster){0});
        (void)snprintf(want, sizeof(want), "[{\"name\":\"x\",\"value\":%d}]",
                       rounds[i][strlen(rounds[i]) - 1]);
        assert_json(&got, want);
        items_done(&got);
        (void)batch_unref(batch);
    }
    (void)batch_builder_free(b);
}

static void skips_empty_names_and_escapes_others(void **state)
{
    static const struct result results[] = {{"", "", 1}, {"a\"\\\n\x01", "", 2}, {"\xc3\xa9", "", 3}};
    struct summary s = summary_of("cpu", "${node}");
    struct items got = make(results, ARRAY_SIZE(results), &s);

    (void)state;
    assert_json(&got, "[{\"name\":\"a\\\"\\\\\\n\\u0001\",\"value\":2},{\"name\":\"\xc3\xa9\",\"value\":3}]");
    assert_int_equal(got.unnamed, 1);
    items_done(&got);
}

/* Names of n bytes: `fill`, and the number at the end. */
static struct result *many(size_t n, size_t bytes, char fill)
{
    struct result *list = calloc(n, sizeof(*list));
    char *text = malloc(n * (bytes + 1));

    assert_non_null(list);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        char *name = text + i * (bytes + 1);
        memset(name, fill, bytes);
        (void)snprintf(name + bytes - 6, 7, "%06zu", i % 1000000);
        list[i] = (struct result){name, "", (double)(i % 300) - 150};
    }
    return list;
}

static void free_many(struct result *list)
{
    free((char *)(uintptr_t)list[0].node);
    free(list);
}

static void makes_twenty_thousand_items_fast(void **state)
{
    struct result *list = many(20000, 40, 'x');
    struct summary s = summary_of("cpu", "${node}");
    struct batch *b = batch_of("cpu", list, 20000);
    struct timespec t0, t1;
    struct items got;

    (void)state;
    (void)clock_gettime(CLOCK_MONOTONIC, &t0);
    got = items_make(b, &s, &(struct adjuster){0});
    (void)clock_gettime(CLOCK_MONOTONIC, &t1);
    print_message("20,000 items: %.1f ms, %zu bytes\n",
                  (double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e6,
                  got.json.n);
    assert_int_equal(got.n, 20000);
    assert_int_equal(got.truncated, 0);
    assert_true(got.clamped > 0);
    items_done(&got);
    (void)batch_unref(b);
    free_many(list);
}

/* What the store writes longer counts as long as it is there. */
static void counts_items_that_exceed_the_limit(void **state)
{
    static const char fills[] = {'x', '<', '&'};

    (void)state;
    for (size_t k = 0; k < sizeof(fills); k++) {
        struct result *list = many(30000, 40, fills[k]);
        struct summary s = summary_of("cpu", "${node}");
        struct items got = make(list, 30000, &s);
        size_t bytes = got.json.n + (fills[k] == 'x' ? 0 : got.n * 34 * 5);

        assert_true(got.truncated > 0);
        assert_int_equal(got.n + got.truncated, 30000);
        assert_in_range(bytes, ITEMS_MAX_BYTES - 300, ITEMS_MAX_BYTES);
        assert_int_equal(got.json.p[got.json.n - 1], ']');
        assert_int_equal(got.json.p[got.json.n - 2], '}');
        items_done(&got);
        free_many(list);
    }
}

static void refills_names_with_another_value(void **state)
{
    static const char list[] = "[{\"value\":5,\"name\":\"a\\\"b\"},{\"name\":\"\",\"value\":1},{\"value\":7},"
                               "{\"name\":\"c\",\"value\":-3}]";
    json_t *found = json_loads(list, 0, NULL);
    struct summary s = summary_of("cpu", "${node}");
    struct items got;

    (void)state;
    s.fallback = -100;
    got = items_fallback(NULL, found, &s, "c1", &(struct adjuster){0});
    assert_json(&got, "[{\"name\":\"a\\\"b\",\"value\":-100},{\"name\":\"c\",\"value\":-100}]");
    assert_int_equal(got.n, 2);
    items_done(&got);
    json_decref(found);
}

static void makes_a_single_item_without_series(void **state)
{
    static const struct {
        const char *format, *want;
    } cases[] = {
        {"${scoreName}", "[{\"name\":\"cpu\",\"value\":-7}]"},
        {"${cluster}-x", "[{\"name\":\"c1-x\",\"value\":-7}]"},
        {"${node}", "[]"},
        {"${scoreName}${pod}", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summary s = summary_of("cpu", cases[i].format);
        struct items got;

        s.fallback = -7;
        got = items_fallback(NULL, NULL, &s, "c1", &(struct adjuster){0});
        assert_json(&got, cases[i].want);
        items_done(&got);
    }
}

static void makes_the_items_of_several_formats(void **state)
{
    static const struct result results[] = {
        {"a", "p", 10}, {"b", "p", 0.5}, {"c1", "q", 3}, {"", "q", 1}, {"p", "q", NAN}};
    struct summary s = summary_of("cpu", "${cluster}");
    struct items got;

    (void)state;
    s.items[0].aggregation = AGGREGATE_MAX;
    s.items[s.n_items++] = (struct summary_item){(char *)"${node}", AGGREGATE_LAST};
    s.items[s.n_items++] = (struct summary_item){(char *)"${pod}", AGGREGATE_AVG};
    got = make(results, ARRAY_SIZE(results), &s);
    assert_json(&got, "[{\"name\":\"a\",\"value\":10},{\"name\":\"b\",\"value\":0},"
                      "{\"name\":\"c1\",\"value\":10},{\"name\":\"p\",\"value\":5},"
                      "{\"name\":\"q\",\"value\":2}]");
    assert_int_equal(got.left_out, 1);
    assert_int_equal(got.unnamed, 1);
    assert_int_equal(got.merged, 3 + 0 + 2);
    assert_true(got.formats[0].n == 1 && got.formats[0].results == 4);
    assert_true(got.formats[1].n == 2 && got.formats[1].results == 2);
    assert_true(got.formats[2].n == 2 && got.formats[2].results == 4);
    assert_int_equal(got.formats[1].rounding.zeroed, 1);
    assert_int_equal(got.formats[2].rounding.zeroed, 0);
    assert_true(got.overlap.results == 1 && got.overlap.earlier == 0 && got.overlap.later == 1);
    assert_string_equal(got.overlap.name, "c1");
    items_done(&got);
    s.fallback = -7;
    s.items[2].format = (char *)"c1";
    got = items_fallback(NULL, NULL, &s, "c1", &(struct adjuster){0});
    assert_json(&got, "[{\"name\":\"c1\",\"value\":-7}]");
    items_done(&got);
    s.items[2].format = (char *)"${cluster}-x";
    got = items_fallback(NULL, NULL, &s, "c1", &(struct adjuster){0});
    assert_json(&got, "[{\"name\":\"c1\",\"value\":-7},{\"name\":\"c1-x\",\"value\":-7}]");
    items_done(&got);
}

/* Node "n" is truncated in all, from what `uncut` says by a letter; each has a pod of its own. */
static struct items make_truncated(const char *uncut, const struct summary *s)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;

    b = batch_builder_new("c1", "cpu", 100);
    batch_begin(b, 0, 0);
    for (size_t i = 0; uncut[i]; i++) {
        uint32_t hash[DS_LABELS] = {[DS_NODE] = (uint32_t)uncut[i]};
        struct batch_labels l = {.uncut = uncut[i] == '.' ? NULL : hash};

        l.value[DS_NODE] = STR("n");
        l.value[DS_POD] = (struct str){"abcdefgh" + i, 1};
        assert_int_equal(batch_add(b, &l, 1), 0);
    }
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    return items_make(batch, s, &(struct adjuster){0});
}

static void counts_results_that_truncated_labels_make_one_item(void **state)
{
    static const struct {
        const char *uncut, *format;
        size_t merged, by_cut;
    } cases[] = {
        {"xy", "${node}", 1, 1},       {"xx", "${node}", 1, 0},    {"..", "${node}", 1, 0},
        {".x", "${node}", 1, 1},       {"x.", "${node}", 1, 1},    {"xxy", "${cluster}-${node}", 2, 1},
        {"xy", "${node}${pod}", 0, 0}, {"xy", "${cluster}", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct summary s = summary_of("cpu", cases[i].format);
        struct items got = make_truncated(cases[i].uncut, &s);

        if (got.merged != cases[i].merged || got.merged_by_cut != cases[i].by_cut)
            fail_msg("%s, %s: %zu merged, %zu by truncation", cases[i].uncut, cases[i].format, got.merged,
                     got.merged_by_cut);
        items_done(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_results_that_truncated_labels_make_one_item),
        cmocka_unit_test(floors_and_clamps_values),
        cmocka_unit_test(scales_a_range),
        cmocka_unit_test(compares_the_items_of_two_rounds),
        cmocka_unit_test(leaves_out_nan_and_infinities),
        cmocka_unit_test(aggregates_results_of_one_name),
        cmocka_unit_test(keeps_the_order_of_results_across_rounds),
        cmocka_unit_test(skips_empty_names_and_escapes_others),
        cmocka_unit_test(makes_twenty_thousand_items_fast),
        cmocka_unit_test(counts_items_that_exceed_the_limit),
        cmocka_unit_test(refills_names_with_another_value),
        cmocka_unit_test(makes_a_single_item_without_series),
        cmocka_unit_test(makes_the_items_of_several_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
