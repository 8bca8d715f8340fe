/* Formats of score items: which names they match. */
#include "controller/assist/rules/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const apps[] = {"app01", "app01;x", "a"}, *const devices[] = {"2g", "x;2g", "aa"};
static char found[256];

static size_t index_of(const char *const *list, struct str name)
{
    for (size_t i = 0; i < 3; i++)
        if (str_eq(name, str_of(list[i])))
            return i;
    return SIZE_MAX;
}

static size_t find_app(void *arg, struct str name)
{
    (void)arg;
    return index_of(apps, name);
}

static size_t find_device(void *arg, struct str name)
{
    (void)arg;
    return index_of(devices, name);
}

static void note(void *arg, size_t app, size_t device)
{
    size_t n = strlen(found);

    (void)arg;
    (void)snprintf(found + n, sizeof(found) - n, "[%s %s]", app == SIZE_MAX ? "*" : apps[app],
                   device == SIZE_MAX ? "*" : devices[device]);
}

static void matches(const char *format, const char *name, const char *expected)
{
    struct score_format f;
    const char *why = NULL;

    found[0] = '\0';
    assert_int_equal(score_format_parse(&f, str_of(format), &why), 0);
    score_format_match(&f, str_of(name), &(struct score_matcher){find_app, find_device, note, NULL});
    assert_string_equal(found, expected);
}

static void refuses(const char *format, const char *expected)
{
    struct score_format f;
    const char *why = NULL;

    assert_true(score_format_parse(&f, str_of(format), &why) < 0);
    assert_string_equal(why, expected);
}

static void finds_app_and_device(void **state)
{
    (void)state;
    matches("${app};${device}", "app01;2g", "[app01 2g]");
    matches("${device}/${app}", "2g/app01", "[app01 2g]");
    matches("score-${app}-on-${device}-x", "score-app01-on-2g-x", "[app01 2g]");
    matches("${app};${device}", "app02;2g", "");
    matches("${app};${device}", "app01;3g", "");
    matches("${app};${device}", "app01,2g", "");
    matches("${app};${device}", ";2g", "");
    matches("${app};${device}", "", "");
}

static void takes_other_text_literally(void **state)
{
    (void)state;
    matches("${app}.*${device}", "app01.*2g", "[app01 2g]");
    matches("${app}.*${device}", "app01xx2g", "");
    matches("$app;${device}", "$app;2g", "[* 2g]");
    matches("${app};${device}$", "app01;2g$", "[app01 2g]");
}

static void lets_other_placeholders_match_anything(void **state)
{
    (void)state;
    matches("${node};${app};${device}", "n1;app01;2g", "[app01 2g]");
    matches("${app};${device};${zone}", "app01;2g;", "");
    matches("${device}", "2g", "[* 2g]");
    matches("${app}", "app01", "[app01 *]");
    matches("all", "all", "[* *]");
}

static void finds_every_way_to_read_a_name(void **state)
{
    (void)state;
    matches("${app};${device}", "app01;x;2g", "[app01 x;2g][app01;x 2g]");
    matches("${app}${device}", "aaa", "[a aa]");
}

static void gives_up_on_names_with_too_many_ways(void **state)
{
    (void)state;
    matches("${a}a${b}a${c}a${d}a${e}a${app}",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "");
}

static void refuses_malformed_formats(void **state)
{
    (void)state;
    refuses("", "is empty");
    refuses("${app", "has a ${ without its }");
    refuses("${}", "has a placeholder without a name");
    refuses("${app}${app}", "has a placeholder twice");
    refuses("${a}.${a}.${a}.${a}.${a}.${a}.${a}.${a}.${a}", "has more than 16 parts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_app_and_device),
        cmocka_unit_test(takes_other_text_literally),
        cmocka_unit_test(lets_other_placeholders_match_anything),
        cmocka_unit_test(finds_every_way_to_read_a_name),
        cmocka_unit_test(gives_up_on_names_with_too_many_ways),
        cmocka_unit_test(refuses_malformed_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
