#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/promql/promql.h"
#include "exporter/tsdb/tsdb.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { T0 = 1000000, STEP = 15000 };

static unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){T0 + 3600 * 1000};
}

static const struct clock fixed_clock = {.wall = fixed_wall};

/* A store with the series of a test: "m;a=1" and values from T0 on, STEP apart, "_" for none and "s" for a
 * stale marker. */
struct line {
    const char *series, *values;
};

static double value_of(const char *word)
{
    uint64_t bits = TSDB_STALE_BITS;
    double v = strtod(word, NULL);

    if (*word == 's')
        memcpy(&v, &bits, sizeof(v));
    return v;
}

static uint64_t add_series(struct tsdb *t, char *text)
{
    struct tsdb_label labels[8];
    size_t n = 0;
    uint64_t ref = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, ";", &rest); word; word = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(word, '=');

        if (value)
            *value++ = '\0';
        labels[n++] = value ? (struct tsdb_label){str_of(word), str_of(value)}
                            : (struct tsdb_label){STR("__name__"), str_of(word)};
    }
    assert_int_equal(tsdb_ref(t, labels, n, &ref), TSDB_OK);
    return ref;
}

static void add_line(struct tsdb *t, const struct line *line)
{
    char series[256], values[1024], *rest = NULL;
    int64_t at = T0;
    uint64_t ref;

    (void)snprintf(series, sizeof(series), "%s", line->series);
    (void)snprintf(values, sizeof(values), "%s", line->values);
    ref = add_series(t, series);
    for (char *word = strtok_r(values, " ", &rest); word; word = strtok_r(NULL, " ", &rest), at += STEP) {
        struct tsdb_sample sample = {ref, at, value_of(word)};
        enum tsdb_result result;

        if (*word != '_')
            assert_int_equal(tsdb_append(t, &sample, 1, &result), 0);
    }
}

static struct tsdb *store_of(const struct line *lines, size_t n)
{
    const struct tsdb_options options = {&fixed_clock, 64u << 20, 10000};
    struct tsdb *t = NULL;

    assert_int_equal(tsdb_new(&t, &options), 0);
    tsdb_set_age(t, 7200 * 1000);
    for (size_t i = 0; i < n; i++)
        add_line(t, &lines[i]);
    return t;
}

static const struct line lines[] = {
    {"m;a=1;b=x", "1 2 3 4 5 6 7 8 9 10"},
    {"m;a=2;b=x", "10 20 s _ 5 25 _ _ _ 45"},
    {"m;a=2;b=y", "nan 3 1"},
    {"other;a=1;b=x", "5"},
};

static int run(struct tsdb *t, const char *query, const struct promql_range *range, struct buf *out,
               char why[PROMQL_WHY_BYTES])
{
    CLEANUP(cleanup_promql_free) struct promql_plan *plan = NULL;
    size_t series;
    int r = promql_parse(&plan, str_of(query), str_of(query), why);

    return r ?: promql_range(plan, t, range, out, &series, why);
}

/* The series of a result in short: "{a=1} 1 2 _ 4|..." with a value or "_" for each point. */
static void shorten(struct str json, const struct promql_range *range, struct buf *to)
{
    const char *p = json.p, *end = json.p + json.n;

    while (p < end) {
        const char *labels = strchr(p, '{') + 10, *close = strchr(labels, '}'); /* {"metric":{ */

        p = strstr(close, "\"values\":[") + 10;
        assert_int_equal(buf_printf(to, "%s%.*s", to->n ? "|" : "", (int)(close + 1 - labels), labels), 0);
        for (int64_t at = range->start_ms; at <= range->end_ms; at += range->step_ms) {
            char start[32], *quote;

            (void)snprintf(start, sizeof(start), at % 1000 ? "[%lld.%03lld,\"" : "[%lld,\"",
                           (long long)(at / 1000), (long long)(at % 1000));
            if (strncmp(p, start, strlen(start)) != 0) {
                assert_int_equal(buf_puts(to, " _"), 0);
                continue;
            }
            p += strlen(start);
            quote = strchr(p, '"');
            assert_int_equal(buf_printf(to, " %.*s", (int)(quote - p), p), 0);
            p = quote + 2 + (quote[2] == ',');
        }
        p += 3; /* ]}, */
    }
}

struct expectation {
    const char *query;
    struct promql_range range;
    const char *result;
};

