#include "exporter/base/def.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct str nothing = {NULL, 0};

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static void compares_bytes(void **state)
{
    static const struct {
        struct str a, b;
        int want;
    } cases[] = {
        {STR(""), STR(""), 0},          {STR("a"), STR("a"), 0},        {STR(""), STR("a"), -1},
        {STR("a"), STR("b"), -1},       {STR("a"), STR("ab"), -1},      {STR("b"), STR("ab"), 1},
        {STR("A"), STR("a"), -1},       {STR("a\0b"), STR("a\0c"), -1}, {STR("a"), STR("a\0"), -1},
        {STR("\x7f"), STR("\x80"), -1}, {STR("\xff"), STR("a"), 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(sign(str_cmp(cases[i].a, cases[i].b)), cases[i].want);
        assert_int_equal(sign(str_cmp(cases[i].b, cases[i].a)), -cases[i].want);
        assert_int_equal(str_eq(cases[i].a, cases[i].b), cases[i].want == 0);
    }
    assert_int_equal(str_cmp(nothing, STR("")), 0);
    assert_true(str_eq(nothing, STR("")));
}

static void compares_letters_alike(void **state)
{
    static const struct {
        struct str a, b;
        bool want;
    } cases[] = {
        {STR(""), STR(""), true},         {STR("gZip"), STR("GzIP"), true},
        {STR("a1-_"), STR("A1-_"), true}, {STR("ab"), STR("a"), false},
        {STR("@"), STR("`"), false}, /* 0x20 apart, like letters */
        {STR("["), STR("{"), false},      {STR("\xc3\xa4"), STR("\xc3\x84"), false}, /* ASCII only */
        {STR("a\0b"), STR("A\0B"), true}, {STR("a\0b"), STR("a\0c"), false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(str_eq_nocase(cases[i].a, cases[i].b), cases[i].want);
    assert_true(str_eq_nocase(nothing, STR("")));
}

static void finds_prefixes(void **state)
{
    (void)state;
    assert_true(str_starts(STR("abc"), STR("")));
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_true(str_starts(STR("abc"), STR("abc")));
    assert_false(str_starts(STR("abc"), STR("abcd")));
    assert_false(str_starts(STR("abc"), STR("b")));
    assert_true(str_starts(nothing, STR("")));
    assert_false(str_starts(nothing, STR("a")));
}

static void trims_white_space(void **state)
{
    static const struct {
        struct str in, want;
    } cases[] = {
        {STR(""), STR("")},         {STR(" \t\r\n"), STR("")},    {STR("a"), STR("a")},
        {STR(" a b "), STR("a b")}, {STR("\r\n\tx\n"), STR("x")}, {STR("\v\f"), STR("\v\f")},
        {STR(" \0 "), STR("\0")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_true(str_eq(str_trim(cases[i].in), cases[i].want));
    assert_int_equal(str_trim(nothing).n, 0);
}

static void takes_null_for_nothing(void **state)
{
    char text[16];

    (void)state;
    assert_int_equal(str_of(NULL).n, 0);
    assert_non_null(str_of(NULL).p);
    assert_true(str_eq(str_of("abc"), STR("abc")));
    assert_string_equal(cstr(NULL), "");
    assert_string_equal(cstr("x"), "x");
    assert_int_equal(snprintf(text, sizeof(text), "%.*s|%.*s", STR_ARG(nothing), STR_ARG(STR("ab"))), 3);
    assert_string_equal(text, "|ab");
}

static void tells_classes_of_characters(void **state)
{
    (void)state;
    assert_true(str_has_only(STR("aZ09_"), "_-"));
    assert_true(str_has_only(nothing, ""));
    assert_false(str_has_only(STR("a.b"), "_-"));
    assert_false(str_has_only(STR("a\0b"), "_-"));
    assert_false(str_has_only(STR("\xc3\xa4"), "_-"));
}

static void reads_decimal_numbers(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"0042", true, 42},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", true, UINT64_MAX},
        {"99999999999999999999999", true, UINT64_MAX},
        {"", false, 7},
        {"-1", false, 7},
        {"1 ", false, 7},
        {"0x10", false, 7},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t v = 7;

        assert_int_equal(str_to_u64(str_of(cases[i].text), &v), cases[i].good);
        if (cases[i].good)
            assert_int_equal(v, cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_bytes),         cmocka_unit_test(compares_letters_alike),
        cmocka_unit_test(finds_prefixes),         cmocka_unit_test(trims_white_space),
        cmocka_unit_test(takes_null_for_nothing), cmocka_unit_test(tells_classes_of_characters),
        cmocka_unit_test(reads_decimal_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
