/* The tables of the messages, the check of a request against them, and JSON by the same tables. A message's
 * length is known only after its contents have been written: room for LENGTH_BYTES is left. */
#include "exporter/otlp/decode.h"

#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { LENGTH_BYTES = 5, TEXT_MAX = 64 };

enum decode_kind {
    KIND_MESSAGE,
    KIND_STRING,
    KIND_BYTES,   /* base64 in JSON */
    KIND_BOOL,    /* a varint */
    KIND_VARINT,  /* int64, uint32, uint64, enum */
    KIND_FIXED64, /* signed or not */
    KIND_DOUBLE,
};

static const enum wire_type wire_types[] = {
    [KIND_MESSAGE] = WIRE_BYTES, [KIND_STRING] = WIRE_BYTES,  [KIND_BYTES] = WIRE_BYTES,
    [KIND_BOOL] = WIRE_VARINT,   [KIND_VARINT] = WIRE_VARINT, [KIND_FIXED64] = WIRE_FIXED64,
    [KIND_DOUBLE] = WIRE_FIXED64};

struct decode_field {
    const char *json; /* lowerCamelCase */
    unsigned number;
    enum decode_kind kind;
    bool repeated; /* numbers are packed, or not */
    const struct decode_message *message;
};

struct decode_message {
    const struct decode_field *fields;
    size_t n;
};

