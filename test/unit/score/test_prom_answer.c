#include "exporter/base/buf.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/round_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static char why[1024];

static enum round_error parse(struct str body, struct prom_answer *a)
{
    *a = (struct prom_answer){.n_series = 0};
    (void)strcpy(why, "");
    return prom_answer_parse(body, a, why);
}

#define SUCCESS(data) "{\"status\":\"success\",\"data\":" data "}"
#define MATRIX(r)     SUCCESS("{\"resultType\":\"matrix\",\"result\":[" r "]}")
#define VECTOR(r)     SUCCESS("{\"resultType\":\"vector\",\"result\":[" r "]}")
#define SERIES(name) \
    "{\"metric\":{\"pod\":\"" name "\"},\"values\":[[1718600060.123,\"0.25\"],[1718600120,\"NaN\"]]}"

static void finds_the_series_of_valid_responses(void **state)
{
    static const struct {
        const char *body, *series;
        size_t n;
    } cases[] = {
        {MATRIX(""), "", 0},
        {MATRIX(" \n "), "", 0},
        {MATRIX(SERIES("a")), SERIES("a"), 1},
        {MATRIX(SERIES("a") "," SERIES("b")), SERIES("a") "," SERIES("b"), 2},
        {MATRIX(" " SERIES("a") " ,\n" SERIES("b") "\t"), SERIES("a") " ,\n" SERIES("b"), 2},
        {MATRIX("{},{}"), "{},{}", 2},
        {SUCCESS("{\"resultType\":\"matrix\",\"result\":null}"), "", 0}, /* as Go writes an empty list */
        {SUCCESS("{\"result\":[" SERIES("a") "],\"resultType\":\"matrix\"}"), SERIES("a"), 1},
        {SUCCESS("{\"result\":[" SERIES("a") "]}"), SERIES("a"), 1},
        {"{\"data\":{\"resultType\":\"matrix\",\"result\":[]},\"status\":\"success\"}", "", 0},
        {"{\"data\":{\"result\":[]}}", "", 0},
        /* Thanos, Mimir, VictoriaMetrics */
        {"{\"status\":\"success\",\"isPartial\":false,\"data\":{\"resultType\":\"matrix\",\"result\":"
         "[" SERIES("a") "],\"analysis\":{\"name\":\"\",\"children\":[]}},\"stats\":{\"seriesFetched\":\"1\","
                         "\"executionTimeMsec\":2},"
                         "\"infos\":[\"x\"],\"trace\":null}",
         SERIES("a"), 1},
        {SUCCESS("{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"histograms\":[[1,{\"count\":\"2\"}]"
                 "]}]}"),
         "{\"metric\":{},\"histograms\":[[1,{\"count\":\"2\"}]]}", 1},
        {VECTOR(""), "", 0},
        {VECTOR("{\"metric\":{\"pod\":\"a\"},\"value\":[1718600060.123,\"1\"]}"),
         "{\"metric\":{\"pod\":\"a\"},\"values\":[[1718600060.123,\"1\"]]}", 1},
        {VECTOR("{\"value\":[1,\"1\"],\"metric\":{\"pod\":\"a\"}},{\"x\":[0],\"value\":[2, \"2\"]}"),
         "{\"metric\":{\"pod\":\"a\"},\"values\":[[1,\"1\"]]},{\"metric\":{},\"values\":[[2, \"2\"]]}", 2},
        {SUCCESS("{\"resultType\":\"scalar\",\"result\":[1718600060.5,\"42\"]}"),
         "{\"metric\":{},\"values\":[[1718600060.5,\"42\"]]}", 1},
        /* Names may have escapes. */
        {"{\"st\\u0061tus\":\"success\",\"d\\u0061ta\":{\"r\\u0065sult\":[{}]}}", "{}", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct prom_answer a;
        if (parse(str_of(cases[i].body), &a) != ROUND_OK)
            fail_msg("%s\nwas refused: %s", cases[i].body, why);
        if (!str_eq(a.series, str_of(cases[i].series)))
            fail_msg("%s\ngave %.*s", cases[i].body, STR_ARG(a.series));
        assert_int_equal(a.n_series, cases[i].n);
        assert_int_equal(a.warnings, 0);
        assert_string_equal(a.warning, "");
        buf_done(&a.made);
    }
}

/* What goes to the scoring API are the very bytes that came, not a copy of them. */
static void returns_a_matrix_as_a_slice_of_the_body(void **state)
{
    static const char body[] = MATRIX(SERIES("\\u20ac\xe2\x82\xac") "," SERIES("b"));
    struct prom_answer a;

    (void)state;
    assert_int_equal(parse(str_of(body), &a), ROUND_OK);
    assert_ptr_equal(a.series.p, strstr(body, "{\"metric\""));
    assert_ptr_equal(a.series.p + a.series.n, strstr(body, "]}}"));
    assert_null(a.made.p);
}

static void warns_of_what_is_missing(void **state)
{
    static const struct {
        const char *body, *first;
        size_t n, series;
    } cases[] = {
        {"{\"isPartial\":false,\"data\":{\"result\":[{}]}}", "", 0, 1},
        {"{\"isPartial\":true,\"data\":{\"result\":[{}]}}", "partial result: ", 1, 1},
        {"{\"isPartial\":true,\"warnings\":[\"w\"],\"data\":{\"result\":[{}]}}", "w", 2, 1},
        {"{\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},\"value\":[1,\"2\"]},"
         "{\"metric\":{},\"histogram\":[1,{}]},{\"metric\":{},\"histogram\":[1,{}]}]}}",
         "2 series dropped: ", 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct prom_answer a;

        assert_int_equal(parse(str_of(cases[i].body), &a), ROUND_OK);
        assert_int_equal(a.warnings, cases[i].n);
        assert_int_equal(strncmp(a.warning, cases[i].first, strlen(cases[i].first)), 0);
        assert_int_equal(a.n_series, cases[i].series);
        buf_done(&a.made);
    }
}

static void counts_warnings_and_keeps_the_first(void **state)
{
    static const struct {
        const char *warnings, *first;
        size_t n;
    } cases[] = {
        {"[]", "", 0},
        {"null", "", 0},
        {"\"text\"", "", 0},
        {"{\"a\":1}", "", 0},
        {"[\"first\",\"second\"]", "first", 2},
        {"[5,null,\"\",\"only \\\"one\\\"\\n\"]", "only \"one\"", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int before = 0; before < 2; before++) {
            char body[512];
            struct prom_answer a;
            (void)snprintf(body, sizeof(body),
                           before ? "{\"warnings\":%s,\"data\":{\"result\":[{}]}}"
                                  : "{\"data\":{\"result\":[{}]},\"warnings\":%s}",
                           cases[i].warnings);
            assert_int_equal(parse(str_of(body), &a), ROUND_OK);
            assert_int_equal(a.warnings, cases[i].n);
            assert_string_equal(a.warning, cases[i].first);
            assert_int_equal(a.n_series, 1);
        }
}

static void rejects_what_is_not_a_query_response(void **state)
{
    static const struct {
        const char *body;
        enum round_error error;
        const char *reason;
    } cases[] = {
        {"", ROUND_JSON, "response is not JSON: line 1, column 1: "},
        {"<html>\n", ROUND_JSON, "response is not JSON: line 1, column 1: "},
        {"404 page not found", ROUND_JSON, "response is not JSON"},
        {"{\"status\":\n \"success\",}", ROUND_JSON, "response is not JSON: line 2, column 12: "},
        {MATRIX("") "x", ROUND_JSON, "unexpected data after the value"},
        {MATRIX("{]"), ROUND_JSON, "response is not JSON"},
        {MATRIX("{\"a\":NaN}"), ROUND_JSON, ""}, /* strict: it is passed on as it came */
        {MATRIX("{\"a\":\"\xff\"}"), ROUND_JSON, "ill-formed UTF-8"},
        {MATRIX("{\"a\":\"\x01\"}"), ROUND_JSON, "control character"},
        {MATRIX("{\"a\":01}"), ROUND_JSON, "leading zero"},
        {"null", ROUND_SHAPE, "invalid query response: line 1, column 1: expected an object"},
        {"[]", ROUND_SHAPE, "line 1, column 1: expected an object"},
        {"\"text\"", ROUND_SHAPE, "line 1, column 1: expected an object"},
        {"{}", ROUND_SHAPE, "invalid query response: missing list data.result"},
        {"{\"data\":{\"result\":[]},\"data\":{\"result\":[]}}", ROUND_SHAPE,
         "invalid query response: line 1, column 30: duplicate \"data\""},
        {SUCCESS("{\"result\":[],\"result\":null}"), ROUND_SHAPE, "duplicate \"result\""},
        {"{\"status\":\"success\"}", ROUND_SHAPE, "missing list data.result"},
        {SUCCESS("null"), ROUND_SHAPE, "missing list data.result"},
        {SUCCESS("[]"), ROUND_SHAPE, "missing list data.result"},
        {SUCCESS("{}"), ROUND_SHAPE, "missing list data.result"},
        {SUCCESS("{\"result\":{}}"), ROUND_SHAPE, "missing list data.result"},
        {SUCCESS("{\"result\":\"[]\"}"), ROUND_SHAPE, "missing list data.result"},
        {"{\"results\":[]}", ROUND_SHAPE, "missing list data.result"},
        {MATRIX("5"), ROUND_SHAPE, "data.result[0]: expected an object"},
        {MATRIX("{},[]"), ROUND_SHAPE, "data.result[1]: expected an object"},
        {MATRIX("{},{},null,{},5"), ROUND_SHAPE, "data.result[2]: expected an object"},
        {VECTOR("{\"histogram\":[]},5"), ROUND_SHAPE, "data.result[1]: expected an object"},
        {VECTOR("{\"histogram\":[]},{\"value\":5}"), ROUND_SHAPE,
         "invalid query response: data.result[1]: expected an object \"metric\" and a list \"value\""},
        {VECTOR("{\"metric\":\"x\",\"value\":[1,\"1\"]}"), ROUND_SHAPE, "data.result[0]: expected an object"},
        {SUCCESS("{\"resultType\":\"scalar\",\"result\":[]}"), ROUND_SHAPE, "expected [time, value]"},
        {SUCCESS("{\"resultType\":\"scalar\",\"result\":[1,\"1\",2]}"), ROUND_SHAPE,
         "expected [time, value]"},
        {SUCCESS("{\"resultType\":\"string\",\"result\":[1,\"text\"]}"), ROUND_SHAPE,
         "unsupported result type \"string\""},
        {SUCCESS("{\"resultType\":\"streams\",\"result\":[{}]}"), ROUND_SHAPE,
         "result type \"streams\""}, /* Loki */
        {"{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}", ROUND_QUERY,
         "timeout: query timed out"},
        {"{\"status\":\"error\",\"error\":\"only \\\"this\\\"\\n\",\"data\":{\"result\":[]}}", ROUND_QUERY,
         "only \"this\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct prom_answer a;
        enum round_error e = parse(str_of(cases[i].body), &a);
        if (e != cases[i].error || !strstr(why, cases[i].reason))
            fail_msg("%s\ngave %s: %s", cases[i].body, round_error_word(e), why);
        buf_done(&a.made);
    }
}

static void rejects_every_truncation(void **state)
{
    static const char body[] = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{"
                               "\"metric\":{\"a\":\"\\u20ac\xc3\xa9\"},"
                               "\"value\":[1718600060.123,\"1\"]}]},\"warnings\":[\"w\"]}";
    struct prom_answer a;

    (void)state;
    assert_int_equal(parse(str_of(body), &a), ROUND_OK);
    buf_done(&a.made);
    for (size_t n = 0; n < sizeof(body) - 1; n++) {
        CLEANUP(cleanup_free) char *exact = malloc(n ? n : 1);
        memcpy(exact, body, n);
        assert_int_equal(parse((struct str){exact, n}, &a), ROUND_JSON);
        buf_done(&a.made);
    }
}

static void finds_the_words_of_an_error(void **state)
{
    static const struct {
        const char *body, *why; /* NULL: not of that form */
    } cases[] = {
        {"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter \\\"query\\\": 1:5: "
         "parse "
         "error: unexpected end of input\"}",
         "bad_data: invalid parameter \"query\": 1:5: parse error: unexpected end of input"},
        {"{\"status\":\"error\",\"error\":\"just this\"}", "just this"},
        {"{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"\"}", "execution: "},
        {"{\"error\":\"e\",\"errorType\":\"t\",\"status\":\"error\",\"data\":null,\"x\":[{}]}", "t: e"},
        {"{\"status\":\"error\",\"errorType\":\"t\",\"error\":\"bad \xff byte\"}",
         "t: bad \xef\xbf\xbd byte"},
        {"{\"status\":\"error\",\"errorType\":\"t\",\"error\":\"two\\nlines\"}", "t: two lines"},
        {"{\"status\":\"error\"}", NULL},
        {"{\"status\":\"error\",\"error\":{\"code\":5}}", NULL},
        {"{\"status\":\"success\",\"error\":\"e\"}", NULL},
        {"{\"error\":\"e\"}", NULL},
        {"{\"status\":\"error\",\"error\":\"e\"", NULL},
        {"{\"status\":\"error\",\"error\":\"e\"} x", NULL},
        {"[]", NULL},
        {"", NULL},
        {"Bad Gateway", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        (void)strcpy(why, "untouched");
        assert_int_equal(prom_answer_error(str_of(cases[i].body), why), cases[i].why != NULL);
        assert_string_equal(why, cases[i].why ? cases[i].why : "untouched");
    }
}

static void cuts_long_words(void **state)
{
    static char body[8192], text[5000];
    struct prom_answer a;

    (void)state;
    memset(text, 'e', sizeof(text) - 1);
    (void)snprintf(body, sizeof(body), "{\"status\":\"error\",\"errorType\":\"%.200s\",\"error\":\"%s\"}",
                   text, text);
    assert_int_equal(parse(str_of(body), &a), ROUND_QUERY);
    assert_int_equal(strlen(why), 1023);
    assert_non_null(strstr(why, "eee…eee"));
    (void)snprintf(body, sizeof(body), "{\"data\":{\"result\":[]},\"warnings\":[\"%s\"]}", text);
    assert_int_equal(parse(str_of(body), &a), ROUND_OK);
    assert_int_equal(strlen(a.warning), sizeof(a.warning) - 1);
    (void)snprintf(body, sizeof(body), SUCCESS("{\"resultType\":\"%s\",\"result\":[]}"), text);
    assert_int_equal(parse(str_of(body), &a), ROUND_SHAPE);
    assert_true(strlen(why) < 200);
}

static void rejects_deep_nesting(void **state)
{
    BUF_AUTO(body, 4u << 20);
    struct prom_answer a;

    (void)state;
    buf_puts(&body, "{\"data\":{\"result\":[{\"metric\":");
    for (int i = 0; i < 1 << 20; i++)
        buf_putc(&body, '[');
    assert_int_equal(buf_failed(&body), 0);
    assert_int_equal(parse(buf_str(&body), &a), ROUND_JSON);
    assert_non_null(strstr(why, "nested deeper than 256 levels"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_series_of_valid_responses),
        cmocka_unit_test(returns_a_matrix_as_a_slice_of_the_body),
        cmocka_unit_test(warns_of_what_is_missing),
        cmocka_unit_test(counts_warnings_and_keeps_the_first),
        cmocka_unit_test(rejects_what_is_not_a_query_response),
        cmocka_unit_test(rejects_every_truncation),
        cmocka_unit_test(finds_the_words_of_an_error),
        cmocka_unit_test(cuts_long_words),
        cmocka_unit_test(rejects_deep_nesting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
