#include "exporter/base/buf.h"
#include "exporter/models/request.h"
#include "test/oom.h"

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
        {"{\"data\":[{\"metric\":{}}]}", "data[0]: missing \"values\""},
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
    assert_int_equal(buf_puts(&body, "{\"data\":["), 0);
    for (int i = 0; i < REQUEST_MAX_SERIES; i++)
        assert_int_equal(buf_put_str(&body, one), 0);
    assert_int_equal(buf_puts(&body, "{}]}"), 0);
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

static void survives_a_lack_of_memory(void **state)
{
    BUF_AUTO(body, 1u << 20);

    (void)state;
    assert_int_equal(buf_puts(&body, "{\"data\":[{\"metric\":{},\"values\":["), 0);
    for (int i = 0; i < 600; i++)
        assert_int_equal(buf_puts(&body, i ? ",[1,\"2\"]" : "[1,\"2\"]"), 0);
    assert_int_equal(buf_puts(&body, "]}]}"), 0);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct request rq;
        int r;

        request_begin(&rq, buf_str(&body));
        r = request_end(&rq);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_series_and_samples),    cmocka_unit_test(names_the_member_that_is_wrong),
        cmocka_unit_test(limits_the_number_of_series), cmocka_unit_test(finds_a_label),
        cmocka_unit_test(survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
