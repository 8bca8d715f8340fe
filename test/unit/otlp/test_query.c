/* What is refused, and the limits. Results are compared with those of Prometheus by
 * test_promql_against_prometheus.py. */
#include "exporter/otlp/query.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/otlp/series.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1700000000, SAMPLES = 40, STEP = 15 };

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW * INT64_C(1000)};
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

static void refuses_by_name(void **state)
{
#define HINT_USE_PROMETHEUS \
    "; for all of PromQL set agent.otlp.prometheus.enabled in the chart, or give the source a host"
#define REGEX                                                                                             \
    "line 1, column 6: invalid regular expression: look-around, back-references, possessive quantifiers " \
    "and all else that RE2 and PCRE2 do not share are not supported"
#define NOT " is not supported by sourceType OpenTelemetry"
    static const struct {
        const char *query, *why;
    } cases[] = {
        {"", "line 1, column 1: expected a selector such as metric{label=\"value\"}, a number, a function or "
             "an aggregation, got the end of the query"},
        {"m > 1", "line 1, column 3: >" NOT HINT_USE_PROMETHEUS},
        {"m == 1", "line 1, column 3: ==" NOT HINT_USE_PROMETHEUS},
        {"m and n", "line 1, column 3: and" NOT HINT_USE_PROMETHEUS},
        {"m + on (a) n", "line 1, column 5: on" NOT HINT_USE_PROMETHEUS},
        {"m offset 5m", "line 1, column 3: offset" NOT HINT_USE_PROMETHEUS},
        {"m @ 1", "line 1, column 3: @" NOT HINT_USE_PROMETHEUS},
        {"rate(m[5m:1m])", "line 1, column 10: a subquery" NOT HINT_USE_PROMETHEUS},
        {"sum(m)[5m]", "line 1, column 7: a subquery" NOT HINT_USE_PROMETHEUS},
        {"topk(3, m)", "line 1, column 1: aggregation topk" NOT HINT_USE_PROMETHEUS},
        {"quantile by (a) (0.5, m)", "line 1, column 1: aggregation quantile" NOT HINT_USE_PROMETHEUS},
        {"\n absent(m)", "line 2, column 2: function absent" NOT HINT_USE_PROMETHEUS},
        {"0x1f + m", "line 1, column 1: number 0x1f" NOT "; write it as in 1, 0.5 or 1e-3"},
        {"m[5m]", "line 1, column 1: a range needs a function around it, as in rate(metric[5m])"},
        {"m[5m] + 1",
         "line 1, column 7: operator + takes no range; put a function around it, as in rate(metric[5m])"},
        {"rate(m)", "line 1, column 6: rate takes a range, as in rate(metric[5m])"},
        {"sum(1)", "line 1, column 5: sum takes a vector, as in sum(metric) or sum(rate(metric[5m]))"},
        {"m[0s]", "line 1, column 3: expected a duration such as 5m, 90s or 1h30m, got 0s"},
        {"m{a=~\"(?=b)\"}", REGEX},
        {"m{a=~`(a)\\1`}", REGEX},
        {"m{a=~`[\\h]`}", REGEX},
        {"m{a=~\"a*+\"}", REGEX},
        {"m{a=~\"[+]*+\"}", REGEX},
        {"m{a=~\"a{2}+\"}", REGEX},
        {"m{a=~\"a{,3}\"}", REGEX},
        {"m{a=~\"a{ 3 }\"}", REGEX},
        {"m{a=~\"(*UTF)a\"}", REGEX},
        {"m{a=\"\\x41\"}",
         "line 1, column 5: string with the escape sequence \\x; supported: \\a \\b \\f \\n \\r \\t "
         "\\v \\\\ and the quote"},
        {"{a=\"\"}",
         "line 1, column 1: a selector needs a matcher that does not match the empty string, such as "
         "{job=\"a\"}"},
        {"m{a=\"b}", "line 1, column 5: string without a closing quote"},
        {"m n", "line 1, column 3: expected the end of the query, got n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[QUERY_WHY_BYTES] = "";
        struct str text = str_of(cases[i].query);
        struct query *q = NULL;

        assert_int_equal(query_parse(&q, text, text, why), -EINVAL);
        if (strcmp(why, cases[i].why) != 0)
            fail_msg("%s\ngot:      %s\nexpected: %s", cases[i].query, why, cases[i].why);
    }
}

static void takes_expressions_that_re2_and_pcre2_share(void **state)
{
    static const char *const expressions[] = {
        "[*+]", "[^]*+(?=]+", "[]*+]?", "[(*]",   "[[:^alpha:]*+]+", "[[:]+", "[\\\\]*+]",
        "a}+",  "a{2,}?",     "\\\\.+", "\\\\++", "(a|b)",           "x*?",   "(?i:a)|(?P<b>c)",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
        char why[QUERY_WHY_BYTES] = "";
        CLEANUP(cleanup_query_free) struct query *q = NULL;
        BUF_AUTO(text, 100);

        buf_printf(&text, "m{a=~\"%s\"}", expressions[i]);
        assert_int_equal(buf_failed(&text), 0);
        if (query_parse(&q, buf_str(&text), buf_str(&text), why) < 0)
            fail_msg("%s: %s", expressions[i], why);
    }
}

/* What a hostile query could cost is bounded before it is computed. */
static void bounds_length_and_depth(void **state)
{
    static const struct {
        const char *begin, *part, *end;
        unsigned times;
        const char *why;
    } cases[] = {
        {"m", " ", "", 20000, "query of 20001 bytes; sourceType OpenTelemetry takes at most 16384"},
        {"", "(", "m", 5000, "more than 50 nested expressions"},
        {"", "-", "m", 5000, "more than 50 nested expressions"},
        {"m", "^m", "", 5000, "more than 50 nested expressions"},
        {"m", "+m", "", 5000, "more than 1024 selectors, matchers, labels"},
        {"m{", "a=\"b\",", "}", 2000, "more than 1024 selectors, matchers, labels"},
        {"sum by (", "a,", ") (m)", 2000, "more than 1024 selectors, matchers, labels"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[QUERY_WHY_BYTES] = "";
        struct query *q = NULL;
        BUF_AUTO(text, 1 << 20);

        buf_puts(&text, cases[i].begin);
        for (unsigned k = 0; k < cases[i].times; k++)
            buf_puts(&text, cases[i].part);
        buf_puts(&text, cases[i].end);
        assert_int_equal(buf_failed(&text), 0);
        assert_int_equal(query_parse(&q, buf_str(&text), buf_str(&text), why), -EINVAL);
        if (!strstr(why, cases[i].why))
            fail_msg("%s...: %s", cases[i].begin, why);
    }
}

static struct store *new_store(void)
{
    struct store *s;

    s = store_new(&fake_clock);
    store_set_limits(s, 64 << 20, 1000);
    for (unsigned i = 0; i < 4; i++) {
        static const struct str labels[] = {STR("__name__\xffm\xff"
                                                "a\xff"
                                                "0\xff"),
                                            STR("__name__\xffm\xff"
                                                "a\xff"
                                                "1\xff"),
                                            STR("__name__\xffn\xff"
                                                "a\xff"
                                                "0\xff"),
                                            STR("__name__\xffn\xff"
                                                "a\xff"
                                                "1\xff")};
        struct series *x;

        assert_int_equal(store_enter(s, labels[i], i + 1, &x), STORE_OK);
        store_lock(s);
        for (int k = 0; k < SAMPLES; k++)
            assert_int_equal(store_append(s, x, (NOW - (SAMPLES - k) * STEP) * INT64_C(1000), k * (i + 1.0)),
                             0);
        store_release(s, x);
        store_unlock(s);
    }
    return s;
}

static int run(struct store *s, const char *text, bool cancel, size_t max, struct buf *out,
               char why[QUERY_WHY_BYTES])
{
    const struct query_range range = {NOW * INT64_C(1000), NOW * INT64_C(1000), 1000};
    CLEANUP(cleanup_query_free) struct query *q = NULL;
    atomic_bool cancelled = cancel;
    size_t n;

    buf_init(out, max);
    if (query_parse(&q, str_of(text), str_of(text), why) < 0)
        fail_msg("%s: %s", text, why);
    return query_run(q, s, &range, &cancelled, out, &n, why);
}

static void computes_with_numbers_and_between_vectors(void **state)
{
#define ROW(labels, v) "{\"metric\":{" labels "},\"values\":[[1700000000,\"" v "\"]]}"
    static const struct {
        const char *query, *result;
    } cases[] = {
        {"1 + 2 * 3 ^ 2 ^ 0", ROW("", "7")},
        {"-2 ^ 2", ROW("", "-4")},
        {"(1 + 2) * -3 % 2", ROW("", "-1")},
        {"1 / 0", ROW("", "+Inf")},
        {"m{a=\"1\"}", ROW("\"__name__\":\"m\",\"a\":\"1\"", "78")},
        {"100 * (1 - m{a=\"1\"} / 156)", ROW("\"a\":\"1\"", "50")},
        {"m / n", ROW("\"a\":\"0\"", "0.3333333333333333") "," ROW("\"a\":\"1\"", "0.5")},
        {"m{a=\"1\"} - n{a=\"0\"}", ""},
        {"-sum(m) + sum(n)", ROW("", "156")},
        {"avg without (a) (m * 2)", ROW("", "117")},
    };
    struct store *s = new_store();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(buf_done) struct buf out;
        char why[QUERY_WHY_BYTES];

        assert_int_equal(run(s, cases[i].query, false, 1 << 20, &out, why), 0);
        if (!str_eq(buf_str(&out), str_of(cases[i].result)))
            fail_msg("%s\ngot:      %.*s\nexpected: %s", cases[i].query, STR_ARG(buf_str(&out)),
                     cases[i].result);
    }
    (void)store_free(s);
}

static void fails_where_series_cannot_be_told_apart(void **state)
{
    static const struct {
        const char *query;
        int error;
        const char *why;
        bool cancel;
        size_t max;
    } cases[] = {
        {"{a=~\".+\"} * 2", -EINVAL, "several series have the same labels without their metric's name", false,
         1 << 20},
        {"-{a=~\".+\"}", -EINVAL, "several series have the same labels without their metric's name", false,
         1 << 20},
        {"{a=\"1\"} + m", -EINVAL, "several series on the left side of an operator have the same labels",
         false, 1 << 20},
        {"m + {a=\"1\"}", -EINVAL, "several series on the right side of an operator have the same labels",
         false, 1 << 20},
        {"m", -EFBIG, "the result exceeds the limit of 100 bytes", false, 100},
        {"m", -ECANCELED, "", true, 1 << 20},
    };
    struct store *s = new_store();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(buf_done) struct buf out;
        char why[QUERY_WHY_BYTES];

        assert_int_equal(run(s, cases[i].query, cases[i].cancel, cases[i].max, &out, why), cases[i].error);
        assert_true(!*cases[i].why || strcmp(why, cases[i].why) == 0);
    }
    (void)store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(takes_expressions_that_re2_and_pcre2_share),
        cmocka_unit_test(bounds_length_and_depth),
        cmocka_unit_test(computes_with_numbers_and_between_vectors),
        cmocka_unit_test(fails_where_series_cannot_be_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
