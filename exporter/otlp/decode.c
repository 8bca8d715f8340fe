/* The check of a request against the schema, and JSON by the same schema. A message's length is known only
 * after its contents have been written: room for LENGTH_BYTES is left. Owns nothing. */
#include "exporter/otlp/decode.h"

#include "exporter/base/base64.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/protobuf.h"
#include "exporter/otlp/translate.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
    LENGTH_BYTES = 5,
    DECODE_MAX_DEPTH = 64,
    DECODE_MAX_FIELDS = 4000000 /* of a request, so that it is read within about 100 ms */
};

static enum wire_type wire_type_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_INT64:
        return WIRE_VARINT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_FIXED64;
    default:
        return WIRE_BYTES;
    }
}

/* ---- Checking ---- */

static int decode_too_many(char why[DECODE_WHY_BYTES])
{
    (void)snprintf(why, DECODE_WHY_BYTES, "more than %d fields; send smaller batches", DECODE_MAX_FIELDS);
    return -EFBIG;
}

struct decode_check {
    const char *begin;
    char *why;
    unsigned fields;
};

static int check_fail(const struct decode_check *c, const char *at, const char *field, const char *what)
{
    (void)snprintf(c->why, DECODE_WHY_BYTES, "%s %s at byte %zu", field, what, (size_t)(at - c->begin));
    return -EBADMSG;
}

static int check_message(struct decode_check *c, struct str body, const ProtobufCMessageDescriptor *m,
                         unsigned depth)
{
    struct wire_field f = {0};
    int r = 0;

    while (r == 0 && wire_next(&body, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(m, f.number);

        if (++c->fields > DECODE_MAX_FIELDS)
            return decode_too_many(c->why);
        if (!field)
            continue;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && f.type == WIRE_BYTES)
            r = depth == DECODE_MAX_DEPTH ? check_fail(c, f.from, field->name, "is nested too deeply")
                                          : check_message(c, f.bytes, field->descriptor, depth + 1);
        else if (f.type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED) /* packed, 8 bytes each */
            r = f.bytes.n % 8 == 0 ? 0 : check_fail(c, f.from, field->name, "is malformed");
        else if (f.type != wire_type_of(field))
            r = check_fail(c, f.from, field->name, "has the wrong wire type");
    }
    return r == 0 && body.n != 0 ? check_fail(c, body.p, "malformed", "field") : r;
}

int decode_check(struct str body, size_t *ret_fields, char why[DECODE_WHY_BYTES])
{
    struct decode_check c = {.begin = body.p, .why = why};
    int r = check_message(&c, body, &otlp__request__descriptor, 1);

    *ret_fields = c.fields;
    return r;
}

/* ---- JSON. After the first error nothing more is read or written ---- */

static const char out_is_full[] = "too large", too_many_fields[] = "too many fields";

struct transcoder {
    struct jr in;
    struct buf *out;
    unsigned fields;
    /* The first member that OTLP does not have, and the message without it; NULL: none */
    struct str skipped;
    const ProtobufCMessageDescriptor *skipped_in;
};

static void put_bytes(struct transcoder *t, const void *p, size_t n)
{
    if (t->in.error)
        return;
    buf_put(t->out, p, n);
    if (buf_failed(t->out) < 0)
        (void)jr_fail(&t->in, out_is_full);
}

static void put_number(struct transcoder *t, uint64_t v)
{
    char text[VARINT_MAX];

    put_bytes(t, text, (size_t)(put_varint(text, v) - text));
}

static void put_fixed64(struct transcoder *t, uint64_t v)
{
    v = htole64(v);
    put_bytes(t, &v, sizeof(v));
}

/* The text of a number, which may be in quotes. */
static bool number_text(struct transcoder *t, struct str *ret)
{
    return jr_peek(&t->in) == JR_STRING ? jr_string(&t->in, ret) : jr_number(&t->in, ret);
}

static void put_double(struct transcoder *t)
{
    double v = 0;
    struct str s;

    if (!number_text(t, &s))
        return;
    if (str_eq(s, STR("Infinity")) || str_eq(s, STR("-Infinity")))
        v = s.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    else if (num_parse_word(s, &v) != NUM_OK)
        (void)jr_fail(&t->in, "expected a number");
    put_fixed64(t, double_bits(v));
}

