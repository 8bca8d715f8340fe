#include "exporter/base/buf.h"
#include "exporter/models/llm_wire.h"

#include "exporter/base/def.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

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
    static const struct llm_settings s = {"a \"model\"", 0.5, 64};
    BUF_AUTO(b, 1000);

    (void)state;
    assert_int_equal(llm_put_request(&b, &s, false, STR("one\ntwo")), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "{\"model\":\"a \\\"model\\\"\",\"prompt\":\"one\\ntwo\",\"temperature\":0.5,"
                             "\"max_tokens\":64}");
    b.n = 0;
    assert_int_equal(llm_put_request(&b, &s, true, STR("p")), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p,
                        "{\"model\":\"a \\\"model\\\"\",\"messages\":[{\"role\":\"user\",\"content\":\"p\"}],"
                        "\"temperature\":0.5,\"max_tokens\":64}");
}

static void stops_at_the_ceiling(void **state)
{
    static const struct llm_settings s = {"m", 0, 64};
    BUF_AUTO(b, 40);

    (void)state;
    assert_int_equal(llm_put_request(&b, &s, true, STR("a long prompt of many words")), -EFBIG);
}

static void reads_answers(void **state)
{
    static const struct {
        const char *body, *text, *why;
    } cases[] = {
        {"{\"choices\":[{\"text\":\" 0.5\\n\"},{\"text\":\"7\"}]}", " 0.5\n", NULL},
        {"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"0.5\"}}],\"usage\":{}}", "0.5",
         NULL},
        {"{\"choices\":[{\"text\":\"\"}]}", "", NULL},
        {"{\"choices\":[]}", NULL, "neither choices[0].text"},
        {"{\"choices\":[{\"message\":{\"content\":null}}]}", NULL, "neither choices[0].text"},
        {"{\"choices\":[{\"message\":null}]}", NULL, "neither choices[0].text"},
        {"{\"error\":{\"message\":\"x\"}}", NULL, "neither choices[0].text"},
        {"{\"choices\":{}}", NULL, "not valid: expected an array"},
        {"{\"choices\":[3]}", NULL, "not valid: expected an object"},
        {"[]", NULL, "not valid: expected an object"},
        {"", NULL, "not valid: unexpected end"},
        {"{\"choices\":[{\"text\":\"a\"}]} x", NULL, "not valid"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1000);
        char why[LLM_REASON_BYTES] = "";
        bool ok = llm_read_answer(str_of(cases[i].body), &b, why);
        if (ok != (cases[i].text != NULL) || (ok && !str_eq(buf_str(&b), str_of(cases[i].text))) ||
            (!ok && !strstr(why, cases[i].why)))
            fail_msg("%s: \"%.*s\" %s", cases[i].body, STR_ARG(buf_str(&b)), why);
    }
}

static void survives_a_lack_of_memory(void **state)
{
    char why[LLM_REASON_BYTES];

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        static const struct llm_settings s = {"m", 0, 64};
        BUF_AUTO(b, 1000);
        BUF_AUTO(text, 1000);
        int r = llm_put_request(&b, &s, true, STR("prompt"));
        bool ok = llm_read_answer(STR("{\"choices\":[{\"text\":\"0.5\"}]}"), &text, why);
        assert_true((r == 0 && ok) || oom_happened());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_chat_by_its_path),    cmocka_unit_test(writes_requests),
        cmocka_unit_test(stops_at_the_ceiling),      cmocka_unit_test(reads_answers),
        cmocka_unit_test(survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
