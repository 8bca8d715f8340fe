#include "exporter/base/buf.h"
#include "exporter/promql/plan.h"
#include "exporter/promql/promql.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The plan as a text: "sum by(a,b) rate[300000] {__name__="m",a=~"b"}". */
static void describe(const struct promql_plan *plan, struct buf *to)
{
    static const char *const words[] = {"avg", "count", "max", "min", "sum"};
    static const char *const ops[] = {"=", "!=", "=~", "!~"};

    for (size_t i = plan->n_aggregations; i-- > 0;) {
        const struct aggregation *a = plan->aggregations[i];

        assert_int_equal(buf_printf(to, "%s %s(", words[a->op], a->without ? "without" : "by"), 0);
        for (size_t k = 0; k < a->n_labels; k++)
            assert_int_equal(buf_printf(to, "%s%.*s", k ? "," : "", STR_ARG(a->labels[k])), 0);
        assert_int_equal(buf_puts(to, ") "), 0);
    }
    if (plan->function)
        assert_int_equal(buf_printf(to, "%s[%lld] ", plan->function->name, (long long)plan->range_ms), 0);
    assert_int_equal(buf_putc(to, '{'), 0);
    for (size_t i = 0; i < plan->n_matchers; i++) {
        const struct tsdb_matcher *m = &plan->matchers[i];

        assert_int_equal(m->regex != NULL, m->op == TSDB_RE || m->op == TSDB_NRE);
        assert_int_equal(
            buf_printf(to, "%s%.*s%s\"%.*s\"", i ? "," : "", STR_ARG(m->name), ops[m->op], STR_ARG(m->value)),
            0);
    }
    assert_int_equal(buf_putc(to, '}'), 0);
}

