#include "exporter/base/buf.h"
#include "exporter/ui/out.h"
#include "exporter/ui/web_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What a file gives is in test/scenarios/test_web_config.py. */
static void writes_null_without_a_file(void **state)
{
    BUF_AUTO(b, 1000);
    struct out o = out_begin(&b);

    (void)state;
    member_web_config(&o, NULL);
    assert_int_equal(out_end(&o), 0);
    assert_true(str_eq(buf_str(&b), STR("\"webConfig\":null")));
}

static void lists_problems_by_line(void **state)
{
    static const struct {
        const char *problems, *json;
    } cases[] = {
        {NULL, "\"problems\":[]"},
        {"", "\"problems\":[]"},
        {"one\ntwo \"2\"\n", "\"problems\":[\"one\",\"two \\\"2\\\"\"]"},
        {"one\n\nlast", "\"problems\":[\"one\",\"last\"]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        BUF_AUTO(b, 1000);
        struct out o = out_begin(&b);
        member_problems(&o, cases[i].problems);
        assert_int_equal(out_end(&o), 0);
        assert_true(str_eq(buf_str(&b), str_of(cases[i].json)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_null_without_a_file),
        cmocka_unit_test(lists_problems_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
