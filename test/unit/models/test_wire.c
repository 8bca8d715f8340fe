#include "exporter/base/buf.h"
#include "exporter/models/wire.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void reads_series_and_samples(void **state)
{
    struct input_series s;
    struct request rq;

    (void)state;
    request_begin(&rq, STR("{\"more\":[{}],\"data\":[{\"x\":[1],\"metric\": {\"a\":\"b\"} ,\"values\":"
                           "[[1718600000,\"5\"],[1718600060.5,\"NaN\"],[3,\"-Inf\"],[4,\"1e999\"],[5,7.5]]},"
                           "{\"value\":[9,\"2\"],\"metric\":{}},{\"metric\":{},\"values\":[]}],\"x\":1}"));
    assert_true(request_next(&rq, &s));
    assert_true(str_eq(s.metric, STR("{\"a\":\"b\"}")));
    assert_int_equal(s.n, 5);
    assert_true(s.times[1] == 1718600060.5 && s.values[0] == 5 && s.values[4] == 7.5);
    assert_true(isnan(s.values[1]) && s.values[2] == -INFINITY && s.values[3] == INFINITY);
    assert_true(request_next(&rq, &s));
    assert_true(s.n == 1 && s.times[0] == 9 && s.values[0] == 2);
    assert_true(request_next(&rq, &s));
    assert_int_equal(s.n, 0);
    assert_false(request_next(&rq, &s));
    assert_false(request_next(&rq, &s));
    assert_int_equal(request_end(&rq), 0);
    assert_int_equal(rq.n_series, 3);
}

/* Native histograms, as Prometheus writes them into a matrix. */
static void skips_series_without_values(void **state)
{
    struct input_series s;
    struct request rq;

    (void)state;
    request_begin(&rq, STR("{\"data\":[{\"metric\":{\"h\":\"1\"},\"histograms\":[[1,{\"count\":\"2\"}]]},"
                           "{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"2\"]]},{\"metric\":{}}]}"));
    assert_true(request_next(&rq, &s));
    assert_true(str_eq(s.metric, STR("{\"a\":\"b\"}")) && s.n == 1 && s.values[0] == 2);
    assert_false(request_next(&rq, &s));
    assert_int_equal(rq.n_series, 3);
    assert_int_equal(rq.n_without_values, 2);
    assert_int_equal(request_end(&rq), 0);
}