static void understands_the_documented_part(void **state)
{
    static const struct {
        const char *query, *plan;
    } cases[] = {
        {"up", "{__name__=\"up\"}"},
        {"a:b:c", "{__name__=\"a:b:c\"}"},
        {" up # now\n", "{__name__=\"up\"}"},
        {"up{}", "{__name__=\"up\"}"},
        {"{job='x'}", "{job=\"x\"}"},
        {"{__name__=~\"a|b\"}", "{__name__=~\"a|b\"}"},
        {"{\"my.name\", 'my label'!=\"\", }", "{__name__=\"my.name\",my label!=\"\"}"},
        {"m{a=\"1\",b!=\"2\",c=~\"3.*\",d!~\"4|5\"}",
         "{__name__=\"m\",a=\"1\",b!=\"2\",c=~\"3.*\",d!~\"4|5\"}"},
        {"m{a=\"\\\"\\x41\\101\\u20ac\\n\", b='\\'', c=`\\n`}",
         "{__name__=\"m\",a=\"\"AA\xe2\x82\xac\n\",b=\"'\",c=\"\\n\"}"},
        {"sum", "{__name__=\"sum\"}"},
        {"by{a='1'}", "{__name__=\"by\",a=\"1\"}"},
        {"rate(m[5m])", "rate[300000] {__name__=\"m\"}"},
        {"irate(m[1h30m])", "irate[5400000] {__name__=\"m\"}"},
        {"increase((m{a='1'}[1y2w3d4h5m6s7ms]))", "increase[33019506007] {__name__=\"m\",a=\"1\"}"},
        {"delta(m[90])", "delta[90000] {__name__=\"m\"}"},
        {"avg_over_time(m[ 1.5 ])", "avg_over_time[1500] {__name__=\"m\"}"},
        {"min_over_time(m[500ms])", "min_over_time[500] {__name__=\"m\"}"},
        {"max_over_time(m [1w])", "max_over_time[604800000] {__name__=\"m\"}"},
        {"sum_over_time(m[1s])", "sum_over_time[1000] {__name__=\"m\"}"},
        {"last_over_time(m[1s])", "last_over_time[1000] {__name__=\"m\"}"},
        {"count_over_time(m[1s])", "count_over_time[1000] {__name__=\"m\"}"},
        {"sum(m)", "sum by() {__name__=\"m\"}"},
        {"sum by (node, namespace, pod) (rate(m{pod!=\"\"}[1m]))",
         "sum by(namespace,node,pod) rate[60000] {__name__=\"m\",pod!=\"\"}"},
        {"SUM(m) BY (b, a, a,)", "sum by(a,b) {__name__=\"m\"}"},
        {"avg without () (m)", "avg without() {__name__=\"m\"}"},
        {"count(m) without (by, \"a b\")", "count without(a b,by) {__name__=\"m\"}"},
        {"max(min by (a) ((rate(m[1m]))))", "max by() min by(a) rate[60000] {__name__=\"m\"}"},
        {"((m))", "{__name__=\"m\"}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_promql_free) struct promql_plan *plan = NULL;
        char why[PROMQL_WHY_BYTES] = "";
        struct str query = str_of(cases[i].query);
        BUF_AUTO(text, 4096);

        if (promql_parse(&plan, query, query, why) < 0)
            fail_msg("%s: %s", cases[i].query, why);
        describe(plan, &text);
        if (!str_eq(buf_str(&text), str_of(cases[i].plan)))
            fail_msg("%s\ngot:      %.*s\nexpected: %s", cases[i].query, STR_ARG(buf_str(&text)),
                     cases[i].plan);
    }
}

#define NO " is not supported by sourceType OpenTelemetry"
#define NO_FUNCTION                                                                      \
    NO "; supported functions: avg_over_time, count_over_time, delta, increase, irate, " \
       "last_over_time, max_over_time, min_over_time, rate, sum_over_time"
#define NO_AGGREGATION NO "; supported aggregations: avg, count, max, min, sum"
#define NO_OPERATOR    NO "; query each operand, separated by \";\", and let the scoring API compute"
#define OPERAND                                                              \
    "expected a selector such as metric{label=\"value\"}, a function or an " \
    "aggregation, got "
#define DURATION "expected a duration such as 5m, 90s or 1h30m, got "

static void refuses_the_rest_and_says_what_is_possible(void **state)
{
    static const struct {
        const char *query, *why;
    } cases[] = {
        /* PromQL that Prometheus knows. */
        {"histogram_quantile(0.9, rate(m[5m]))", "1, column 1: function histogram_quantile" NO_FUNCTION},
        {"sum by (a) (\n  abs(m))", "2, column 3: function abs" NO_FUNCTION},
        {"topk(3, m)", "1, column 1: aggregation topk" NO_AGGREGATION},
        {"quantile by (a) (0.9, m)", "1, column 1: aggregation quantile" NO_AGGREGATION},
        {"a / b", "1, column 3: operator /" NO_OPERATOR},
        {"rate(m[5m]) * 100", "1, column 13: operator *" NO_OPERATOR},
        {"a == 1", "1, column 3: operator ==" NO_OPERATOR},
        {"a and b", "1, column 3: operator and" NO_OPERATOR},
        {"sum(a) UNLESS b", "1, column 8: operator UNLESS" NO_OPERATOR},
        {"-a", "1, column 1: operator -" NO "; let the scoring API compute"},
        {"a offset 5m", "1, column 3: modifier offset" NO "; queries end at the present time"},
        {"rate(a[5m] offset 1h)", "1, column 12: modifier offset" NO "; queries end at the present time"},
        {"a @ 1", "1, column 3: modifier @" NO "; queries end at the present time"},
        {"max_over_time(rate(m[5m])[1h:1m])",
         "1, column 26: a range is possible behind a selector only, as in rate(metric[5m]); a subquery" NO},
        {"avg_over_time(m[1h:1m])", "1, column 19: a subquery" NO "; use a range alone, as in metric[5m]"},
        {"1", "1, column 1: " OPERAND "1"},
        {"\"a\"", "1, column 1: " OPERAND "\"a\""},
        {"nan", "1, column 1: " OPERAND "nan"},
        /* What Prometheus refuses, too. */
        {"", "1, column 1: " OPERAND "the end of the query"},
        {"sum(", "1, column 5: " OPERAND "the end of the query"},
        {"on", "1, column 1: " OPERAND "on"},
        {"a b", "1, column 3: expected the end of the query, got b"},
        {"a)", "1, column 2: expected the end of the query, got )"},
        {"(a", "1, column 3: expected ), got the end of the query"},
        {"sum(a, b)", "1, column 6: expected ), got ,"},
        {"sum by a (b)", "1, column 8: expected (, got a"},
        {"sum by (1) (b)", "1, column 9: expected a label name or ), got 1"},
        {"sum by (a b) (c)", "1, column 11: expected a comma or ), got b"},
        {"sum by (a) (b) by (c)", "1, column 16: expected the end of the query, got by"},
        {"m[5m]", "1, column 1: a range needs a function around it, as in rate(metric[5m])"},
        {"sum(m[5m])", "1, column 5: an aggregation takes no range; put a function around it, as in "
                       "rate(metric[5m])"},
        {"rate(m)", "1, column 6: function rate takes a range, as in rate(metric[5m])"},
        {"rate(sum(m))", "1, column 6: function rate takes a range, as in rate(metric[5m])"},
        {"rate()", "1, column 6: " OPERAND ")"},
        {"rate(m[5m], 1)", "1, column 11: expected ), got ,"},
        {"Rate(m[5m])", "1, column 1: function Rate" NO_FUNCTION},
        {"(m)[5m]", "1, column 4: a range is possible behind a selector only, as in rate(metric[5m]); a "
                    "subquery" NO},
        {"rate(m[5])]", "1, column 11: expected the end of the query, got ]"},
        {"rate(m[])", "1, column 8: " DURATION "]"},
        {"rate(m[0s])", "1, column 8: " DURATION "0s"},
        {"rate(m[0])", "1, column 8: " DURATION "0"},
        {"rate(m[5x])", "1, column 8: " DURATION "5x"},
        {"rate(m[5m1h])", "1, column 8: " DURATION "5m1h"},
        {"rate(m[5m5m])", "1, column 8: " DURATION "5m5m"},
        {"rate(m[101y])", "1, column 8: " DURATION "101y"},
        {"rate(m[99999999999999999999s])", "1, column 8: " DURATION "99999999999999999999s"},
        {"rate(m[1e99])", "1, column 8: " DURATION "1e99"},
        {"rate(m[5m)", "1, column 10: expected ], got )"},
        {"{}", "1, column 1: a selector needs a matcher that does not match the empty string, such as "
               "{job=\"a\"}"},
        {"{a!='1', b=~\".*\", c=''}", "1, column 1: a selector needs a matcher that does not match the "
                                      "empty string, such as {job=\"a\"}"},
        {"m{__name__='n'}", "1, column 3: the metric's name is given twice"},
        {"m{\"n\"}", "1, column 3: the metric's name is given twice"},
        {"m{__name__=~'n'}", "1, column 3: the metric's name is given twice"},
        {"m{a}", "1, column 4: expected one of = != =~ !~, got }"},
        {"m{a=1}", "1, column 5: expected a string, got 1"},
        {"m{a==\"1\"}", "1, column 4: expected one of = != =~ !~, got =="},
        {"m{a:b='1'}", "1, column 3: expected a label name or }, got a:b"},
        {"m{a='1' b='2'}", "1, column 9: expected a comma or }, got b"},
        {"m{,}", "1, column 3: expected a label name or }, got ,"},
        {"m{a='1'", "1, column 8: expected a comma or }, got the end of the query"},
        {"m{a='1}", "1, column 5: string without a closing quote"},
        {"m{a=\"x\ny\"}", "1, column 5: string without a closing quote"},
        {"m{a=`x}", "1, column 5: string without a closing quote"},
        {"m{a=\"\\q\"}", "1, column 5: string with an invalid escape sequence or invalid UTF-8"},
        {"m{a='\\\"'}", "1, column 5: string with an invalid escape sequence or invalid UTF-8"},
        {"m{a=\"\\xff\"}", "1, column 5: string with an invalid escape sequence or invalid UTF-8"},
        {"m{a=\"\\ud800\"}", "1, column 5: string with an invalid escape sequence or invalid UTF-8"},
        {"m{a=\"\\400\"}", "1, column 5: string with an invalid escape sequence or invalid UTF-8"},
        {"m{a=~\"(\"}", "1, column 6: invalid regular expression: missing closing parenthesis at offset 1"},
        {"m{a=~\"(a)\\\\1\"}", "1, column 6: invalid regular expression: back-references are not "
                               "supported"},
        {"a ? b", "1, column 3: unexpected character"},
        {"\xff", "1, column 1: unexpected character"},
        {"m{a='1'}}", "1, column 9: expected the end of the query, got }"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_promql_free) struct promql_plan *plan = NULL;
        char why[PROMQL_WHY_BYTES] = "", want[PROMQL_WHY_BYTES];
        struct str query = str_of(cases[i].query);

        (void)snprintf(want, sizeof(want), "line %s", cases[i].why);
        if (promql_parse(&plan, query, query, why) != -EINVAL || strcmp(why, want) != 0)
            fail_msg("%s\ngot:      %s\nexpected: %s", cases[i].query, why, want);
        assert_null(plan);
    }
}

static void counts_positions_in_the_whole_text(void **state)
{
    static const char text[] = "up;\n  absent(up)";
    struct promql_plan *plan = NULL;
    char why[PROMQL_WHY_BYTES];

    (void)state;
    assert_int_equal(promql_parse(&plan, str_of(text), str_of(text + 6), why), -EINVAL);
    assert_memory_equal(why, "line 2, column 3: function absent", 33);
}

static void limits_depth_and_lists(void **state)
{
    static const struct {
        const char *open, *one, *close, *why;
        unsigned n;
    } cases[] = {
        {"", "(", "a", "more than 50 nested parentheses", 100000},
        {"", "sum(", "a", "more than 50 nested parentheses", 100000},
        {"sum(sum(sum(sum(sum(sum(sum(", "sum(", "a)))))))))))))))))", "more than 16 aggregations", 10},
        {"m{", "a='b',", "}", "more than 32 matchers", 33},
        {"sum by (", "a,", ") (m)", "more than 64 labels", 65},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct promql_plan *plan = NULL;
        char why[PROMQL_WHY_BYTES] = "";
        BUF_AUTO(text, 1 << 20);

        assert_int_equal(buf_puts(&text, cases[i].open), 0);
        for (unsigned k = 0; k < cases[i].n; k++)
            assert_int_equal(buf_puts(&text, cases[i].one), 0);
        assert_int_equal(buf_puts(&text, cases[i].close), 0);
        assert_int_equal(promql_parse(&plan, buf_str(&text), buf_str(&text), why), -EINVAL);
        if (!strstr(why, cases[i].why))
            fail_msg("%s: %s", cases[i].why, why);
    }
}

static void reaches_back_by_the_range_or_five_minutes(void **state)
{
    static const struct {
        const char *query;
        int64_t ms;
    } cases[] = {{"m", 300000}, {"sum(m)", 300000}, {"rate(m[1h])", 3600000}, {"rate(m[1m])", 60000}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_promql_free) struct promql_plan *plan = NULL;
        char why[PROMQL_WHY_BYTES];

        assert_int_equal(promql_parse(&plan, str_of(cases[i].query), str_of(cases[i].query), why), 0);
        assert_int_equal(promql_reach(plan), cases[i].ms);
    }
}

static void survives_each_failed_allocation(void **state)
{
    static const char query[] = "sum by (a, \"b\") (rate({__name__=~\"m|n\", a!~\"c\", \"d\"=\"e\"}[5m]))";

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        CLEANUP(cleanup_promql_free) struct promql_plan *plan = NULL;
        char why[PROMQL_WHY_BYTES];

        int r = promql_parse(&plan, str_of(query), str_of(query), why);

        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(understands_the_documented_part),
        cmocka_unit_test(refuses_the_rest_and_says_what_is_possible),
        cmocka_unit_test(counts_positions_in_the_whole_text),
        cmocka_unit_test(limits_depth_and_lists),
        cmocka_unit_test(reaches_back_by_the_range_or_five_minutes),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