static void expect(struct tsdb *t, const struct expectation *e)
{
    char why[PROMQL_WHY_BYTES] = "";
    BUF_AUTO(out, 1 << 20);
    BUF_AUTO(got, 1 << 16);

    if (run(t, e->query, &e->range, &out, why) < 0)
        fail_msg("%s: %s", e->query, why);
    assert_int_equal(buf_putc(&out, '\0'), 0);
    shorten((struct str){out.p, out.n - 1}, &e->range, &got);
    if (!str_eq(buf_str(&got), str_of(e->result)))
        fail_msg("%s\ngot:      %.*s\nexpected: %s", e->query, STR_ARG(buf_str(&got)), e->result);
}

#define EVERY(from, n, step)                                \
    {                                                       \
        T0 + (from), T0 + (from) + ((n)-1) * (step), (step) \
    }

/* What Prometheus gives: test_promql_against_prometheus.py compares many more cases with it. */
static const struct expectation expectations[] = {
    /* The latest sample of five minutes, left open; a stale marker ends a series. */
    {"m", EVERY(0, 4, STEP),
     "{\"__name__\":\"m\",\"a\":\"1\",\"b\":\"x\"} 1 2 3 4|{\"__name__\":\"m\",\"a\":\"2\",\"b\":\"x\"} 10 "
     "20 "
     "_ _|{\"__name__\":\"m\",\"a\":\"2\",\"b\":\"y\"} NaN 3 1 1"},
    {"other", EVERY(299999, 2, 1), "{\"__name__\":\"other\",\"a\":\"1\",\"b\":\"x\"} 5 _"},
    {"m{b='y'}", EVERY(-1, 2, 1), "{\"__name__\":\"m\",\"a\":\"2\",\"b\":\"y\"} _ NaN"},
    {"m{c='z'}", EVERY(0, 4, STEP), ""},
    /* A range excludes its first moment, and has no stale markers. */
    {"count_over_time(m{a='1'}[30s])", EVERY(0, 3, STEP), "{\"a\":\"1\",\"b\":\"x\"} 1 2 2"},
    {"count_over_time(m{a='2',b='x'}[1m])", EVERY(0, 5, STEP), "{\"a\":\"2\",\"b\":\"x\"} 1 2 2 2 2"},
    {"last_over_time(m{a='2',b='x'}[1m])", EVERY(30000, 3, 30000),
     "{\"__name__\":\"m\",\"a\":\"2\",\"b\":\"x\"} 20 5 25"},
    {"sum_over_time(m{a='1'}[1m])", EVERY(45000, 3, STEP), "{\"a\":\"1\",\"b\":\"x\"} 10 14 18"},
    {"avg_over_time(m{a='1'}[1m])", EVERY(45000, 3, STEP), "{\"a\":\"1\",\"b\":\"x\"} 2.5 3.5 4.5"},
    {"min_over_time(m{a='2'}[1m])", EVERY(0, 4, STEP),
     "{\"a\":\"2\",\"b\":\"x\"} 10 10 10 10|{\"a\":\"2\",\"b\":\"y\"} NaN 3 1 1"},
    {"max_over_time(m{a='2'}[1m])", EVERY(0, 4, STEP),
     "{\"a\":\"2\",\"b\":\"x\"} 10 20 20 20|{\"a\":\"2\",\"b\":\"y\"} NaN 3 3 3"},
    /* Extrapolation to the borders of the range, to the zero of a counter, and over a reset. */
    {"rate(m{a='1'}[1m])", EVERY(0, 5, STEP),
     "{\"a\":\"1\",\"b\":\"x\"} _ 0.025 0.041666666666666664 0.06666666666666665 0.06666666666666665"},
    {"increase(m{a='2',b='x'}[2m])", EVERY(75000, 1, STEP), "{\"a\":\"2\",\"b\":\"x\"} 40.833333333333336"},
    {"delta(m{a='1'}[1m])", EVERY(15000, 2, 45000), "{\"a\":\"1\",\"b\":\"x\"} 1.5 4"},
    {"irate(m{a='2',b='x'}[2m])", EVERY(60000, 3, STEP),
     "{\"a\":\"2\",\"b\":\"x\"} 0.1111111111111111 1.3333333333333333 1.3333333333333333"},
    /* Aggregations. */
    {"sum(m)", EVERY(0, 3, STEP), "{} NaN 25 4"},
    {"avg by (a) (m)", EVERY(15000, 2, STEP), "{\"a\":\"1\"} 2 3|{\"a\":\"2\"} 11.5 1"},
    {"min without (a) (m)", EVERY(15000, 2, STEP), "{\"b\":\"x\"} 2 3|{\"b\":\"y\"} 3 1"},
    {"max(m)", EVERY(0, 2, STEP), "{} 10 20"},
    {"count by (b, c) (m)", EVERY(0, 3, STEP), "{\"b\":\"x\"} 2 2 1|{\"b\":\"y\"} 1 1 1"},
    {"count by (__name__) ({a='1'})", EVERY(0, 1, STEP), "{\"__name__\":\"m\"} 1|{\"__name__\":\"other\"} 1"},
    {"sum by (__name__) (rate(m{a='1'}[1m]))", EVERY(15000, 1, STEP), "{} 0.025"},
    {"max(sum by (a) (m))", EVERY(15000, 2, STEP), "{} 23 3"},
    {"sum(m{c='z'})", EVERY(0, 3, STEP), ""},
};

