#include "exporter/base/def.h"
#include "exporter/base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void matches_patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"abc", "abd", false},
        {"abc", "ab", false},
        {"ab", "abc", false},
        {"ABC", "abc", false},
        {"*", "", true},
        {"*", "anything", true},
        {"**", "x", true},
        {"prod-*", "prod-", true},
        {"prod-*", "prod-eu-1", true},
        {"prod-*", "preprod-1", false},
        {"*-eu", "prod-eu", true},
        {"*-eu", "prod-eu-1", false},
        {"*eu*", "prod-eu-1", true},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXcYb", false},
        {"*a*a*", "a", false},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"c?", "c1", true},
        {"c??", "c1", false},
        {"?", "\xc3\xa4", true},
        {"?", "\xf0\x9f\x98\x80", true},
        {"??", "\xc3\xa4", false},
        {"*?", "\xc3\xa4", true},
        {"a?c",
         "a\xc3\xa4"
         "c",
         true},
        {"\xc3\xa4", "\xc3\xa4", true},
        {"[ab]", "a", false},
        {"[ab]", "[ab]", true},
        {"\\*", "*", false},
        {"a.c", "abc", false},
        {"*?*?*", "ab", true},
        {"*?*?*", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (glob_match(cases[i].pattern, cases[i].text) != cases[i].match)
            fail_msg("`%s` and `%s`", cases[i].pattern, cases[i].text);
}

/* Exponential with naive backtracking. */
static void matches_many_stars_in_bounded_time(void **state)
{
    char pattern[202], text[2001];

    (void)state;
    for (size_t i = 0; i < 200; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[200] = 'b';
    pattern[201] = '\0';
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(glob_match(pattern, text));
    text[1999] = 'b';
    assert_true(glob_match(pattern, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_patterns),
        cmocka_unit_test(matches_many_stars_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
