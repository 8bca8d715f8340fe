#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/models/llm_text.h"
#include "exporter/models/wire.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- The prompt ---- */

static const double times[] = {1718600000, 1718600060, 1718600120.5};
static const double values[] = {5, NAN, -0.25};
static const struct input_series series = {.metric = STR("{\"namespace\":\"n\",\"pod\":\"p\\u0031\"}"),
                                           .times = times,
                                           .values = values,
                                           .n = ARRAY_SIZE(times)};

static void fills_placeholders(void **state)
{
    static const struct {
        const char *text, *prompt;
    } cases[] = {
        {"${values}", "1718600000 : 5\n1718600120.5 : -0.25\n"},
        {"a ${app_name} b", "a p1 b"},
        {"${labels}", "{\"namespace\":\"n\",\"pod\":\"p\\u0031\"}"},
        {"${timeseries_kind}/${tendency}", "KIND/it ${rises}"},
        {"costs $5, $ and $", "costs $5, $ and $"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_prompt p = {cases[i].text, "KIND", "it ${rises}"};
        BUF_AUTO(b, 1000);

        assert_int_equal(llm_put_prompt(&b, &p, &series), 0);
        assert_int_equal(buf_putc(&b, '\0'), 0);
        assert_string_equal(b.p, cases[i].prompt);
    }
}

static void names_a_series_without_a_pod(void **state)
{
    static const struct llm_prompt p = {"${app_name}", "", ""};
    struct input_series other = series;
    BUF_AUTO(b, 1000);

    (void)state;
    other.metric = STR("{\"namespace\":\"n\",\"pod\":7}");
    assert_int_equal(llm_put_prompt(&b, &p, &other), 0);
    other.metric = STR("{}");
    assert_int_equal(llm_put_prompt(&b, &p, &other), 0);
    assert_true(str_eq(buf_str(&b), STR("nunknown")));
}

static void checks_templates(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"${values}", NULL},
        {llm_default_template, NULL},
        {"$ {values} ${values} {labels}", NULL},
        {"a\n${values} ${what}", "line 2: unknown placeholder \"${what}\""},
        {"${values", "line 1: unknown placeholder \"${values\""},
        {"only ${labels}", "no ${values}"},
        {"", "no ${values}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *why = NULL;
        assert_int_equal(llm_template_check(cases[i].text, &why), cases[i].why ? -EINVAL : 0);
        assert_true(!cases[i].why || strstr(why, cases[i].why));
        free(why);
    }
}

/* ---- The API ---- */

static void knows_chat_by_its_path(void **state)
{
    (void)state;
    assert_true(llm_is_chat("http://h/v1/chat/completions"));
    assert_true(llm_is_chat("http://h/v1/chat/completions/?a=b"));
    assert_false(llm_is_chat("http://h/v1/completions"));
    assert_false(llm_is_chat("http://h/?x=/chat/completions"));
    assert_false(llm_is_chat(""));
}

static void writes_requests(void **state)
{
    BUF_AUTO(b, 1000);
    BUF_AUTO(small, 40);

    (void)state;
    assert_int_equal(llm_put_request(&b, false, "a \"model\"", 0.5, 64, STR("one\ntwo")), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "{\"model\":\"a \\\"model\\\"\",\"prompt\":\"one\\ntwo\",\"temperature\":0.5,"
                             "\"max_tokens\":64}");
    buf_truncate(&b, 0);
    assert_int_equal(llm_put_request(&b, true, "m", 0, 7, STR("p")), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"p\"}],"
                             "\"temperature\":0,\"max_tokens\":7}");
    assert_int_equal(llm_put_request(&small, true, "m", 0, 64, STR("a long prompt of many words")), -EFBIG);
}

