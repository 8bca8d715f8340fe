#include "exporter/base/regex.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void explains_an_invalid_expression(void **state)
{
    static const struct {
        const char *expression, *why;
    } cases[] = {
        {"(", "missing closing parenthesis at offset 1"},
        {"a)", "unmatched closing parenthesis at offset 1"},
        {"*", "quantifier does not follow a repeatable item at offset 0"},
        {"[z-a]", "range out of order in character class at offset 3"},
        {"a\\", "\\ at end of pattern at offset 2"},
        {"\\C", "using \\C is disabled by the application at offset 2"},
        {"\xff", "UTF-8 error"},
    };
    char why[REGEX_WHY_BYTES];
    struct regex *x = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(regex_new(&x, str_of(cases[i].expression), why), -EINVAL);
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("%s: %s", cases[i].expression, why);
        assert_null(x);
    }
}

static void limits_length_groups_and_nesting(void **state)
{
    char text[2048], why[REGEX_WHY_BYTES];
    struct regex *x = NULL;

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_int_equal(regex_new(&x, (struct str){text, REGEX_MAX_BYTES}, why), 0);
    x = regex_free(x);
    assert_int_equal(regex_new(&x, (struct str){text, REGEX_MAX_BYTES + 1}, why), -EINVAL);
    for (size_t i = 0; i < 100; i++)
        memcpy(text + 3 * i, "(a)", 3);
    assert_int_equal(regex_new(&x, (struct str){text, 3 * 99}, why), 0);
    x = regex_free(x);
    assert_int_equal(regex_new(&x, (struct str){text, 3 * 100}, why), -EINVAL);
    assert_string_equal(why, "more than 99 groups");
    memset(text, '(', 60);
    memset(text + 60, ')', 60);
    assert_int_equal(regex_new(&x, (struct str){text, 120}, why), -EINVAL);
}

static void returns_groups_by_number_and_name(void **state)
{
    struct regex_matcher *m = NULL;
    struct regex *x = NULL;
    char why[REGEX_WHY_BYTES];

    (void)state;
    assert_int_equal(regex_new(&x, STR("(?P<one>a+)(b)?(?<three>c)"), why), 0);
    m = regex_matcher_new();
    assert_int_equal(regex_match(m, x, STR("aab")), 0);
    assert_int_equal(regex_match(m, x, STR("")), 0);
    assert_int_equal(regex_match(m, x, STR("aa\xff")), -EINVAL);
    assert_int_equal(regex_match(m, x, STR("aac")), 1);
    assert_true(str_eq(regex_group(m, STR("0")), STR("aac")));
    assert_true(str_eq(regex_group(m, STR("1")), STR("aa")));
    assert_true(str_eq(regex_group(m, STR("one")), STR("aa")));
    assert_true(str_eq(regex_group(m, STR("three")), STR("c")));
    for (size_t i = 0; i < 8; i++) {
        static const char *const none[] = {"2", "4", "01", "100", "99999999999999999999", "two", "1x", ""};

        assert_int_equal(regex_group(m, str_of(none[i])).n, 0);
    }
    (void)regex_free(x);
    (void)regex_matcher_free(m);
}

static void stops_at_its_limits(void **state)
{
    struct regex_matcher *m = NULL;
    struct regex *x = NULL;
    char why[REGEX_WHY_BYTES], *subject = malloc(1 << 20);

    (void)state;
    assert_non_null(subject);
    memset(subject, 'a', 1 << 20);
    m = regex_matcher_new();
    assert_int_equal(regex_new(&x, STR("(a|b)*(a|b)*(a|b)*c"), why), 0);
    assert_int_equal(regex_match(m, x, (struct str){subject, 1 << 20}), -ELOOP);
    assert_int_equal(regex_match(m, x, STR("aac")), 1); /* the matcher is good for the next match */
    (void)regex_free(x);
    assert_int_equal(regex_new(&x, STR("(a*)(b?)"), why), 0);
    assert_int_equal(regex_match(m, x, (struct str){subject, 1 << 20}), 1);
    (void)regex_free(x);
    (void)regex_matcher_free(m);
    free(subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_an_invalid_expression),
        cmocka_unit_test(limits_length_groups_and_nesting),
        cmocka_unit_test(returns_groups_by_number_and_name),
        cmocka_unit_test(stops_at_its_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
