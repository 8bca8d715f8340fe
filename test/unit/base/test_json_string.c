#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A heap copy of exactly s.n bytes, so that AddressSanitizer sees each byte read past the end. */
static char *exact(struct str s)
{
    char *copy = malloc(s.n ? s.n : 1);

    assert_non_null(copy);
    if (s.n)
        memcpy(copy, s.p, s.n);
    return copy;
}

static void keys(void **state)
{
    (void)state;
    assert_true(jr_key_is(STR("score"), "score"));
    assert_true(jr_key_is(STR("\\u0073core"), "score"));
    assert_true(jr_key_is(STR("sc\\u006Fr\\u0065"), "score"));
    assert_true(jr_key_is(STR(""), ""));
    assert_true(jr_key_is(STR("a\\/b"), "a/b"));
    assert_true(jr_key_is(STR("\\ud83d\\ude00"), "\xf0\x9f\x98\x80"));
    assert_true(jr_key_is(STR("\xc3\xa9t\\u00e9"), "\xc3\xa9t\xc3\xa9"));
    assert_false(jr_key_is(STR("scor"), "score"));
    assert_false(jr_key_is(STR("scores"), "score"));
    assert_false(jr_key_is(STR("scorf"), "score"));
    assert_false(jr_key_is(STR("Score"), "score"));
    assert_false(jr_key_is(STR(""), "score"));
    assert_false(jr_key_is(STR("s"), ""));
    assert_false(jr_key_is(STR("\\u0000"), ""));
    assert_false(jr_key_is(STR("score\\u0000"), "score"));
    assert_false(jr_key_is(STR("sco\\u0072"), "score"));
    assert_false(jr_key_is(STR("\\n"), "n"));
}

static void unescape(void **state)
{
    static const struct {
        struct str raw, text;
    } cases[] = {
        {STR(""), STR("")},
        {STR("plain"), STR("plain")},
        {STR("\\\"\\\\\\/\\b\\f\\n\\r\\t"), STR("\"\\/\b\f\n\r\t")},
        {STR("\\u0041\\u00e9\\u65e5\\uD83D\\uDE00"), STR("A\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80")},
        {STR("a\\u0000b"), STR("a\0b")},
        {STR("\\ud83d"), STR("\xef\xbf\xbd")},
        {STR("\\ude00\\ud83d"), STR("\xef\xbf\xbd\xef\xbf\xbd")},
        {STR("\\ud83d\\u0041"), STR("\xef\xbf\xbd"
                                    "A")},
        {STR("\\ud83dx"), STR("\xef\xbf\xbdx")},
        {STR("\\udbff\\udfff"), STR("\xf4\x8f\xbf\xbf")},
        {STR("\\uFFFF"), STR("\xef\xbf\xbf")},
        {STR("\xff"), STR("\xef\xbf\xbd")},
        {STR("\xe6\x97x"), STR("\xef\xbf\xbdx")},
        {STR("\xed\xa0\x80"), STR("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")},
        {STR("\xc3"), STR("\xef\xbf\xbd")},
        {STR("\xe6\x97\xa5"), STR("\xe6\x97\xa5")},
        /* No parser lets these through; they are mended all the same. */
        {STR("\\"), STR("\xef\xbf\xbd")},
        {STR("\\x"), STR("\xef\xbf\xbdx")},
        {STR("\\u12"), STR("\xef\xbf\xbdu12")},
    };
    char around[] = "0123456789012345678901234567890123456789";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t before = 0; before < sizeof around; before++) {
            char raw[128], want[128], *out, *in;
            size_t n = before + cases[i].raw.n;
            memcpy(raw, around, before);
            memcpy(raw + before, cases[i].raw.p, cases[i].raw.n);
            memcpy(want, around, before);
            memcpy(want + before, cases[i].text.p, cases[i].text.n);
            in = exact((struct str){raw, n});
            out = exact((struct str){want, 0});
            out = realloc(out, 3 * n + 1);
            assert_non_null(out);
            assert_int_equal(jr_unescape((struct str){in, n}, out), before + cases[i].text.n);
            assert_memory_equal(out, want, before + cases[i].text.n);
            free(in);
            free(out);
        }
}

static void put_string(void **state)
{
    static const struct {
        struct str text, json;
    } cases[] = {
        {STR(""), STR("\"\"")},
        {STR("a\"b\\c/"), STR("\"a\\\"b\\\\c/\"")},
        {STR("\b\t\n\v\f\r\x01\x1f\x7f"), STR("\"\\b\\t\\n\\u000b\\f\\r\\u0001\\u001f\x7f\"")},
        {STR("a\0b"), STR("\"a\\u0000b\"")},
        {STR("\xe6\x97\xa5\xf0\x9f\x98\x80"), STR("\"\xe6\x97\xa5\xf0\x9f\x98\x80\"")},
        {STR("\xff\xe6\x97x"), STR("\"\xef\xbf\xbd\xef\xbf\xbdx\"")},
        {STR("a name that is longer than thirty-two bytes"),
         STR("\"a name that is longer than thirty-two bytes\"")},
        {STR("a name that is longer than thirty-two\nbytes"),
         STR("\"a name that is longer than thirty-two\\nbytes\"")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *in = exact(cases[i].text);
        struct str s = {in, cases[i].text.n};
        BUF_AUTO(b, 64);
        buf_puts(&b, "x");
        buf_put_json(&b, s);
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(b.n, 1 + cases[i].json.n);
        assert_memory_equal(b.p + 1, cases[i].json.p, cases[i].json.n);
        /* A ceiling anywhere inside is remembered. */
        for (size_t max = 1; max < 1 + cases[i].json.n; max++) {
            BUF_AUTO(small, max);
            buf_puts(&small, "x");
            buf_put_json(&small, s);
            assert_int_equal(buf_failed(&small), -EFBIG);
        }
        free(in);
    }
}

static void position(void **state)
{
    static const struct {
        size_t offset;
        unsigned line, column;
    } cases[] = {{0, 1, 1}, {2, 1, 3}, {3, 2, 1}, {4, 3, 1}, {6, 3, 3}, {7, 3, 4}, {99, 3, 4}};
    unsigned line, column;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        jr_position(STR("ab\n\ncde"), cases[i].offset, &line, &column);
        assert_int_equal(line, cases[i].line);
        assert_int_equal(column, cases[i].column);
    }
    jr_position((struct str){NULL, 0}, 0, &line, &column);
    assert_int_equal(line, 1);
    assert_int_equal(column, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(unescape),
        cmocka_unit_test(put_string),
        cmocka_unit_test(position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