static void reads_answers(void **state)
{
    static const struct {
        const char *body;
        enum llm_answer read;
        const char *why;
    } cases[] = {
        {"{\"choices\":[{\"text\":\" 0.5\\n\"},{\"text\":\"7\"}]}", LLM_NUMBER, ""},
        {"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"0.5\"}}],\"usage\":{}}",
         LLM_NUMBER, ""},
        {"{\"choices\":[{\"text\":\"\"}]}", LLM_NO_NUMBER, "the answer has no number: \"\""},
        {"{\"choices\":[]}", LLM_INVALID, "neither choices[0].text"},
        {"{\"choices\":[{\"message\":{\"content\":null}}]}", LLM_INVALID, "neither choices[0].text"},
        {"{\"choices\":[{\"message\":null}]}", LLM_INVALID, "neither choices[0].text"},
        {"{\"error\":{\"message\":\"x\"}}", LLM_INVALID, "neither choices[0].text"},
        {"{\"choices\":{}}", LLM_INVALID, "neither choices[0].text"},
        {"{\"choices\":[3]}", LLM_INVALID, "neither choices[0].text"},
        {"[]", LLM_INVALID, "neither choices[0].text"},
        {"", LLM_INVALID, "not valid"},
        {"{\"choices\":[{\"text\":\"a\"}]} x", LLM_INVALID, "not valid"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[LLM_REASON_BYTES] = "";
        double v = 0;
        enum llm_answer read = llm_read_answer(str_of(cases[i].body), &v, why);

        if (read != cases[i].read || (read == LLM_NUMBER && v != 0.5) || !strstr(why, cases[i].why))
            fail_msg("%s: %d, %g, \"%s\"", cases[i].body, (int)read, v, why);
    }
}

/* ---- The number ---- */

static const struct {
    const char *text;
    double number; /* NAN: none */
} numbers[] = {
    {"0.83", 0.83},
    {" 85\n", 85},
    {"-2.5", -2.5},
    {"+7", 7},
    {".5", 0.5},
    {"007", 7},
    {"1e3", 1000},
    {"2.5E-2", 0.025},
    {"\xe2\x88\x92"
     "4.5",
     -4.5},
    {"1,234.5", 1234.5},
    {"12,345,678", 12345678},
    {"The next value is 1,234.", 1234},
    {"The forecast is **0.42**.", 0.42},
    {"`0.42`", 0.42},
    {"$0.42$", 0.42},
    {"85%", 85},
    {"Answer:0.42", 0.42},
    {"value = 0.42 (rising)", 0.42},
    {"{\"value\":0.42}", 0.42},
    {"[0.42, 0.43]", 0.42},
    {"0.42, 0.43", 0.42},
    {"In 2024-06-17 12:30:00 it was high: 0.42", 0.42},
    {"1. The next value is 0.42\n2. It rises", 0.42},
    {"1.\n", 1},
    {"Qwen2.5 says 3", 3},
    {"after the 10th step: 7", 7},
    {"over 60s it is 8", 8},
    {"", NAN},
    {"I'm sorry, but I can't help with that.", NAN},
    {"12:30", NAN},
    {"2024/06/17", NAN},
    {"1,23", NAN},
    {"1234,567", NAN},
    {",5", 5},
    {"1,234,56", NAN},
    {"1e999", NAN},
    {"NaN", NAN},
    {"Infinity", NAN},
    {"--5", NAN},
    {"1.2.3", NAN},
    {"- -", NAN},
    {"\xe2\x88\x92", NAN},
};

static void finds_the_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        double v = NAN;
        bool found = llm_find_number(str_of(numbers[i].text), &v);
        if (found == isnan(numbers[i].number) || (found && v != numbers[i].number))
            fail_msg("\"%s\": %s %g, want %g", numbers[i].text, found ? "found" : "nothing, not", v,
                     numbers[i].number);
    }
}

static void reads_long_words(void **state)
{
    char text[300];
    double v;

    (void)state;
    memset(text, '1', sizeof(text));
    assert_false(llm_find_number((struct str){text, sizeof(text)}, &v));
    text[63] = ' ';
    assert_true(llm_find_number((struct str){text, sizeof(text)}, &v));
    memcpy(text, "\xe2\x88\x92", 3);
    assert_true(llm_find_number((struct str){text, sizeof(text)}, &v));
    assert_true(v < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_placeholders), cmocka_unit_test(names_a_series_without_a_pod),
        cmocka_unit_test(checks_templates),   cmocka_unit_test(knows_chat_by_its_path),
        cmocka_unit_test(writes_requests),    cmocka_unit_test(reads_answers),
        cmocka_unit_test(finds_the_number),   cmocka_unit_test(reads_long_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
