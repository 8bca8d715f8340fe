#include "controller/placement/items.h"

#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void makes_rfc_1123_subdomains(void **state)
{
    static const struct {
        const char *score, *want;
    } cases[] = {
        {"cpu", "cpu"},
        {"Sample_My_Score", "sample-my-score"},
        {"a__b--c_-d", "a-b-c-d"},
        {"-_a_-", "a"},
        {"..a..", "a"},
        {"v1.2", "v1.2"},
        {"a..b", "a.b"},
        {"a-.b", "a.b"},
        {"a.-b", "a.b"},
        {"a-.-b", "a.b"},
        {"", "score"},
        {"___", "score"},
        {"\xe6\xb8\xa9\xe5\xba\xa6", "score"},
        {"t\xc3\xa9mp", "t-mp"},
        {"a b/c\\d", "a-b-c-d"},
        {"0", "0"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char got[OBJECT_NAME_MAX + 1];
        size_t n = object_name(str_of(cases[i].score), got);

        assert_string_equal(got, cases[i].want);
        assert_int_equal(n, strlen(cases[i].want));
    }
}

static void never_exceeds_253_bytes(void **state)
{
    char text[600], got[OBJECT_NAME_MAX + 1];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_int_equal(object_name((struct str){text, sizeof(text)}, got), OBJECT_NAME_MAX);
    text[252] = '_'; /* the last that finds room */
    assert_int_equal(object_name((struct str){text, sizeof(text)}, got), 252);
    assert_int_equal(got[251], 'a');
    assert_int_equal(got[252], '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(makes_rfc_1123_subdomains),
                                       cmocka_unit_test(never_exceeds_253_bytes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
