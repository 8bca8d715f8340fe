/* OTLP in JSON becomes OTLP in protobuf, so that one reader is enough. A message's length is known only
 * after its contents have been written, so lengths are padded to LENGTH_BYTES. */
#include "exporter/base/base64.h"
#include "exporter/base/json.h"
#include "exporter/base/varint.h"
#include "exporter/num/num.h"
#include "exporter/otlp/schema.h"
#include "exporter/otlp/wire.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { LENGTH_BYTES = 5, TEXT_MAX = 64 };

struct transcoder {
    struct jr in;
    struct buf *out;
    int error; /* of `out` */
};

static bool put_message(struct transcoder *t, const struct schema_message *m, unsigned depth);

static bool fail(struct transcoder *t, int r)
{
    if (t->error == 0)
        t->error = r;
    return jr_fail(&t->in, "output");
}

static bool put_bytes(struct transcoder *t, const void *p, size_t n)
{
    int r = buf_put(t->out, p, n);

    return r == 0 || fail(t, r);
}

static bool put_number(struct transcoder *t, uint64_t v)
{
    char text[VARINT_MAX];

    return put_bytes(t, text, (size_t)(put_varint(text, v) - text));
}

static bool put_tag(struct transcoder *t, unsigned number, enum wire_type type)
{
    return put_number(t, (uint64_t)number << 3 | type);
}

/* Reserves room for a length; *ret is where its contents begin. */
static bool begin_length(struct transcoder *t, size_t *ret)
{
    static const char zeros[LENGTH_BYTES];

    if (!put_bytes(t, zeros, sizeof(zeros)))
        return false;
    *ret = t->out->n;
    return true;
}

