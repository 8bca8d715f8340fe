/* Attribute values as text, as the collector's libraries write them, which Prometheus uses. */
#include "exporter/base/json.h"
#include "exporter/num/num.h"
#include "exporter/otlp/schema.h"
#include "exporter/otlp/translate.h"
#include "exporter/otlp/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { MAP_MAX_KEYS = 1024 };

static int put_json_value(struct str any_value, struct buf *into);

/* ---- Numbers ---- */

/* The digits that num_put_double() wrote as d.ddde+xx, without the exponent. */
static int put_expanded(const char *text, size_t n, struct buf *into)
{
    const char *e = memchr(text, 'e', n);
    char digits[NUM_MAX];
    size_t count = 0;
    long point = strtol(e + 1, NULL, 10) + 1; /* its place among the digits */
    int r = text[0] == '-' ? buf_putc(into, '-') : 0;

    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[count++] = *p;
    if (r == 0 && point <= 0)
        r = buf_puts(into, "0.");
    for (long i = point; i < 0 && r == 0; i++)
        r = buf_putc(into, '0');
    for (size_t i = 0; i < count && r == 0; i++) {
        if (point > 0 && (long)i == point)
            r = buf_putc(into, '.');
        r = r ?: buf_putc(into, digits[i]);
    }
    for (long i = (long)count; i < point && r == 0; i++)
        r = buf_putc(into, '0');
    return r;
}

int translate_bound(double v, struct buf *into)
{
    char text[NUM_MAX + 1];
    size_t n = num_put_double(text, v);

    text[n] = '\0';
    return memchr(text, 'e', n) ? put_expanded(text, n, into) : buf_put(into, text, n);
}

/* As JavaScript prints it: an exponent below 1e-6 and from 1e21. */
static int put_double(double v, struct buf *into)
{
    char text[NUM_MAX];
    double magnitude = fabs(v);

    if (isnan(v) || isinf(v))
        return buf_printf(into, "json: unsupported value: %s", isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
    if (magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21))
        return buf_put(into, text, num_put_double(text, v));
    return translate_bound(v, into);
}

static int put_base64(struct str s, struct buf *into)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int r = 0;

    for (size_t i = 0; i < s.n && r == 0; i += 3) {
        size_t n = size_min(s.n - i, 3);
        unsigned v = (unsigned)(unsigned char)s.p[i] << 16;
        char four[4];
        v |= n > 1 ? (unsigned)(unsigned char)s.p[i + 1] << 8 : 0;
        v |= n > 2 ? (unsigned char)s.p[i + 2] : 0;
        for (unsigned k = 0; k < 4; k++)
            four[k] = (char)(k <= n ? digits[v >> (18 - 6 * k) & 63] : '=');
        r = buf_put(into, four, sizeof(four));
    }
    return r;
}

/* ---- Arrays and maps ---- */

/* A JSON string with the escapes of Go's encoder, which is made for HTML. */
static int put_json_string(struct str s, struct buf *into)
{
    BUF_AUTO(plain, into->max);
    int r = buf_put_json(&plain, s);

    for (size_t i = 0; i < plain.n && r == 0; i++)
        r = strchr("<>&", plain.p[i]) && plain.p[i] ? buf_printf(into, "\\u%04x", (unsigned)plain.p[i])
                                                    : buf_putc(into, plain.p[i]);
    return r;
}

/* The last field of an AnyValue; false for an empty one. */
static bool any_field(struct str any_value, struct wire_field *ret)
{
    struct wire w = wire_of(any_value);
    bool found = false;
    struct wire_field f;

    while (wire_next(&w, &f))
        if (f.number >= ANY_STRING && f.number <= ANY_BYTES) {
            *ret = f;
            found = true;
        }
    return found;
}

static int put_json_array(struct str values, struct buf *into)
{
    struct wire w = wire_of(values);
    struct wire_field f;
    int r = buf_putc(into, '[');
    bool first = true;

    while (r == 0 && wire_next(&w, &f))
        if (f.number == VALUES_VALUES) {
            r = first ? 0 : buf_putc(into, ',');
            r = r ?: put_json_value(f.bytes, into);
            first = false;
        }
    return r ?: buf_putc(into, ']');
}

struct member {
    struct str key, value;
    size_t at; /* the later one of two with the same key wins */
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return str_cmp(x->key, y->key) ?: (x->at > y->at) - (x->at < y->at);
}

void translate_key_value(struct str key_value, struct str *ret_key, struct str *ret_value)
{
    struct wire w = wire_of(key_value);
    struct wire_field f;

    *ret_key = *ret_value = STR("");
    while (wire_next(&w, &f))
        if (f.number == KEY_VALUE_KEY)
            *ret_key = f.bytes;
        else if (f.number == KEY_VALUE_VALUE)
            *ret_value = f.bytes;
}

/* Keys are sorted. */
static int put_json_map(struct str values, struct buf *into)
{
    CLEANUP(cleanup_free) struct member *members = calloc(MAP_MAX_KEYS, sizeof(*members));
    struct wire w = wire_of(values);
    struct wire_field f;
    size_t n = 0;
    int r = members ? buf_putc(into, '{') : -ENOMEM;
    bool first = true;

    while (r == 0 && wire_next(&w, &f))
        if (f.number == VALUES_VALUES && n == MAP_MAX_KEYS)
            r = -EFBIG;
        else if (f.number == VALUES_VALUES) {
            members[n].at = n;
            translate_key_value(f.bytes, &members[n].key, &members[n].value);
            n++;
        }
    if (r == 0)
        qsort(members, n, sizeof(*members), compare_members);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (i + 1 < n && str_eq(members[i].key, members[i + 1].key))
            continue;
        r = first ? 0 : buf_putc(into, ',');
        r = r ?: put_json_string(members[i].key, into);
        r = r ?: buf_putc(into, ':');
        r = r ?: put_json_value(members[i].value, into);
        first = false;
    }
    return r ?: buf_putc(into, '}');
}

static int put_json_value(struct str any_value, struct buf *into)
{
    struct wire_field f;
    int r;

    if (!any_field(any_value, &f))
        return buf_puts(into, "null");
    if (f.number == ANY_STRING)
        return put_json_string(f.bytes, into);
    if (f.number != ANY_BYTES)
        return translate_value(any_value, into);
    r = buf_putc(into, '"');
    r = r ?: put_base64(f.bytes, into);
    return r ?: buf_putc(into, '"');
}

int translate_value(struct str any_value, struct buf *into)
{
    struct wire_field f;

    if (!any_field(any_value, &f))
        return 0;
    switch (f.number) {
    case ANY_STRING:
        return buf_put_str(into, f.bytes);
    case ANY_BOOL:
        return buf_puts(into, f.value ? "true" : "false");
    case ANY_INT:
        return buf_printf(into, "%lld", (long long)f.value);
    case ANY_DOUBLE:
        return put_double(wire_double(f.value), into);
    case ANY_ARRAY:
        return put_json_array(f.bytes, into);
    case ANY_MAP:
        return put_json_map(f.bytes, into);
    default:
        return put_base64(f.bytes, into);
    }
}
