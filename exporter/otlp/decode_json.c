/* OTLP in JSON becomes OTLP in protobuf, so that one reader is enough. A message's length is known only
 * after its contents have been written, so lengths are padded to LENGTH_BYTES. */
#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/base/varint.h"
#include "exporter/num/num.h"
#include "exporter/otlp/decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { LENGTH_BYTES = 5, TEXT_MAX = 64 };

struct transcoder {
    struct jr in;
    struct buf *out;
    int error; /* of `out` */
    unsigned fields;
};

/* All that follow do nothing after the first error. */

static void fail(struct transcoder *t, int r)
{
    if (r < 0 && t->error == 0) {
        t->error = r;
        (void)jr_fail(&t->in, "output");
    }
}

static void put_bytes(struct transcoder *t, const void *p, size_t n)
{
    fail(t, t->error ?: buf_put(t->out, p, n));
}

static void put_number(struct transcoder *t, uint64_t v)
{
    char text[VARINT_MAX];

    put_bytes(t, text, (size_t)(put_varint(text, v) - text));
}

/* Reserves room for a length; returns where its contents begin. */
static size_t begin_length(struct transcoder *t)
{
    static const char zeros[LENGTH_BYTES];

    put_bytes(t, zeros, sizeof(zeros));
    return t->out->n;
}

static void end_length(struct transcoder *t, size_t begin)
{
    size_t n = t->out->n - begin;

    for (size_t i = 0; i < LENGTH_BYTES && !t->in.error; i++, n >>= 7)
        t->out->p[begin - LENGTH_BYTES + i] = (char)((n & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
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

/* An integer from -2^63 to 2^64 - 1, in two's complement; 1.0 and 1e3 are integers too. */
static bool read_integer(struct transcoder *t, uint64_t *ret)
{
    char text[TEXT_MAX], *end;
    struct str s;
    double v;

    if (!number_text(t, &s))
        return false;
    if (num_parse(s, &v) != NUM_OK || v != floor(v) || v < -0x1p63 || v > 0x1p64 || s.n >= sizeof(text))
        return jr_fail(&t->in, "expected an integer");
    *(char *)mempcpy(text, s.p, s.n) = '\0';
    errno = 0;
    *ret = s.p[0] == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    if (errno == ERANGE)
        return jr_fail(&t->in, "expected an integer");
    if (*end) /* with a fraction or an exponent */
        *ret = v < 0 ? (uint64_t)(int64_t)v : v < 0x1p64 ? (uint64_t)v : UINT64_MAX;
    return true;
}

static void put_scalar(struct transcoder *t, enum decode_kind kind)
{
    uint64_t v = jr_peek(&t->in) == JR_TRUE;
    double d = 0;

    if (kind == KIND_BOOL) {
        if (!v && jr_peek(&t->in) != JR_FALSE)
            (void)jr_fail(&t->in, "expected true or false");
        (void)jr_skip(&t->in, NULL);
        put_number(t, v);
    } else if (kind == KIND_DOUBLE) {
        (void)read_double(t, &d);
        put_bytes(t, &d, sizeof(d));
    } else {
        (void)read_integer(t, &v);
        if (kind == KIND_FIXED64)
            put_bytes(t, &v, sizeof(v));
        else
            put_number(t, v);
    }
}

static void put_text(struct transcoder *t, bool is_base64)
{
    struct str raw = {0};
    char *room;
    int r;

    (void)jr_string(&t->in, &raw);
    r = t->error ?: is_base64 ? base64_decode(raw, t->out) : buf_room(t->out, raw.n * 3, &room);
    if (r == -EINVAL)
        (void)jr_fail(&t->in, "expected base64");
    else
        fail(t, r);
    if (r == 0 && !is_base64)
        t->out->n += jr_unescape(raw, room);
}

static void put_message(struct transcoder *t, const struct decode_message *m, unsigned depth);

/* One value of the field: of a list of messages the next element; of one of numbers all of them, packed. */
static void put_field(struct transcoder *t, const struct decode_field *f, bool packed, unsigned depth)
{
    enum wire_type type = packed ? WIRE_BYTES : decode_wire_type(f->kind);
    size_t begin;

    put_number(t, (uint64_t)f->number << 3 | type);
    if (type != WIRE_BYTES) {
        put_scalar(t, f->kind);
        return;
    }
    begin = begin_length(t);
    if (packed)
        while (jr_item(&t->in))
            put_scalar(t, f->kind);
    else if (f->kind != KIND_MESSAGE)
        put_text(t, f->kind == KIND_BYTES);
    else if (depth == DECODE_MAX_DEPTH)
        (void)jr_fail(&t->in, "nested too deeply");
    else
        put_message(t, f->message, depth + 1);
    end_length(t, begin);
}

static const struct decode_field *field_named(const struct decode_message *m, struct str key)
{
    for (size_t i = 0; i < m->n; i++)
        if (jr_key_is(key, m->fields[i].json))
            return &m->fields[i];
    return NULL;
}

static void count_field(struct transcoder *t)
{
    if (++t->fields > DECODE_MAX_FIELDS)
        fail(t, -E2BIG);
}

static void put_message(struct transcoder *t, const struct decode_message *m, unsigned depth)
{
    struct str key;

    count_field(t);
    (void)jr_object(&t->in);
    while (jr_member(&t->in, &key)) {
        const struct decode_field *f = field_named(m, key);

        count_field(t);
        if (!f || jr_peek(&t->in) == JR_NULL)
            (void)jr_skip(&t->in, NULL);
        else if (!f->repeated)
            put_field(t, f, false, depth);
        else if (jr_array(&t->in) && f->kind != KIND_MESSAGE)
            put_field(t, f, true, depth);
        else
            while (jr_item(&t->in))
                put_field(t, f, false, depth);
    }
}

int decode_json(struct str json, struct buf *into, char why[DECODE_WHY_BYTES])
{
    struct transcoder t = {.out = into};
    unsigned line, column;

    jr_init(&t.in, json, JR_STRICT);
    put_message(&t, &decode_export, 1);
    if (jr_end(&t.in))
        return 0;
    if (t.error == -E2BIG)
        (void)snprintf(why, DECODE_WHY_BYTES, DECODE_TOO_MANY, DECODE_MAX_FIELDS);
    if (t.error)
        return t.error == -E2BIG ? -EFBIG : t.error;
    jr_position(json, t.in.error_at, &line, &column);
    (void)snprintf(why, DECODE_WHY_BYTES, "line %u, column %u: %s", line, column, t.in.error);
    return -EBADMSG;
}