static void evaluates_as_prometheus_does(void **state)
{
    struct tsdb *t = store_of(lines, ARRAY_SIZE(lines));

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expectations); i++)
        expect(t, &expectations[i]);
    (void)tsdb_free(t);
}

static void drops_labels_that_describe_the_metric(void **state)
{
    static const struct line typed[] = {{"A=1;m;__type__=gauge;__unit__=s;a=1", "1"}};
    static const struct expectation cases[] = {
        {"sum_over_time(m[1m])", EVERY(0, 1, STEP), "{\"A\":\"1\",\"a\":\"1\"} 1"},
        {"last_over_time(m[1m])", EVERY(0, 1, STEP),
         "{\"A\":\"1\",\"__name__\":\"m\",\"__type__\":\"gauge\",\"__unit__\":\"s\",\"a\":\"1\"} 1"},
        {"sum without (A) (m)", EVERY(0, 1, STEP),
         "{\"__type__\":\"gauge\",\"__unit__\":\"s\",\"a\":\"1\"} 1"},
    };
    struct tsdb *t = store_of(typed, 1);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(t, &cases[i]);
    (void)tsdb_free(t);
}

static void says_why_it_fails(void **state)
{
    static const struct {
        const char *query;
        struct promql_range range;
        size_t max;
        int error;
        const char *why;
    } cases[] = {
        {"rate({a='1'}[1m])", EVERY(15000, 1, STEP), 1 << 20, 0, ""}, /* `other` has too few samples */
        {"sum_over_time({a='1'}[1m])", EVERY(15000, 1, STEP), 1 << 20, -EINVAL,
         "several series have the same labels without their metric's name"},
        {"sum(sum_over_time({a='1'}[1m]))", EVERY(15000, 1, STEP), 1 << 20, -EINVAL,
         "several series have the same labels without their metric's name"},
        {"m", {T0, T0 + 11000, 1}, 1 << 20, 0, ""},
        {"m",
         {T0, T0 + 11001, 1},
         1 << 20,
         -EINVAL,
         "11002 points for each series, at most 11001 are possible"},
        {"m", {T0, T0 - 1, 1}, 1 << 20, 0, ""},
        {"m", {T0, T0 + 11000, 1}, 8192, -EFBIG, "the result exceeds the limit of 8192 bytes"},
        {"sum by (a) (m)", {T0, T0 + 11000, 1}, 8192, -EFBIG, "the result exceeds the limit of 8192 bytes"},
        {"m",
         {T0, T0 + 11000, 1},
         100,
         -EFBIG,
         "the samples that the query selects exceed the limit of 100 bytes"},
    };
    struct tsdb *t = store_of(lines, ARRAY_SIZE(lines));

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[PROMQL_WHY_BYTES] = "";
        BUF_AUTO(out, cases[i].max);

        if (run(t, cases[i].query, &cases[i].range, &out, why) != cases[i].error ||
            strcmp(why, cases[i].why) != 0)
            fail_msg("%s: %s", cases[i].query, why);
    }
    (void)tsdb_free(t);
}

static void survives_each_failed_allocation(void **state)
{
    static const char *const queries[] = {"avg by (b) (sum by (a, b) (rate({a=~'1|2'}[1m])))",
                                          "sum_over_time({b=~'x|y',__name__=~'m'}[30s])"};
    static const struct promql_range range = EVERY(0, 4, STEP);
    struct tsdb *t = store_of(lines, ARRAY_SIZE(lines));

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        FOR_EACH_ALLOCATION_FAILURE(n)
        {
            char why[PROMQL_WHY_BYTES] = "";
            BUF_AUTO(out, 1 << 20);
            int r = run(t, queries[i], &range, &out, why);

            assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        }
    (void)tsdb_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluates_as_prometheus_does),
        cmocka_unit_test(drops_labels_that_describe_the_metric),
        cmocka_unit_test(says_why_it_fails),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