static void end_length(struct transcoder *t, size_t begin)
{
    char *p = t->out->p + begin - LENGTH_BYTES;
    size_t n = t->out->n - begin;

    for (size_t i = 0; i < LENGTH_BYTES; i++, n >>= 7)
        p[i] = (char)((n & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

/* The text of a number, which may be in quotes. */
static bool number_text(struct transcoder *t, struct str *ret)
{
    return jr_peek(&t->in) == JR_STRING ? jr_string(&t->in, ret) : jr_number(&t->in, ret);
}

static bool read_double(struct transcoder *t, double *ret)
{
    struct str s;

    if (!number_text(t, &s))
        return false;
    if (str_eq(s, STR("Infinity")) || str_eq(s, STR("-Infinity"))) {
        *ret = s.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    return num_parse_word(s, ret) == NUM_OK || jr_fail(&t->in, "expected a number");
}

static bool has_fraction(struct str s)
{
    return s.n && (memchr(s.p, '.', s.n) || memchr(s.p, 'e', s.n) || memchr(s.p, 'E', s.n));
}

/* An integer from -2^63 to 2^64 - 1, in two's complement; 1.0 and 1e3 are integers too. */
static bool read_integer(struct transcoder *t, uint64_t *ret)
{
    struct str s, digits;
    bool negative;
    double v;

    if (!number_text(t, &s))
        return false;
    negative = s.n && s.p[0] == '-';
    digits = negative ? (struct str){s.p + 1, s.n - 1} : s;
    if (digits.n < 20 && str_to_u64(digits, ret) && (!negative || *ret <= UINT64_C(1) << 63)) {
        *ret = negative ? 0 - *ret : *ret;
        return true;
    }
    if (digits.n == 20 && !negative && str_to_u64(digits, ret) &&
        (*ret < UINT64_MAX || str_eq(digits, STR("18446744073709551615"))))
        return true;
    if (!has_fraction(s) || num_parse(s, &v) != NUM_OK || v != floor(v) || v < -0x1p63 || v >= 0x1p64)
        return jr_fail(&t->in, "expected an integer");
    *ret = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
    return true;
}

static bool put_scalar(struct transcoder *t, enum schema_kind kind)
{
    uint64_t v;
    double d;

    switch (kind) {
    case KIND_BOOL:
        v = jr_peek(&t->in) == JR_TRUE;
        if (!v && jr_peek(&t->in) != JR_FALSE)
            return jr_fail(&t->in, "expected true or false");
        return jr_skip(&t->in, NULL) && put_number(t, v);
    case KIND_DOUBLE:
        return read_double(t, &d) && put_bytes(t, &d, sizeof(d));
    case KIND_FIXED64:
    case KIND_SFIXED64:
        return read_integer(t, &v) && put_bytes(t, &v, sizeof(v));
    case KIND_SINT32:
        return read_integer(t, &v) &&
               put_number(t, (uint32_t)v << 1 ^ (uint32_t)((int32_t)(uint32_t)v >> 31));
    default:
        return read_integer(t, &v) && put_number(t, v);
    }
}

static bool json_string(struct transcoder *t)
{
    struct str raw;
    size_t begin;
    char *room;
    int r;

    if (!jr_string(&t->in, &raw) || !begin_length(t, &begin))
        return false;
    r = buf_room(t->out, raw.n * 3, &room);
    if (r < 0)
        return fail(t, r);
    t->out->n += jr_unescape(raw, room);
    end_length(t, begin);
    return true;
}

static bool json_base64(struct transcoder *t)
{
    struct str raw;
    size_t begin;
    int r;

    if (!jr_string(&t->in, &raw) || !begin_length(t, &begin))
        return false;
    r = base64_decode(raw, t->out);
    if (r < 0)
        return r == -EINVAL ? jr_fail(&t->in, "expected base64") : fail(t, r);
    end_length(t, begin);
    return true;
}

/* One value of the field: of a list the next element. */
static bool put_value(struct transcoder *t, const struct schema_field *f, unsigned depth)
{
    static const enum wire_type types[] = {
        [KIND_MESSAGE] = WIRE_BYTES,   [KIND_STRING] = WIRE_BYTES,     [KIND_BYTES] = WIRE_BYTES,
        [KIND_BOOL] = WIRE_VARINT,     [KIND_VARINT] = WIRE_VARINT,    [KIND_SINT32] = WIRE_VARINT,
        [KIND_FIXED64] = WIRE_FIXED64, [KIND_SFIXED64] = WIRE_FIXED64, [KIND_DOUBLE] = WIRE_FIXED64,
    };
    size_t begin;

    if (!put_tag(t, f->number, types[f->kind]))
        return false;
    if (f->kind == KIND_STRING)
        return json_string(t);
    if (f->kind == KIND_BYTES)
        return json_base64(t);
    if (f->kind != KIND_MESSAGE)
        return put_scalar(t, f->kind);
    if (depth == SCHEMA_MAX_DEPTH)
        return jr_fail(&t->in, "nested too deeply");
    if (!begin_length(t, &begin) || !put_message(t, f->message, depth + 1))
        return false;
    end_length(t, begin);
    return true;
}

static bool put_list(struct transcoder *t, const struct schema_field *f, unsigned depth)
{
    size_t begin;

    if (!jr_array(&t->in))
        return false;
    if (f->kind == KIND_MESSAGE) {
        while (jr_item(&t->in))
            if (!put_value(t, f, depth))
                return false;
        return !t->in.error;
    }
    if (!put_tag(t, f->number, WIRE_BYTES) || !begin_length(t, &begin))
        return false;
    while (jr_item(&t->in))
        if (!put_scalar(t, f->kind))
            return false;
    if (!t->in.error)
        end_length(t, begin);
    return !t->in.error;
}

static const struct schema_field *field_named(const struct schema_message *m, struct str key)
{
    for (size_t i = 0; i < m->n; i++)
        if (jr_key_is(key, m->fields[i].json))
            return &m->fields[i];
    return NULL;
}

static bool put_message(struct transcoder *t, const struct schema_message *m, unsigned depth)
{
    struct str key;

    if (!jr_object(&t->in))
        return false;
    while (jr_member(&t->in, &key)) {
        const struct schema_field *f = field_named(m, key);
        if (!f || jr_peek(&t->in) == JR_NULL)
            (void)jr_skip(&t->in, NULL);
        else if (f->repeated)
            (void)put_list(t, f, depth);
        else
            (void)put_value(t, f, depth);
    }
    return !t->in.error;
}

int schema_from_json(struct str json, struct buf *into, char why[SCHEMA_WHY_BYTES])
{
    struct transcoder t = {.out = into};
    unsigned line, column;

    jr_init(&t.in, json, JR_STRICT);
    if (put_message(&t, &schema_export, 1) && jr_end(&t.in))
        return 0;
    if (t.error)
        return t.error;
    jr_position(json, t.in.error_at, &line, &column);
    (void)snprintf(why, SCHEMA_WHY_BYTES, "line %u, column %u: %s", line, column, t.in.error);
    return -EBADMSG;
}
