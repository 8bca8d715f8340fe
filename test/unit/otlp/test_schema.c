#include "exporter/base/buf.h"
#include "exporter/otlp/schema.h"

#include "exporter/base/varint.h"
#include "exporter/otlp/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Wraps `b` into a field of bytes. */
static void wrap(struct buf *b, unsigned number)
{
    BUF_AUTO(inner, b->max);
    char text[2 * VARINT_MAX];
    char *end = put_varint(put_varint(text, number << 3 | WIRE_BYTES), b->n);

    assert_int_equal(buf_put(&inner, text, (size_t)(end - text)), 0);
    assert_int_equal(buf_put(&inner, b->p, b->n), 0);
    buf_truncate(b, 0);
    assert_int_equal(buf_put(b, inner.p, inner.n), 0);
}

/* A request whose only point has these bytes. */
static void wrap_point(struct buf *b)
{
    static const unsigned path[] = {DATA_POINTS, METRIC_GAUGE, SCOPE_METRICS_METRICS,
                                    RESOURCE_METRICS_SCOPE_METRICS, EXPORT_RESOURCE_METRICS};

    for (size_t i = 0; i < ARRAY_SIZE(path); i++)
        wrap(b, path[i]);
}

static void check_point(struct str bytes, const char *expected)
{
    char why[SCHEMA_WHY_BYTES] = "";
    BUF_AUTO(b, 1 << 20);
    int r;

    assert_int_equal(buf_put_str(&b, bytes), 0);
    wrap_point(&b);
    r = schema_check(buf_str(&b), why);
    assert_int_equal(r, expected ? -EBADMSG : 0);
    assert_string_equal(why, expected ? expected : "");
}

static void accepts_points_with_unknown_fields(void **state)
{
    (void)state;
    check_point(STR(""), NULL);
    check_point(STR("\x19\1\2\3\4\5\6\7\10"), NULL);
    check_point(STR("\xa0\x06\x01\xaa\x06\x03xyz\xad\x06zzzz"), NULL);
}

static void refuses_malformed_points(void **state)
{
    static const struct {
        struct str bytes;
        const char *why;
    } cases[] = {
        {STR("\x18\x01"), "timeUnixNano has the wrong wire type at byte 10"},
        {STR("\x38\x01"), "attributes has the wrong wire type at byte 10"},
        {STR("\x3a\x01\x0a"), "malformed field at byte 12"},
        {STR("\x3a\x05\x0a\x01k"), "malformed field at byte 10"},
        {STR("\x19\1\2\3"), "malformed field at byte 10"},
        {STR("\x1b"), "malformed field at byte 10"},
        {STR("\x1c"), "malformed field at byte 10"},
        {STR("\x00\x01"), "malformed field at byte 10"},
        {STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "malformed field at byte 10"},
        {STR("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "malformed field at byte 10"},
        {STR("\x80\x80\x80\x80\x80\x80\x01\x01"), "malformed field at byte 10"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_point(cases[i].bytes, cases[i].why);
}

/* Each proper prefix of a request is refused, but the empty one. */
static void refuses_a_cut_request(void **state)
{
    char why[SCHEMA_WHY_BYTES];
    BUF_AUTO(b, 1 << 20);

    (void)state;
    assert_int_equal(buf_puts(&b, "\x19zzzzzzzz\x3a\x03\x0a\x01k"), 0);
    wrap_point(&b);
    for (size_t n = 1; n < b.n; n++) {
        char *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, b.p, n);
        assert_int_equal(schema_check((struct str){copy, n}, why), -EBADMSG);
        free(copy);
    }
}

static void limits_the_depth(void **state)
{
    char why[SCHEMA_WHY_BYTES] = "";

    (void)state;
    for (unsigned depth = 1; depth < 100; depth++) {
        BUF_AUTO(b, 1 << 20);
        for (unsigned i = 0; i < depth; i++) {
            wrap(&b, VALUES_VALUES);
            wrap(&b, ANY_ARRAY);
        }
        wrap(&b, KEY_VALUE_VALUE);
        wrap(&b, NUMBER_ATTRIBUTES);
        wrap_point(&b);
        /* Export, resource, scope, metric, gauge, point, attribute, value, and two for each array. */
        assert_int_equal(schema_check(buf_str(&b), why), 8 + 2 * depth <= SCHEMA_MAX_DEPTH ? 0 : -EBADMSG);
    }
    assert_non_null(strstr(why, " is nested too deeply at byte "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_points_with_unknown_fields),
        cmocka_unit_test(refuses_malformed_points),
        cmocka_unit_test(refuses_a_cut_request),
        cmocka_unit_test(limits_the_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
