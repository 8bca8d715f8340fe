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
        assert_int_equal(buf_put_url(&out, (struct str){&byte, 1}), 0);
        assert_true(str_eq(buf_str(&out), str_of(want)));
    }
}

static void appends_to_a_url(void **state)
{
    BUF_AUTO(out, 40);

    (void)state;
    assert_int_equal(buf_puts(&out, "/x?q="), 0);
    assert_int_equal(buf_put_url(&out, STR("a b/\xc3\xa9&=")), 0);
    assert_int_equal(buf_put_url(&out, STR("")), 0);
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

        assert_int_equal(buf_put_label_value(&out, cases[i].plain), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percent_encodes_all_but_unreserved_bytes),
        cmocka_unit_test(appends_to_a_url),
        cmocka_unit_test(escapes_what_ends_a_label_value),
        cmocka_unit_test(remembers_a_value_that_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