/* The absolute value of an integer; 1.0 and 1e3 are integers too. False if it is none, or 2^64 or more. */
static bool read_magnitude(struct str number, struct str digits, uint64_t *ret)
{
    double d = 0;

    if (num_parse(number, &d) != NUM_OK || d != floor(d))
        return false;
    if (str_to_u64(digits, ret))
        return *ret < UINT64_MAX || str_eq(digits, STR("18446744073709551615"));
    if (fabs(d) >= 0x1p64)
        return false;
    *ret = (uint64_t)fabs(d);
    return true;
}

/* From -2^63 to 2^63 - 1, in two's complement, or from 0 to 2^64 - 1. */
static uint64_t read_integer(struct transcoder *t, bool is_signed)
{
    uint64_t magnitude = 0, max = is_signed ? INT64_MAX : UINT64_MAX;
    struct str number, digits;
    bool is_negative;

    if (!number_text(t, &number))
        return 0;
    is_negative = str_starts(number, STR("-"));
    digits = is_negative ? (struct str){number.p + 1, number.n - 1} : number;
    if (is_negative)
        max = is_signed ? (uint64_t)INT64_MAX + 1 : 0;
    if (!read_magnitude(number, digits, &magnitude))
        (void)jr_fail(&t->in, "expected an integer");
    else if (magnitude > max)
        (void)jr_fail(&t->in, "integer out of range");
    return is_negative ? -magnitude : magnitude;
}

static void put_scalar(struct transcoder *t, ProtobufCType kind)
{
    enum jr_type type = jr_peek(&t->in);

    if (kind == PROTOBUF_C_TYPE_DOUBLE) {
        put_double(t);
    } else if (kind == PROTOBUF_C_TYPE_BOOL) {
        if (type != JR_TRUE && type != JR_FALSE)
            (void)jr_fail(&t->in, "expected true or false");
        (void)jr_skip(&t->in, NULL);
        put_number(t, type == JR_TRUE);
    } else if (kind == PROTOBUF_C_TYPE_FIXED64 || kind == PROTOBUF_C_TYPE_SFIXED64) {
        put_fixed64(t, read_integer(t, kind == PROTOBUF_C_TYPE_SFIXED64));
    } else {
        put_number(t, read_integer(t, true));
    }
}

static void put_text(struct transcoder *t, bool is_base64)
{
    struct str raw = {0};
    char *room;
    int r;

    if (!jr_string(&t->in, &raw))
        return;
    r = is_base64 ? base64_decode(raw, t->out) : buf_reserve(t->out, raw.n * 3, &room);
    if (r < 0)
        (void)jr_fail(&t->in, r == -EFBIG ? out_is_full : "expected base64");
    else if (!is_base64)
        t->out->n += jr_unescape(raw, room);
}

