/* Random documents, whole and damaged, read by jr_skip() and by jansson: both must take the same ones, and
 * find the same strings and numbers in them. What jansson does otherwise, knowingly: it refuses numbers
 * past a double or an int64, surrogate escapes that stand alone, and NUL in names; it overlooks a NUL byte
 * after a number, so there are none here; its depth limit is not reached. */
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DOCUMENTS = 200000, MAX_DOCUMENT = 1500, MAX_DEPTH = 6 };

static uint64_t random_u64(void)
{
    static uint64_t x = 0x2545f4914f6cdd1d;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static unsigned below(unsigned n)
{
    return (unsigned)(random_u64() >> 33) % n;
}

static void put(struct buf *b, const char *s)
{
    buf_puts(b, s);
    assert_int_equal(buf_failed(b), 0);
}

#define PUT_ONE_OF(b, ...)                                   \
    do {                                                     \
        static const char *const list[] = {__VA_ARGS__};     \
        put(b, list[below(sizeof(list) / sizeof(list[0]))]); \
    } while (0)

static void put_space(struct buf *b)
{
    if (below(8) == 0)
        PUT_ONE_OF(b, " ", "\n", "\t", "\r\n", "    ", "\n        ");
}

static void put_text(struct buf *b)
{
    put(b, "\"");
    for (unsigned i = below(12); i > 0; i--)
        switch (below(10)) {
        case 0:
            PUT_ONE_OF(b, "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\u0041", "\\ud83d\\ude00", "\\uFFFF",
                       "\\b\\f\\r\\t");
            break;
        case 1:
            PUT_ONE_OF(b, "\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80", "\xef\xbf\xbd", "\x7f");
            break;
        case 2:
            PUT_ONE_OF(
                b, "a label of some length, longer than a block is, so that scanning takes several steps");
            break;
        default:
            PUT_ONE_OF(b, "a", "node", "10.0.0.1:9100", " ", "prometheus-node-exporter", "{}[],:", "x-y_z");
        }
    put(b, "\"");
}

static void put_number(struct buf *b)
{
    char text[NUM_MAX];
    double v;

    if (below(3) == 0) {
        PUT_ONE_OF(b, "0", "-0", "1", "-1", "10", "0.5", "1e5", "1E-5", "-2.5e+3", "9223372036854775807",
                   "1e-400", "1.7976931348623157e308", "0.1e1", "123456789012345678", "0e0",
                   "3.14159265358979323846264338327950288");
        return;
    }
    v = (double)random_u64() / (double)(random_u64() | 1);
    buf_put(b, text, num_put_double(text, v));
    assert_int_equal(buf_failed(b), 0);
}

static void put_samples(struct buf *b)
{
    put(b, "[");
    for (unsigned i = 0, n = below(6); i < n; i++) {
        buf_printf(b, "%s[%u", i ? "," : "", 1718600000 + 60 * i);
        assert_int_equal(buf_failed(b), 0);
        PUT_ONE_OF(b, "", "", ".1", ".12", ".123", ".1234");
        PUT_ONE_OF(b, ",\"", ",\"", ",\"", ", \"", ",\"+Inf", ",\"\\u0031");
        buf_printf(b, "%.*g\"]", 1 + (int)below(17), 1.0 / (1 + below(100000)));
        assert_int_equal(buf_failed(b), 0);
    }
    put(b, "]");
}

static void put_value(struct buf *b, int depth)
{
    unsigned kind = below(depth < MAX_DEPTH && b->n < MAX_DOCUMENT ? 9 : 5), n = below(5);

    put_space(b);
    if (kind < 2)
        put_text(b);
    else if (kind < 4)
        put_number(b);
    else if (kind == 4)
        PUT_ONE_OF(b, "true", "false", "null");
    else if (kind == 5)
        put_samples(b);
    put_space(b);
    if (kind < 6)
        return;
    put(b, kind == 6 ? "[" : "{");
    for (unsigned i = 0; i < n; i++) {
        put(b, i ? "," : "");
        if (kind != 6) {
            put_space(b);
            put_text(b);
            put(b, ":");
        }
        put_value(b, depth + 1);
    }
    put(b, kind == 6 ? "]" : "}");
    put_space(b);
}

/* One to three bytes changed, put in, or taken out; or the text cut short. */
static void damage(struct buf *b)
{
    static const char bytes[] = "\"\"\\[]{},:0123.-+eEu \n\ttnf/\x01\x1f\x80\xbf\xc3\xe6\xed\xa0\xff\\uD8";
    char *room;

    for (unsigned i = 1 + below(3); i > 0 && b->n > 0; i--) {
        size_t at = below((unsigned)b->n);
        assert_int_equal(buf_reserve(b, 1, &room), 0);
        switch (below(8)) {
        case 0:
            b->n = at;
            break;
        case 1:
        case 2:
            memmove(b->p + at, b->p + at + 1, b->n - at - 1);
            b->n--;
            break;
        case 3:
        case 4:
            memmove(b->p + at + 1, b->p + at, b->n - at);
            b->n++;
            b->p[at] = bytes[below(sizeof bytes - 1)];
            break;
        default:
            b->p[at] = bytes[below(sizeof bytes - 1)];
        }
    }
}

static void same_text(struct str raw, const char *text, size_t n)
{
    char *out = malloc(3 * raw.n + 1);
    size_t got;

    assert_non_null(out);
    got = jr_unescape(raw, out);
    if (got != n || memcmp(out, text, n) != 0)
        fail_msg("`%.*s` became `%.*s`", STR_ARG(raw), (int)got, out);
    free(out);
}

static void same_value(struct jr *j, const json_t *want);

static void same_members(struct jr *j, const json_t *want)
{
    struct str key;
    char *name;

    jr_object(j);
    while (jr_member(j, &key)) {
        name = malloc(3 * key.n + 1);
        assert_non_null(name);
        const json_t *value = json_object_getn(want, name, jr_unescape(key, name));
        assert_non_null(value);
        free(name);
        same_value(j, value);
    }
}

/* Whether the object at j has a name twice: then jansson keeps the last and there is nothing to compare
 * with. */
static bool has_duplicates(struct jr j, const json_t *want)
{
    struct str key;
    size_t n = 0;

    for (jr_object(&j); jr_member(&j, &key); n++)
        jr_skip(&j, NULL);
    return n != json_object_size(want);
}

static void same_value(struct jr *j, const json_t *want)
{
    struct str s = {0};
    size_t i = 0;
    double v;

    switch (jr_peek(j)) {
    case JR_OBJECT:
        assert_int_equal(json_typeof(want), JSON_OBJECT);
        if (has_duplicates(*j, want))
            jr_skip(j, NULL);
        else
            same_members(j, want);
        break;
    case JR_ARRAY:
        assert_int_equal(json_typeof(want), JSON_ARRAY);
        for (jr_array(j); jr_item(j); i++)
            same_value(j, json_array_get(want, i));
        assert_int_equal(i, json_array_size(want));
        break;
    case JR_STRING:
        assert_int_equal(json_typeof(want), JSON_STRING);
        assert_true(jr_string(j, &s));
        same_text(s, json_string_value(want), json_string_length(want));
        break;
    case JR_NUMBER:
        assert_true(json_is_number(want) && jr_number(j, &s));
        assert_int_equal(num_parse(s, &v), NUM_OK);
        assert_true(v == json_number_value(want));
        break;
    case JR_TRUE:
        assert_int_equal(json_typeof(want), JSON_TRUE);
        jr_skip(j, NULL);
        break;
    case JR_FALSE:
        assert_int_equal(json_typeof(want), JSON_FALSE);
        jr_skip(j, NULL);
        break;
    case JR_NULL:
        assert_int_equal(json_typeof(want), JSON_NULL);
        jr_skip(j, NULL);
        break;
    default:
        fail();
    }
}

static bool known_difference(const json_error_t *e)
{
    return json_error_code(e) == json_error_numeric_overflow ||
           json_error_code(e) == json_error_null_byte_in_key ||
           strncmp(e->text, "invalid Unicode '\\u", 19) == 0;
}

/* Returns whether the text is good JSON. */
static bool compare(const struct buf *b)
{
    char *copy = malloc(b->n ? b->n : 1);
    struct str text = {copy, b->n}, whole;
    json_error_t error;
    struct jr j;
    json_t *want;
    bool good;

    assert_non_null(copy);
    memcpy(copy, b->n ? b->p : "", b->n);
    jr_init(&j, text, JR_STRICT);
    good = jr_skip(&j, &whole) && jr_end(&j);
    want = json_loadb(copy, b->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (good != (want != NULL) && (want || !known_difference(&error)))
        fail_msg("`%.*s`: %s at %zu, jansson: %s", (int)text.n, text.p, cstr(j.error), j.error_at,
                 want ? "good" : error.text);
    if (good && want) {
        jr_init(&j, whole, JR_STRICT);
        same_value(&j, want);
        assert_true(jr_end(&j));
    }
    json_decref(want);
    free(copy);
    return good;
}

static void whole_and_damaged(void **state)
{
    unsigned good = 0;

    (void)state;
    for (int i = 0; i < DOCUMENTS; i++) {
        BUF_AUTO(b, 1u << 20);
        put_value(&b, 0);
        if (i % 4 == 0) {
            assert_true(compare(&b));
        } else {
            damage(&b);
            good += compare(&b);
        }
    }
    /* Damage must leave enough good documents and enough bad ones for this to mean something. */
    assert_in_range(good, DOCUMENTS / 20, DOCUMENTS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_and_damaged)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
