#include "controller/check/check.h"
#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct series_plan plan_of(const char *query, int64_t range_s, int64_t step_s)
{
    struct summary s = {.source = {.query = (char *)(uintptr_t)query, .range_s = range_s, .step_s = step_s}};
    struct series_plan p;

    series_plan_make(&p, &s, 1700000000);
    return p;
}

static void takes_labels_from_the_query(void **state)
{
    static const struct {
        const char *query, *labels;
    } cases[] = {
        {"sum by (node, namespace, pod) (rate(x[1m]))", "node namespace pod "},
        {"sum(DCGM) by (GPU_I_ID,Hostname)", "GPU_I_ID Hostname "},
        {"avg BY(a) (x) / on (b) max by (c) (y)", "a "},
        {"x{by=\"1\"}", "instance job namespace node pod "},
        {"sum by () (x)", "instance job namespace node pod "},
        {"sum by (node", "instance job namespace node pod "},
        {"rate(standby[5m])", "instance job namespace node pod "},
        {"", "instance job namespace node pod "},
        {"sum by (a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r) (x)", "a b c d e f g h i j k l m n o p "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct series_plan p = plan_of(cases[i].query, 60, 60);
        char got[256] = "";

        for (size_t k = 0; k < p.n_labels; k++)
            (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ", STR_ARG(p.labels[k]));
        assert_string_equal(got, cases[i].labels);
    }
}

static void takes_points_from_range_and_step(void **state)
{
    static const struct {
        int64_t range_s, step_s;
        size_t points;
    } cases[] = {{3600, 60, 61}, {60, 60, 2}, {30, 60, 1}, {0, 0, 61}, {86400, 15, 240}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct series_plan p = plan_of("x", cases[i].range_s, cases[i].step_s);

        assert_int_equal(p.points, cases[i].points);
        assert_int_equal(p.from_s + (int64_t)(p.points - 1) * p.step_s, 1700000000);
    }
}

static void assert_request(const struct series_plan *p, enum series_kind kind, size_t n, const char *want)
{
    BUF_AUTO(text, 1 << 20);

    series_put_request(&text, p, kind, n);
    if (!str_eq(buf_str(&text), str_of(want)))
        fail_msg("got %.*s\nexpected %s", STR_ARG(buf_str(&text)), want);
}

static void writes_each_kind(void **state)
{
    struct series_plan p = plan_of("sum by (pod) (x)", 60, 60);

    (void)state;
    assert_request(&p, SERIES_PLAIN, 0, "{\"data\":[]}");
    assert_request(&p, SERIES_PLAIN, 2,
                   "{\"data\":[{\"metric\":{\"pod\":\"pod-0\"},\"values\":[[1699999940,\"10.0\"],"
                   "[1700000000,\"12.0\"]]},{\"metric\":{\"pod\":\"pod-1\"},\"values\":[[1699999940,"
                   "\"13.7\"],[1700000000,\"15.7\"]]}]}");
    assert_request(&p, SERIES_OF_ONE_POINT, 1,
                   "{\"data\":[{\"metric\":{\"pod\":\"pod-0\"},\"values\":[[1700000000,\"12.0\"]]}]}");
    assert_request(&p, SERIES_WITHOUT_POINTS, 1,
                   "{\"data\":[{\"metric\":{\"pod\":\"pod-0\"},\"values\":[]}]}");
    assert_request(&p, SERIES_WITH_NAN, 1,
                   "{\"data\":[{\"metric\":{\"pod\":\"pod-0\"},\"values\":[[1699999940,\"NaN\"],"
                   "[1700000000,\"NaN\"]]}]}");
    p.points = 1;
    assert_request(&p, SERIES_TWICE, 2,
                   "{\"data\":[{\"metric\":{\"pod\":\"pod-0\"},\"values\":[[1699999940,\"10.0\"]]},"
                   "{\"metric\":{\"pod\":\"pod-0\"},\"values\":[[1699999940,\"13.7\"]]}]}");
}

static void expects_labels_back_as_they_were_sent(void **state)
{
    struct series_plan p = plan_of("sum by (node, pod) (x)", 60, 60);
    BUF_AUTO(text, 1 << 20);
    struct reading_of_answer a;
    struct str labels[DS_LABELS];
    bool is_long = false, has_line_end = false;

    (void)state;
    series_put_answer(&text, &p, SERIES_WITH_ODD_LABELS, 6);
    answer_read(&a, "c1", "s", buf_str(&text));
    assert_int_equal(a.error, ROUND_OK);
    assert_int_equal(series_count(a.batch->set), 6);
    for (size_t i = 0; i < 6; i++) {
        series_labels(a.batch->set, i, labels);
        is_long |= labels[DS_POD].n == 256; /* of 1,000 */
        has_line_end |= memchr(labels[DS_POD].p, '\n', labels[DS_POD].n) != NULL;
    }
    assert_true(is_long && has_line_end);
    answer_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_labels_from_the_query),
        cmocka_unit_test(takes_points_from_range_and_step),
        cmocka_unit_test(writes_each_kind),
        cmocka_unit_test(expects_labels_back_as_they_were_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