/* clang-format off */
#define PUBLIC_MESSAGE(name, ...) \
    static const struct decode_field name##_fields[] = {__VA_ARGS__}; \
    const struct decode_message name = {name##_fields, ARRAY_SIZE(name##_fields)}
#define MESSAGE(name, ...) \
    static const struct decode_field name##_fields[] = {__VA_ARGS__}; \
    static const struct decode_message name = {name##_fields, ARRAY_SIZE(name##_fields)}
#define VALUE(json, number, kind) {json, number, KIND_##kind, false, NULL}
#define NUMBERS(json, number, kind) {json, number, KIND_##kind, true, NULL}
#define ONE(json, number, message) {json, number, KIND_MESSAGE, false, &(message)}
#define MANY(json, number, message) {json, number, KIND_MESSAGE, true, &(message)}

static const struct decode_message any_value;

MESSAGE(key_value, VALUE("key", KEY_VALUE_KEY, STRING), ONE("value", KEY_VALUE_VALUE, any_value));
MESSAGE(array_value, MANY("values", VALUES_VALUES, any_value));
MESSAGE(map_value, MANY("values", VALUES_VALUES, key_value));
MESSAGE(any_value,
        VALUE("stringValue", ANY_STRING, STRING), VALUE("boolValue", ANY_BOOL, BOOL),
        VALUE("intValue", ANY_INT, VARINT), VALUE("doubleValue", ANY_DOUBLE, DOUBLE),
        ONE("arrayValue", ANY_ARRAY, array_value), ONE("kvlistValue", ANY_MAP, map_value),
        VALUE("bytesValue", ANY_BYTES, BYTES));
MESSAGE(number_point,
        MANY("attributes", NUMBER_ATTRIBUTES, key_value), VALUE("startTimeUnixNano", POINT_START, FIXED64),
        VALUE("timeUnixNano", POINT_TIME, FIXED64), VALUE("asDouble", NUMBER_DOUBLE, DOUBLE),
        VALUE("asInt", NUMBER_INT, FIXED64), VALUE("flags", NUMBER_FLAGS, VARINT));
MESSAGE(histogram_point,
        MANY("attributes", HISTOGRAM_ATTRIBUTES, key_value), VALUE("startTimeUnixNano", POINT_START, FIXED64),
        VALUE("timeUnixNano", POINT_TIME, FIXED64), VALUE("count", POINT_COUNT, FIXED64),
        VALUE("sum", POINT_SUM, DOUBLE), NUMBERS("bucketCounts", HISTOGRAM_COUNTS, FIXED64),
        NUMBERS("explicitBounds", HISTOGRAM_BOUNDS, DOUBLE), VALUE("flags", HISTOGRAM_FLAGS, VARINT));
MESSAGE(quantile,
        VALUE("quantile", QUANTILE_QUANTILE, DOUBLE), VALUE("value", QUANTILE_VALUE, DOUBLE));
MESSAGE(summary_point,
        MANY("attributes", SUMMARY_ATTRIBUTES, key_value), VALUE("startTimeUnixNano", POINT_START, FIXED64),
        VALUE("timeUnixNano", POINT_TIME, FIXED64), VALUE("count", POINT_COUNT, FIXED64),
        VALUE("sum", POINT_SUM, DOUBLE), MANY("quantileValues", SUMMARY_QUANTILES, quantile),
        VALUE("flags", SUMMARY_FLAGS, VARINT));
MESSAGE(gauge, MANY("dataPoints", DATA_POINTS, number_point));
MESSAGE(sum,
        MANY("dataPoints", DATA_POINTS, number_point),
        VALUE("aggregationTemporality", DATA_TEMPORALITY, VARINT),
        VALUE("isMonotonic", DATA_MONOTONIC, BOOL));
MESSAGE(histogram,
        MANY("dataPoints", DATA_POINTS, histogram_point),
        VALUE("aggregationTemporality", DATA_TEMPORALITY, VARINT));

/* Their points are only counted. */
static const struct decode_message exponential_point;

MESSAGE(exponential, MANY("dataPoints", DATA_POINTS, exponential_point));
MESSAGE(summary, MANY("dataPoints", DATA_POINTS, summary_point));
MESSAGE(metric,
        VALUE("name", METRIC_NAME, STRING), VALUE("unit", METRIC_UNIT, STRING),
        ONE("gauge", METRIC_GAUGE, gauge), ONE("sum", METRIC_SUM, sum),
        ONE("histogram", METRIC_HISTOGRAM, histogram), ONE("summary", METRIC_SUMMARY, summary),
        ONE("exponentialHistogram", METRIC_EXPONENTIAL, exponential));
MESSAGE(scope_metrics, MANY("metrics", SCOPE_METRICS_METRICS, metric));
MESSAGE(resource, MANY("attributes", RESOURCE_ATTRIBUTES, key_value));
MESSAGE(resource_metrics,
        ONE("resource", RESOURCE_METRICS_RESOURCE, resource),
        MANY("scopeMetrics", RESOURCE_METRICS_SCOPE_METRICS, scope_metrics));

PUBLIC_MESSAGE(decode_request, MANY("resourceMetrics", EXPORT_RESOURCE_METRICS, resource_metrics));

MESSAGE(partial_success, VALUE("rejectedDataPoints", 1, VARINT), VALUE("errorMessage", 2, STRING));
PUBLIC_MESSAGE(decode_response, ONE("partialSuccess", 1, partial_success));
PUBLIC_MESSAGE(decode_status, VALUE("code", 1, VARINT), VALUE("message", 2, STRING));
/* clang-format on */

/* ---- Checking ---- */

static int decode_too_many(char why[DECODE_WHY_BYTES])
{
    (void)snprintf(why, DECODE_WHY_BYTES, "more than %d fields; send smaller batches", DECODE_MAX_FIELDS);
    return -EFBIG;
}

struct check {
    const char *begin;
    char *why;
    unsigned fields;
};

static int check_fail(const struct check *c, const char *at, const char *field, const char *what)
{
    (void)snprintf(c->why, DECODE_WHY_BYTES, "%s %s at byte %zu", field, what, (size_t)(at - c->begin));
    return -EBADMSG;
}

static int check_message(struct check *c, struct str body, const struct decode_message *m, unsigned depth)
{
    struct wire w = wire_of(body);
    struct wire_field f = {0};
    int r = 0;

    while (r == 0 && wire_next(&w, &f)) {
        const struct decode_field *field;
        size_t i = 0;

        if (++c->fields > DECODE_MAX_FIELDS)
            return decode_too_many(c->why);
        while (i < m->n && m->fields[i].number != f.number)
            i++;
        if (i == m->n)
            continue;
        field = &m->fields[i];
        if (field->kind == KIND_MESSAGE && f.type == WIRE_BYTES)
            r = depth == DECODE_MAX_DEPTH ? check_fail(c, f.from, field->json, "is nested too deeply")
                                          : check_message(c, f.bytes, field->message, depth + 1);
        else if (f.type == WIRE_BYTES && field->repeated) /* packed: numbers of 8 bytes, all of them */
            r = f.bytes.n % 8 == 0 ? 0 : check_fail(c, f.from, field->json, "is malformed");
        else if (f.type != wire_types[field->kind])
            r = check_fail(c, f.from, field->json, "has the wrong wire type");
    }
    return r == 0 && w.p != w.end ? check_fail(c, w.p, "malformed", "field") : r;
}

int decode_check(struct str body, char why[DECODE_WHY_BYTES])
{
    struct check c = {.begin = body.p, .why = why};

    return check_message(&c, body, &decode_request, 1);
}

/* ---- JSON. After the first error nothing more is read or written ---- */

struct transcoder {
    struct jr in;
    struct buf *out;
    bool is_full; /* `out` */
    unsigned fields;
};

static void put_bytes(struct transcoder *t, const void *p, size_t n)
{
    if (t->in.error || buf_put(t->out, p, n) == 0)
        return;
    (void)jr_fail(&t->in, "output");
    t->is_full = true;
}

static void put_number(struct transcoder *t, uint64_t v)
{
    char text[VARINT_MAX];

    put_bytes(t, text, (size_t)(put_varint(text, v) - text));
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
    put_bytes(t, &v, sizeof(v));
}

/* An integer from -2^63 to 2^64 - 1, in two's complement; 1.0 and 1e3 are integers too. */
static uint64_t read_integer(struct transcoder *t)
{
    char text[TEXT_MAX], *end;
    struct str s;
    uint64_t v;
    double d;

    if (!number_text(t, &s))
        return 0;
    if (num_parse(s, &d) != NUM_OK || d != floor(d) || d < -0x1p63 || d > 0x1p64 || s.n >= sizeof(text)) {
        (void)jr_fail(&t->in, "expected an integer");
        return 0;
    }
    *(char *)mempcpy(text, s.p, s.n) = '\0';
    errno = 0;
    v = d < 0 ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    if (*end) /* with a fraction or an exponent */
        v = d < 0 ? (uint64_t)(int64_t)d : d < 0x1p64 ? (uint64_t)d : UINT64_MAX;
    if (errno == ERANGE)
        (void)jr_fail(&t->in, "expected an integer");
    return v;
}

static void put_scalar(struct transcoder *t, enum decode_kind kind)
{
    enum jr_type type = jr_peek(&t->in);
    uint64_t v;

    if (kind == KIND_DOUBLE) {
        put_double(t);
    } else if (kind == KIND_BOOL) {
        if (type != JR_TRUE && type != JR_FALSE)
            (void)jr_fail(&t->in, "expected true or false");
        (void)jr_skip(&t->in, NULL);
        put_number(t, type == JR_TRUE);
    } else {
        v = read_integer(t);
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

    if (!jr_string(&t->in, &raw))
        return;
    r = is_base64 ? base64_decode(raw, t->out) : buf_room(t->out, raw.n * 3, &room);
    if (r < 0)
        (void)jr_fail(&t->in, "expected base64");
    else if (!is_base64)
        t->out->n += jr_unescape(raw, room);
    t->is_full = r == -EFBIG;
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

static void put_message(struct transcoder *t, const struct decode_message *m, unsigned depth);

/* One value of the field: of a list of messages the next element; of one of numbers all of them, packed. */
static void put_field(struct transcoder *t, const struct decode_field *f, bool packed, unsigned depth)
{
    enum wire_type type = packed ? WIRE_BYTES : wire_types[f->kind];
    size_t begin;

    put_number(t, (uint64_t)f->number << 3 | type);
    if (type != WIRE_BYTES) {
        put_scalar(t, f->kind);
        return;
    }
    put_bytes(t, (char[LENGTH_BYTES]){0}, LENGTH_BYTES);
    begin = t->out->n;
    if (packed)
        while (jr_item(&t->in))
            put_scalar(t, f->kind);
    else if (f->kind != KIND_MESSAGE)
        put_text(t, f->kind == KIND_BYTES);
    else if (depth == DECODE_MAX_DEPTH)
        (void)jr_fail(&t->in, "nested too deeply");
    else
        put_message(t, f->message, depth + 1);
    put_length(t, begin);
}

static void count_field(struct transcoder *t)
{
    if (++t->fields > DECODE_MAX_FIELDS)
        (void)jr_fail(&t->in, "too many fields");
}

static void put_message(struct transcoder *t, const struct decode_message *m, unsigned depth)
{
    struct str key;

    count_field(t);
    (void)jr_object(&t->in);
    while (jr_member(&t->in, &key)) {
        const struct decode_field *f;
        size_t i = 0;

        count_field(t);
        while (i < m->n && !jr_key_is(key, m->fields[i].json))
            i++;
        if (i == m->n || jr_peek(&t->in) == JR_NULL) {
            (void)jr_skip(&t->in, NULL);
            continue;
        }
        f = &m->fields[i];
        if (!f->repeated)
            put_field(t, f, false, depth);
        else if (jr_array(&t->in) && f->kind != KIND_MESSAGE)
            put_field(t, f, true, depth);
        else
            while (jr_item(&t->in))
                put_field(t, f, false, depth);
    }
}

int decode_json(struct str json, const struct decode_message *m, struct buf *into, char why[DECODE_WHY_BYTES])
{
    struct transcoder t = {.out = into};
    unsigned line, column;

    jr_init(&t.in, json, JR_STRICT);
    put_message(&t, m, 1);
    if (jr_end(&t.in))
        return 0;
    if (t.fields > DECODE_MAX_FIELDS)
        return decode_too_many(why);
    if (t.is_full)
        return -EFBIG;
    jr_position(json, t.in.error_at, &line, &column);
    (void)snprintf(why, DECODE_WHY_BYTES, "line %u, column %u: %s", line, column, t.in.error);
    return -EBADMSG;
}
