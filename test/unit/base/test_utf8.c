
#include "exporter/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A heap copy of exactly n bytes, so that AddressSanitizer sees each byte read past the end. */
static char *exact(const char *p, size_t n)
{
    char *copy = malloc(n ? n : 1);

    assert_non_null(copy);
    memcpy(copy, p, n);
    return copy;
}

/* The plainest reading of RFC 3629, by the value: what the tested code must agree with. */
static size_t reference_char(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = n == 0        ? 0
                 : p[0] < 0x80 ? 1
                 : p[0] < 0xc0 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf8 ? 4
                               : 0;
    uint32_t c;

    if (len <= 1 || len > n)
        return len <= n ? len : 0;
    c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : len;
}

static void check(const unsigned char *p, size_t n)
{
    if (utf8_char((struct str){(const char *)p, n}) != reference_char(p, n))
        fail_msg("%02x %02x %02x %02x (%zu)", p[0], p[1], p[2], p[3], n);
}

static void every_two_and_three_bytes(void **state)
{
    (void)state;
    for (unsigned v = 0; v < 1u << 24; v++) {
        unsigned char p[4] = {(unsigned char)(v >> 16), (unsigned char)(v >> 8), (unsigned char)v, 0x80};
        if (p[0] < 0x7f || (p[0] > 0xc3 && p[0] < 0xdf))
            continue;
        check(p, 3);
        if (p[2] == 0)
            check(p, 2);
    }
}

static void four_bytes(void **state)
{
    static const unsigned char edges[] = {0x00, 0x22, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xff};

    (void)state;
    for (unsigned v = 0xe000; v < 0x10000; v++)
        for (size_t i = 0; i < sizeof edges; i++)
            for (size_t k = 0; k < sizeof edges; k++)
                for (size_t n = 1; n <= 4; n++)
                    check((unsigned char[4]){(unsigned char)(v >> 8), (unsigned char)v, edges[i], edges[k]},
                          n);
}

static void every_code_point(void **state)
{
    char out[4];

    (void)state;
    for (uint32_t c = 0; c < 0x110100; c++) {
        size_t n = utf8_write(c, out);
        bool bad = c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff);
        assert_int_equal(n, bad ? 3 : c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        assert_int_equal(reference_char((unsigned char *)out, n), n);
        if (bad)
            assert_memory_equal(out, "\xef\xbf\xbd", 3);
    }
    assert_int_equal(utf8_write(UINT32_MAX, out), 3);
}

static void ill_formed_parts(void **state)
{
    static const struct {
        struct str text;
        size_t part;
    } cases[] = {
        {STR("\x80"), 1},         {STR("\xc0\x80"), 1},         {STR("\xc2"), 1},
        {STR("\xc2\x41"), 1},     {STR("\xe3\x81"), 2},         {STR("\xe3\x81\x41"), 2},
        {STR("\xe0\x80\x80"), 1}, {STR("\xed\xa0\x80"), 1},     {STR("\xf0\x9f\x98"), 3},
        {STR("\xf0\x9f\x41"), 2}, {STR("\xf4\x90\x80\x80"), 1}, {STR("\xff\xff"), 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *p = exact(cases[i].text.p, cases[i].text.n);
        assert_int_equal(utf8_char((struct str){p, cases[i].text.n}), 0);
        assert_int_equal(utf8_bad_part((struct str){p, cases[i].text.n}), cases[i].part);
        free(p);
    }
    assert_int_equal(utf8_bad_part((struct str){NULL, 0}), 0);
    assert_int_equal(utf8_char((struct str){NULL, 0}), 0);
}

static void valid_prefix(void **state)
{
    char text[40];

    (void)state;
    assert_int_equal(utf8_valid_prefix((struct str){NULL, 0}), 0);
    assert_int_equal(utf8_valid_prefix(STR("na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80")), 18);
    for (size_t n = 1; n <= sizeof text; n++)
        for (size_t bad = 0; bad < n; bad++) {
            memset(text, 'a', sizeof text);
            text[bad] = '\xff';
            char *p = exact(text, n);
            assert_int_equal(utf8_valid_prefix((struct str){p, n}), bad);
            p[bad] = 'a';
            assert_int_equal(utf8_valid_prefix((struct str){p, n}), n);
            free(p);
        }
}

static void cut(void **state)
{
    struct str s = STR("a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80");
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10, 10};

    (void)state;
    for (size_t max = 0; max < sizeof want / sizeof want[0]; max++)
        assert_int_equal(utf8_cut(s, max).n, want[max]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_and_three_bytes),
        cmocka_unit_test(four_bytes),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(ill_formed_parts),
        cmocka_unit_test(valid_prefix),
        cmocka_unit_test(cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
