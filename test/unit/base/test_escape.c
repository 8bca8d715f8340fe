#include "exporter/base/buf.h"
#include "exporter/base/escape.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void percent_encodes_all_but_unreserved_bytes(void **state)
{
    static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    (void)state;
    for (int c = 0; c < 256; c++) {
        BUF_AUTO(out, 10);
        char byte = (char)c, want[4] = {byte};

        if (c == 0 || !strchr(unreserved, c))
            (void)snprintf(want, sizeof(want), "%%%02X", (unsigned)c);
        buf_put_url(&out, (struct str){&byte, 1});
        assert_int_equal(buf_failed(&out), 0);
        assert_true(str_eq(buf_str(&out), str_of(want)));
    }
}

static void appends_to_a_url(void **state)
{
    BUF_AUTO(out, 40);

    (void)state;
    buf_puts(&out, "/x?q=");
    buf_put_url(&out, STR("a b/\xc3\xa9&="));
    buf_put_url(&out, STR(""));
    assert_int_equal(buf_failed(&out), 0);
    assert_true(str_eq(buf_str(&out), STR("/x?q=a%20b%2F%C3%A9%26%3D")));
}

static void escapes_what_ends_a_label_value(void **state)
{
    static const struct {
        struct str plain, escaped;
    } cases[] = {
        {STR(""), STR("")},
        {STR("plain"), STR("plain")},
        {STR("a\"b"), STR("a\\\"b")},
        {STR("\\"), STR("\\\\")},
        {STR("\n\\n"), STR("\\n\\\\n")},
        {STR("tab\tand \xc3\xa9 stay"), STR("tab\tand \xc3\xa9 stay")},
        {STR("\0x"), STR("\0x")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(out, 100);
        char room[64];

        buf_put_label_value(&out, cases[i].plain);
        assert_int_equal(buf_failed(&out), 0);
        assert_true(str_eq(buf_str(&out), cases[i].escaped));
        out.n = (size_t)(escape_label_value(room, cases[i].plain) - room);
        assert_true(str_eq((struct str){room, out.n}, cases[i].escaped));
    }
}

static void remembers_a_value_that_does_not_fit(void **state)
{
    BUF_AUTO(out, 5);
    struct buf_mark mark;

    (void)state;
    buf_putc(&out, 'x');
    mark = buf_mark(&out);
    buf_put_url(&out, STR("a b c"));
    assert_int_equal(buf_failed(&out), -EFBIG);
    buf_rollback(&out, mark);
    buf_put_label_value(&out, STR("\"\"\""));
    assert_int_equal(buf_failed(&out), -EFBIG);
    buf_rollback(&out, mark);
    buf_put_url(&out, STR("a ")); /* fits to the byte */
    assert_int_equal(buf_failed(&out), 0);
    assert_int_equal(out.n, 5);
}

/* JSON allows all of them in a string. The neighbours of each range stay. */
static void escapes_what_moves_a_cursor(void **state)
{
    static const struct {
        struct str plain, escaped;
    } cases[] = {
        {STR(""), STR("")},
        {STR("a\x7f~"), STR("a\\u007f~")},
        {STR("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), STR("\\u0080\\u009b\\u009f\xc2\xa0")},
        {STR("\xd8\x9b\xd8\x9c"), STR("\xd8\x9b\\u061c")},
        {STR("\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90"),
         STR("\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90")},
        {STR("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf"),
         STR("\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf")},
        {STR("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa"),
         STR("\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa")},
        {STR("\xf0\x9f\x98\x80 \xe2\x82\xac"), STR("\xf0\x9f\x98\x80 \xe2\x82\xac")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(out, 100);

        buf_put_visible(&out, cases[i].plain);
        assert_int_equal(buf_failed(&out), 0);
        assert_true(str_eq(buf_str(&out), cases[i].escaped));
        buf_truncate(&out, 0);
        buf_put_json_visible(&out, cases[i].plain);
        assert_int_equal(buf_failed(&out), 0);
        assert_int_equal(out.n, cases[i].escaped.n + 2);
        assert_true(str_eq((struct str){out.p + 1, out.n - 2}, cases[i].escaped));
    }
}

static void a_visible_string_is_escaped_as_any(void **state)
{
    BUF_AUTO(out, 100);

    (void)state;
    buf_put_json_visible(&out, STR("\x1b[31m\"\\\n\xff\xc2\x9b"));
    assert_int_equal(buf_failed(&out), 0);
    assert_true(str_eq(buf_str(&out), STR("\"\\u001b[31m\\\"\\\\\\n\xef\xbf\xbd\\u009b\"")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percent_encodes_all_but_unreserved_bytes),
        cmocka_unit_test(appends_to_a_url),
        cmocka_unit_test(escapes_what_ends_a_label_value),
        cmocka_unit_test(remembers_a_value_that_does_not_fit),
        cmocka_unit_test(escapes_what_moves_a_cursor),
        cmocka_unit_test(a_visible_string_is_escaped_as_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
