#include "controller/check/check.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define RESULT(metric, score) "{\"metric\":{" metric "},\"score\":" score "}"
#define ANSWER(results)       "{\"results\":[" results "]}"

static void names_the_rule_of_an_answer_that_agents_refuse(void **state)
{
    static const struct {
        const char *body;
        enum rule rule;
    } cases[] = {
        {"<html>", RULE_JSON},
        {"", RULE_JSON},
        {"{\"results\":[", RULE_JSON},
        {"[]", RULE_RESULTS},
        {"{}", RULE_RESULTS},
        {"{\"results\":{}}", RULE_RESULTS},
        {"{\"results\":[],\"results\":[]}", RULE_RESULTS},
        {ANSWER("1,2"), RULE_RESULTS},
        {ANSWER(RESULT("", "\"high\"")), RULE_SCORE},
        {ANSWER("{\"metric\":{}}"), RULE_SCORE},
        {ANSWER("{\"metric\":1,\"score\":1}"), RULE_LABEL_STRINGS},
        {ANSWER(RESULT("\"pod\":[]", "1")), RULE_LABEL_STRINGS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reading_of_answer a;

        answer_read(&a, "c1", "s", str_of(cases[i].body));
        assert_int_not_equal(a.error, ROUND_OK);
        assert_int_equal(a.rule, cases[i].rule);
        assert_true(*a.why && !a.batch);
    }
}

static void counts_what_agents_lose(void **state)
{
    struct reading_of_answer a;
    struct str body = STR(ANSWER(RESULT("\"pod\":\"a\"", "1") "," RESULT("\"pod\":\"a\"", "2") "," RESULT(
        "\"pod\":\"b\"", "NaN") "," RESULT("\"pod\":\"c\"", "null")));

    (void)state;
    answer_read(&a, "c1", "s", body);
    assert_int_equal(a.error, ROUND_OK);
    assert_int_equal(series_count(a.batch->set), 2);
    assert_int_equal(a.stats.results, 4);
    assert_int_equal(a.stats.invalid, 1);
    assert_int_equal(a.rule, RULE_SCORE);
    assert_int_equal(a.duplicates, 1);
    assert_int_equal(a.not_finite, 1);
    assert_string_equal(a.odd_label, "");
    answer_done(&a);
}

static void finds_labels_that_are_no_strings(void **state)
{
    static const struct {
        const char *body, *want;
    } cases[] = {
        {ANSWER(RESULT("\"pod\":\"a\",\"gpu\":0", "1")), "results[0].metric.gpu: expected a string"},
        {ANSWER(RESULT("\"pod\":\"a\"", "1") "," RESULT("\"pod\":null", "1")),
         "results[1].metric.pod: expected a string"},
        {"{\"other\":{\"metric\":{\"a\":1}},\"results\":[{\"metric\":null,\"score\":1,\"x\":2}]}", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reading_of_answer a;

        answer_read(&a, "c1", "s", str_of(cases[i].body));
        assert_string_equal(a.odd_label, cases[i].want);
        answer_done(&a);
    }
}

static void compares_series_with_and_without_meta(void **state)
{
    struct reading_of_answer one, other;

    (void)state;
    answer_read(&one, "c1", "s", STR(ANSWER(RESULT("\"pod\":\"a\",\"meta\":\"1\"", "1"))));
    answer_read(&other, "c1", "s",
                STR(ANSWER(RESULT("\"pod\":\"a\",\"meta\":\"2\"",
                                  "1") "," RESULT("\"pod\":\"b\",\"meta\":\"1\"", "1"))));
    assert_true(answer_new_series(one.batch, one.batch, true) == SIZE_MAX);
    assert_true(answer_new_series(one.batch, other.batch, false) == SIZE_MAX);
    assert_int_equal(answer_new_series(one.batch, other.batch, true), 0);
    assert_true(answer_new_series(other.batch, one.batch, false) != SIZE_MAX);
    answer_done(&one);
    answer_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_rule_of_an_answer_that_agents_refuse),
        cmocka_unit_test(counts_what_agents_lose),
        cmocka_unit_test(finds_labels_that_are_no_strings),
        cmocka_unit_test(compares_series_with_and_without_meta),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