/* The length of what was written from `begin` on goes before it: in one byte if it fits, else in all. */
static void put_length(struct transcoder *t, size_t begin)
{
    size_t n = t->out->n - begin;
    char *to = t->out->p + begin - LENGTH_BYTES;

    if (t->in.error)
        return;
    if (n < 0x80) {
        memmove(to + 1, to + LENGTH_BYTES, n);
        t->out->n -= LENGTH_BYTES - 1;
        *to = (char)n;
        return;
    }
    for (unsigned i = 0; i < LENGTH_BYTES; i++, n >>= 7)
        to[i] = (char)((n & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

static void put_message(struct transcoder *t, const ProtobufCMessageDescriptor *m, unsigned depth);

/* One value of the field: of a list of messages the next element; of one of numbers all of them, packed. */
static void put_field(struct transcoder *t, const ProtobufCFieldDescriptor *f, bool packed, unsigned depth)
{
    enum wire_type type = packed ? WIRE_BYTES : wire_type_of(f);
    size_t begin;

    put_number(t, (uint64_t)f->id << 3 | type);
    if (type != WIRE_BYTES) {
        put_scalar(t, f->type);
        return;
    }
    put_bytes(t, (char[LENGTH_BYTES]){0}, LENGTH_BYTES);
    begin = t->out->n;
    if (packed)
        while (jr_item(&t->in))
            put_scalar(t, f->type);
    else if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        put_text(t, f->type == PROTOBUF_C_TYPE_BYTES);
    else if (depth == DECODE_MAX_DEPTH)
        (void)jr_fail(&t->in, "nested too deeply");
    else
        put_message(t, f->descriptor, depth + 1);
    put_length(t, begin);
}

static void count_field(struct transcoder *t)
{
    if (++t->fields > DECODE_MAX_FIELDS)
        (void)jr_fail(&t->in, too_many_fields);
}

/* OTLP has these members, above its points; nobody reads them. */
static bool is_ignored(struct str key)
{
    static const char *const names[] = {"schemaUrl",  "scope",       "droppedAttributesCount",
                                        "entityRefs", "description", "metadata"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (jr_key_is(key, names[i]))
            return true;
    return false;
}

static void note_skipped(struct transcoder *t, const ProtobufCMessageDescriptor *m, struct str key)
{
    if (t->skipped_in || is_ignored(key))
        return;
    t->skipped = key;
    t->skipped_in = m;
}

static void put_message(struct transcoder *t, const ProtobufCMessageDescriptor *m, unsigned depth)
{
    struct str key;

    count_field(t);
    (void)jr_object(&t->in);
    while (jr_member(&t->in, &key)) {
        const ProtobufCFieldDescriptor *f;
        size_t i = 0;

        count_field(t);
        while (i < m->n_fields && !jr_key_is(key, m->fields[i].name))
            i++;
        if (i == m->n_fields)
            note_skipped(t, m, key);
        if (i == m->n_fields || jr_peek(&t->in) == JR_NULL) {
            (void)jr_skip(&t->in, NULL);
            continue;
        }
        f = &m->fields[i];
        if (f->label != PROTOBUF_C_LABEL_REPEATED)
            put_field(t, f, false, depth);
        else if (jr_array(&t->in) && f->type != PROTOBUF_C_TYPE_MESSAGE)
            put_field(t, f, true, depth);
        else
            while (jr_item(&t->in))
                put_field(t, f, false, depth);
    }
}

static int transcode(struct transcoder *t, struct str json, const ProtobufCMessageDescriptor *m,
                     char why[DECODE_WHY_BYTES])
{
    unsigned line, column;

    jr_init(&t->in, json, JR_STRICT);
    put_message(t, m, 1);
    if (jr_end(&t->in))
        return 0;
    if (t->in.error == too_many_fields)
        return decode_too_many(why);
    if (t->in.error == out_is_full)
        return -EFBIG;
    jr_position(json, t->in.error_at, &line, &column);
    (void)snprintf(why, DECODE_WHY_BYTES, "line %u, column %u: %s", line, column, t->in.error);
    return -EBADMSG;
}

int decode_json(struct str json, const ProtobufCMessageDescriptor *m, struct buf *into,
                char why[DECODE_WHY_BYTES])
{
    struct transcoder t = {.out = into};

    return transcode(&t, json, m, why);
}

/* Whether `key` is the name but for its case and underscores: "resource_metrics" for "resourceMetrics". */
static bool resembles(struct str key, const char *name)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '_')
            continue;
        if (tolower((unsigned char)key.p[i]) != tolower((unsigned char)*name))
            return false;
        name++;
    }
    return !*name;
}

/* The member that is meant; all of the message if none resembles it. */
static void put_expected(struct buf *to, const ProtobufCMessageDescriptor *m, struct str key)
{
    for (size_t i = 0; i < m->n_fields; i++)
        if (resembles(key, m->fields[i].name)) {
            put_str(to, str_of(m->fields[i].name));
            return;
        }
    for (size_t i = 0; i < m->n_fields; i++) {
        put_str(to, i > 0 ? STR(", ") : STR(""));
        put_str(to, str_of(m->fields[i].name));
    }
}

int decode_json_request(struct str json, struct buf *into, char skipped[DECODE_WHY_BYTES],
                        char why[DECODE_WHY_BYTES])
{
    enum { KEY_BYTES = 40 };
    struct transcoder t = {.out = into};
    int r = transcode(&t, json, &otlp__request__descriptor, why);
    BUF_AUTO(expected, SIZE_MAX);
    struct str key;

    skipped[0] = '\0';
    if (r < 0 || !t.skipped_in)
        return r;
    key = utf8_cut(t.skipped, KEY_BYTES);
    put_expected(&expected, t.skipped_in, t.skipped);
    (void)snprintf(skipped, DECODE_WHY_BYTES, "unknown member \"%.*s\", expected %.*s", STR_ARG(key),
                   STR_ARG(buf_str(&expected)));
    return 0;
}
