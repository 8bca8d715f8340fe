#include "exporter/base/buf.h"
#include "exporter/base/inflate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <zlib.h>

#include <cmocka.h>

enum { GZIP = 31, ZLIB = 15, TEXT_BYTES = 300000 };

/* Appends `text` to `into`, compressed. */
static void pack(struct buf *into, struct str text, int format)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text.p, .avail_in = (unsigned)text.n};
    char *room;

    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(buf_reserve(into, deflateBound(&z, text.n), &room), 0);
    z.next_out = (unsigned char *)room;
    z.avail_out = (unsigned)deflateBound(&z, text.n);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    into->n += z.total_out;
    (void)deflateEnd(&z);
}

static char *long_text(void)
{
    char *text = malloc(TEXT_BYTES);

    assert_non_null(text);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = (char)('a' + i * i % 23);
    return text;
}

static void decodes_gzip_and_deflate(void **state)
{
    static const int formats[] = {GZIP, ZLIB};
    CLEANUP(cleanup_free) char *text = long_text();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        BUF_AUTO(packed, 1 << 20);
        BUF_AUTO(out, 1 << 20);
        pack(&packed, (struct str){text, TEXT_BYTES}, formats[i]);
        buf_puts(&out, "before ");
        assert_int_equal(buf_failed(&out), 0);
        assert_int_equal(inflate_body(buf_str(&packed), &out, NULL), 0);
        assert_int_equal(out.n, 7 + TEXT_BYTES);
        assert_memory_equal(out.p + 7, text, TEXT_BYTES);
    }
}

static void decodes_several_members(void **state)
{
    BUF_AUTO(packed, 1 << 20);
    BUF_AUTO(out, 1 << 20);

    (void)state;
    pack(&packed, STR("one "), GZIP);
    pack(&packed, STR(""), GZIP);
    pack(&packed, STR("two"), GZIP);
    assert_int_equal(inflate_body(buf_str(&packed), &out, NULL), 0);
    assert_int_equal(out.n, 7);
    assert_memory_equal(out.p, "one two", 7);
}

static void decodes_byte_by_byte(void **state)
{
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    BUF_AUTO(packed, 1 << 20);
    BUF_AUTO(out, 1 << 20);

    (void)state;
    pack(&packed, STR("one "), GZIP);
    pack(&packed, STR("two"), GZIP);
    for (size_t i = 0; i < packed.n; i++) {
        struct str rest = {packed.p + i, 1}, piece;

        while (inflate_next(d, &rest, &piece) > 0)
            buf_put_str(&out, piece);
        assert_int_equal(buf_failed(&out), 0);
        assert_int_equal(rest.n, 0);
    }
    assert_int_equal(inflate_end(d), 0);
    assert_int_equal(out.n, 7);
    assert_memory_equal(out.p, "one two", 7);
}

/* A piece of one packet becomes a thousand times as much: it comes out in steps, between which the caller may
 * do something else. */
static void decodes_in_steps(void **state)
{
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    CLEANUP(cleanup_free) char *zeros = calloc(1, 1 << 20);
    BUF_AUTO(packed, 2 << 20);
    struct str rest, piece;
    size_t n = 0, steps = 0;

    (void)state;
    pack(&packed, (struct str){zeros, 1 << 20}, GZIP);
    assert_true(packed.n < 16 << 10);
    for (rest = buf_str(&packed); inflate_next(d, &rest, &piece) > 0; steps++) {
        assert_true(piece.n <= INFLATE_BYTES);
        n += piece.n;
    }
    assert_int_equal(rest.n, 0);
    assert_int_equal(inflate_end(d), 0);
    assert_int_equal(n, 1 << 20);
    assert_true(steps >= n / INFLATE_BYTES);
}

/* A bomb is given up as soon as the ceiling is reached. */
static void stops_at_the_ceiling(void **state)
{
    CLEANUP(cleanup_free) char *text = long_text();
    BUF_AUTO(packed, 1 << 20);
    BUF_AUTO(exact, TEXT_BYTES);
    BUF_AUTO(less, TEXT_BYTES - 1);

    (void)state;
    pack(&packed, (struct str){text, TEXT_BYTES}, GZIP);
    assert_int_equal(inflate_body(buf_str(&packed), &exact, NULL), 0);
    assert_int_equal(inflate_body(buf_str(&packed), &less, NULL), -EFBIG);
    assert_int_equal(less.n, 0);
}

static void check_refused(struct str body, const char *expected)
{
    CLEANUP(cleanup_free) char *why = NULL;
    BUF_AUTO(out, 1 << 20);

    buf_puts(&out, "x");
    assert_int_equal(buf_failed(&out), 0);
    assert_int_equal(inflate_body(body, &out, &why), -EBADMSG);
    assert_string_equal(why, expected);
    assert_int_equal(out.n, 1);
}

static void refuses_a_damaged_body(void **state)
{
    BUF_AUTO(packed, 1 << 20);

    (void)state;
    pack(&packed, STR("content"), GZIP);
    check_refused(STR("plain text"), "is not gzip");
    check_refused(STR(""), "ends early, after 0 bytes");
    check_refused((struct str){packed.p, packed.n - 1}, "ends early, after 26 bytes");
    buf_puts(&packed, "more");
    assert_int_equal(buf_failed(&packed), 0);
    check_refused(buf_str(&packed), "is followed by other data");
    packed.p[packed.n - 12] ^= 1;
    packed.n -= 4;
    check_refused(buf_str(&packed), "is damaged: incorrect data check");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_gzip_and_deflate), cmocka_unit_test(decodes_several_members),
        cmocka_unit_test(decodes_byte_by_byte),     cmocka_unit_test(decodes_in_steps),
        cmocka_unit_test(stops_at_the_ceiling),     cmocka_unit_test(refuses_a_damaged_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
