#include "exporter/base/def.h"
#include "exporter/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void makes_one_line(void **state)
{
    static const struct {
        struct str in;
        const char *want;
    } cases[] = {
        {STR(""), ""},
        {STR(" \r\n "), ""},
        {STR("plain"), "plain"},
        {STR("  two\nlines\r\n"), "two lines"},
        {STR("a\tb\x01\x1b[31mc\x7f!"), "a b  [31mc !"},
        {STR("nul\0inside"), "nul inside"},
        {STR("sm\xc3\xb8r \xe2\x82\xac \xf0\x9f\x98\x80"), "sm\xc3\xb8r \xe2\x82\xac \xf0\x9f\x98\x80"},
        {STR("bad\xff."), "bad\xef\xbf\xbd."},
        {STR("cut\xe2\x82"), "cut\xef\xbf\xbd"},
        {STR("\xed\xa0\x80"),
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate: three ill-formed parts */
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        text_line(out, sizeof(out), cases[i].in);
        assert_string_equal(out, cases[i].want);
    }
}

static void cuts_only_what_is_too_long(void **state)
{
    static const struct {
        size_t size;
        const char *in, *want;
    } cases[] = {
        {8, "1234567", "1234567"},
        {8, "12345678", "1234..."},
        {8, "123456 ", "123456"},
        {8, "1234\xe2\x82\xac", "1234\xe2\x82\xac"},
        {8, "12345\xe2\x82\xac", "1234..."},
        {8,
         "12\xe2\x82\xac"
         "456",
         "12..."}, /* between characters */
        {8, "123\xff\xff", "123..."},
        {4, "123", "123"},
        {4, "1234", "..."},
        {5, "\xe2\x82\xac", "\xe2\x82\xac"},
        {5, "12345", "1..."},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char out[16];
        memset(out, '#', sizeof(out));
        text_line(out, cases[i].size, str_of(cases[i].in));
        assert_string_equal(out, cases[i].want);
        assert_int_equal(out[cases[i].size], '#');
    }
}

static void keeps_the_end_of_a_long_text(void **state)
{
    char text[2000], out[201];

    (void)state;
    for (size_t size = 64; size <= sizeof(out); size++) {
        size_t n = 0, tail = size / 3, head = size - 4 - tail;
        while (n < size)
            n += (size_t)sprintf(text + n, "%c%c", 'a' + (char)(n % 26), 'b' + (char)(n % 26));
        text_line(out, size, str_of(text));
        assert_int_equal(strlen(out), size - 1);
        assert_memory_equal(out, text, head);
        assert_memory_equal(out + head, "...", 3);
        assert_string_equal(out + head + 3, text + n - tail);
    }
    /* Between characters on both sides, and with more bytes out than in. */
    for (size_t i = 0; i < 700; i++)
        memcpy(text + 2 * i, "\xc3\xa4", 3);
    text_line(out, 100, str_of(text));
    assert_int_equal(strlen(out), 97);
    assert_memory_equal(out + 62, "...\xc3\xa4", 5);
    memset(text, 0xff, 90);
    text[90] = '\0';
    text_line(out, 100, str_of(text));
    assert_int_equal(strlen(out), 99);
    assert_memory_equal(out + 63, "...\xef\xbf\xbd", 6);
}

static void reads_json_strings(void **state)
{
    static const struct {
        const char *raw, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a\\nb\\\"c\\\\", "a b\"c\\"},
        {"\\u20ac\\ud83d\\ude00", "\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\\ud83d lone", "\xef\xbf\xbd lone"},
        {"\\u0000", ""},
        {"x\\u0000y", "x y"},
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        text_line_json(out, sizeof(out), str_of(cases[i].raw));
        assert_string_equal(out, i == 5 ? " " : cases[i].want);
    }
    text_line_json(out, sizeof(out), (struct str){NULL, 0});
    assert_string_equal(out, "");
}

static void names_statuses(void **state)
{
    static const struct {
        long status;
        const char *body, *want;
    } cases[] = {
        {502, "", "HTTP 502 Bad Gateway"},
        {404, "not\nhere\n", "HTTP 404 Not Found: not here"},
        {500, " \n", "HTTP 500 Internal Server Error"},
        {299, "x", "HTTP 299: x"},
        {599, "", "HTTP 599"},
        {999, "odd", "HTTP 999: odd"},
        {0, "", "HTTP 0"},
        {-5, "", "HTTP -5"},
        {500, "<html>\xff</html>", "HTTP 500 Internal Server Error: <html>\xef\xbf\xbd</html>"},
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        text_http_status(out, sizeof(out), cases[i].status, str_of(cases[i].body));
        assert_string_equal(out, cases[i].want);
    }
}

static void statuses_fit_any_room(void **state)
{
    static char body[5000];

    (void)state;
    memset(body, 'b', sizeof(body));
    for (size_t size = 1; size < 60; size++) {
        char out[64];
        memset(out, '#', sizeof(out));
        text_http_status(out, size, 502, (struct str){body, sizeof(body)});
        assert_non_null(memchr(out, '\0', size));
        assert_int_equal(out[size], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_one_line),     cmocka_unit_test(cuts_only_what_is_too_long),
        cmocka_unit_test(reads_json_strings), cmocka_unit_test(keeps_the_end_of_a_long_text),
        cmocka_unit_test(names_statuses),     cmocka_unit_test(statuses_fit_any_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