static void names_the_member_that_is_wrong(void **state)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        {"", "line 1, column 1: "},
        {"{\"data\":\n [}", "line 2, column 3: "},
        {"{\"data\":[]} x", "line 1, column 13: "},
        {"{\"data\":[{\"metric\":{\"\xff\":1}}]}", "line 1, column 22: "},
        {"{\"data\":[{\"metric\":{}", "line 1, column 22: "},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,\"2\"],", "line 1, column 41: "},
        {"[]", "expected an object with a list \"data\""},
        {"{}", "expected an object with a list \"data\""},
        {"{\"data\":{}}", "expected an object with a list \"data\""},
        {"{\"data\":null}", "expected an object with a list \"data\""},
        {"{\"data\":[],\"data\":[]}", "duplicate \"data\""},
        {"{\"data\":[1]}", "data[0]: expected an object"},
        {"{\"data\":[{\"values\":[]}]}", "data[0]: missing \"metric\""},
        {"{\"data\":[{}]}", "data[0]: missing \"metric\""},
        {"{\"data\":[{\"metric\":{},\"values\":[]},{\"metric\":[]}]}", "data[1].metric: expected an object"},
        {"{\"data\":[{\"metric\":{},\"metric\":{}}]}", "data[0]: duplicate \"metric\""},
        {"{\"data\":[{\"metric\":{},\"values\":[],\"value\":[1,\"2\"]}]}", "data[0]: duplicate \"value\""},
        {"{\"data\":[{\"metric\":{},\"values\":{}}]}",
         "data[0].values: expected a list of [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,\"2\"],[1]]}]}",
         "data[0].values[1]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[\"1\",\"2\"]]}]}",
         "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,\"2x\"]]}]}",
         "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,\"\"]]}]}",
         "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,null]]}]}",
         "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[[1,\"2\",3]]}]}",
         "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"values\":[1]}]}", "data[0].values[0]: expected [time, \"value\"]"},
        {"{\"data\":[{\"metric\":{},\"value\":[1]}]}", "data[0].value: expected [time, \"value\"]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request rq;

        request_begin(&rq, str_of(cases[i].body));
        assert_int_equal(request_end(&rq), -EINVAL);
        if (strncmp(rq.why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("%s: %s", cases[i].body, rq.why);
    }
}

static void limits_the_number_of_series(void **state)
{
    static const struct str one = {"{\"metric\":{},\"values\":[]},", 26};
    BUF_AUTO(body, 64u << 20);
    struct request rq;

    (void)state;
    buf_puts(&body, "{\"data\":[");
    for (int i = 0; i < REQUEST_MAX_SERIES; i++)
        buf_put_str(&body, one);
    buf_puts(&body, "{}]}");
    assert_int_equal(buf_failed(&body), 0);
    request_begin(&rq, buf_str(&body));
    assert_int_equal(request_end(&rq), -E2BIG);
    assert_string_equal(rq.why, "data: more than 1000000 series");
}

static void finds_a_label(void **state)
{
    const struct str metric = STR("{\"a\":1,\"no\\u0064e\":\"n\\n1\",\"b\":\"2\"}");
    struct str raw;

    (void)state;
    assert_true(series_label(metric, "node", &raw));
    assert_true(str_eq(raw, STR("n\\n1")));
    assert_false(series_label(metric, "a", &raw));
    assert_false(series_label(metric, "c", &raw));
}

/* ---- The answer ---- */

static int write_results(struct buf *out)
{
    static const struct str meta = STR("m\"\n");
    struct results rs;

    results_begin(&rs, out);
    results_add(&rs, &(struct result){.metric = STR("{ \"a\" : \"\\u00e9\" }"), .score = 10});
    results_add(&rs,
                &(struct result){.metric = STR("{\"\\u006deta\":\"old\", \"b\":\"c\",\"meta\":\"older\"}"),
                                 .meta = meta,
                                 .score = -0.25,
                                 .members = STR(",\"error\":1")});
    results_add(&rs, &(struct result){.metric = STR("{}"), .meta = meta, .score = 1e300});
    return results_end(&rs);
}

static void writes_labels_as_they_came(void **state)
{
    BUF_AUTO(out, 1000);

    (void)state;
    assert_int_equal(write_results(&out), 0);
    buf_putc(&out, '\0');
    assert_int_equal(buf_failed(&out), 0);
    assert_string_equal(out.p, "{\"results\":[{\"metric\":{ \"a\" : \"\\u00e9\" },\"score\":10.0},"
                               "{\"metric\":{\"b\":\"c\",\"meta\":\"m\\\"\\n\"},\"score\":-0.25,"
                               "\"error\":1},{\"metric\":{\"meta\":\"m\\\"\\n\"},\"score\":1e+300}]}");
}

static void writes_an_empty_list(void **state)
{
    BUF_AUTO(out, 100);
    struct results rs;

    (void)state;
    results_begin(&rs, &out);
    assert_int_equal(results_end(&rs), 0);
    assert_true(str_eq(buf_str(&out), STR("{\"results\":[]}")));
}

static void stops_at_the_ceiling(void **state)
{
    (void)state;
    for (size_t max = 0; max < 150; max++) {
        BUF_AUTO(out, max);
        assert_int_equal(write_results(&out), -EFBIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_series_and_samples),    cmocka_unit_test(names_the_member_that_is_wrong),
        cmocka_unit_test(limits_the_number_of_series), cmocka_unit_test(finds_a_label),
        cmocka_unit_test(writes_labels_as_they_came),  cmocka_unit_test(writes_an_empty_list),
        cmocka_unit_test(stops_at_the_ceiling),        cmocka_unit_test(skips_series_without_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
