#include "exporter/base/def.h"
#include "exporter/promql/parser.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void takes_what_prometheus_takes(void **state)
{
    static const char *const expressions[] = {
        "",
        "a|b.*[^c]+d?e{2,3}f+?g*?h??",
        "(?:a)(?P<name>b)(?<other>c)(?i)d(?s-i:e)(?U)f",
        "\\d\\D\\s\\S\\w\\W\\b\\B\\pL\\P{Greek}\\x41\\x{20ac}\\n\\A\\z\\012\\.\\*\\(\\?\\+",
        "[]a(?=]+[[:alpha:]+]+[^]\\]+]*",
        "\\Q(?=\\1++\\E+",
        "a+b+",
        "\\++",
        "[a+]+",
        "}+{+a{b}+",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
        if (re2_refuses(str_of(expressions[i])))
            fail_msg("%s: %s", expressions[i], re2_refuses(str_of(expressions[i])));
}

static void refuses_what_prometheus_refuses(void **state)
{
    static const struct {
        const char *expression, *why;
    } cases[] = {
        {"(a)\\1", "back-references"},
        {"(a)\\9", "back-references"},
        {"(?P<n>a)(?P=n)", "look-around and other groups"},
        {"(?<n>a)\\k<n>", "back-references"},
        {"(a)\\g1", "back-references"},
        {"a(?=b)", "look-around and other groups"},
        {"a(?!b)", "look-around and other groups"},
        {"(?<=a)b", "look-around and other groups"},
        {"(?<!a)b", "look-around and other groups"},
        {"(?>a)b", "look-around and other groups"},
        {"(?|a|b)", "look-around and other groups"},
        {"(?R)?", "look-around and other groups"},
        {"(?1)", "look-around and other groups"},
        {"(?x) a", "look-around and other groups"},
        {"(?#a)", "look-around and other groups"},
        {"(*UTF)a", "verbs such as (*ACCEPT)"},
        {"a++", "possessive quantifiers"},
        {"a*+", "possessive quantifiers"},
        {"a?+", "possessive quantifiers"},
        {"a{2}+", "possessive quantifiers"},
        {"\\h", "escape sequences of PCRE2 only"},
        {"\\K", "escape sequences of PCRE2 only"},
        {"\\Z", "escape sequences of PCRE2 only"},
        {"(?", "look-around and other groups"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *why = re2_refuses(str_of(cases[i].expression));

        if (!why || strncmp(why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("%s: %s", cases[i].expression, why ? why : "taken");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_prometheus_takes),
        cmocka_unit_test(refuses_what_prometheus_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
