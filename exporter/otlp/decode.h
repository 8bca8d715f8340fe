/* OTLP 1.11 on the wire: the messages that are read, a check of a whole request, and a reader of protobuf's
 * format over bytes in memory. A request in JSON becomes protobuf first, so that one reader is enough. Fields
 * that nobody reads, such as exemplars and descriptions, are skipped like unknown ones. */
#ifndef DS_OTLP_DECODE_H
#define DS_OTLP_DECODE_H

#include "exporter/base/buf.h"
#include "exporter/base/str.h"
#include "exporter/base/varint.h"

/* Field numbers. */
enum { EXPORT_RESOURCE_METRICS = 1 };
enum { RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPE_METRICS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_METRICS_METRICS = 2 };
enum {
    METRIC_NAME = 1,
    METRIC_UNIT = 3,
    METRIC_GAUGE = 5,
    METRIC_SUM = 7,
    METRIC_HISTOGRAM = 9,
    METRIC_EXPONENTIAL = 10,
    METRIC_SUMMARY = 11
};
enum { DATA_POINTS = 1, DATA_TEMPORALITY = 2, DATA_MONOTONIC = 3 };
enum { POINT_START = 2, POINT_TIME = 3, POINT_COUNT = 4, POINT_SUM = 5 };
enum { NUMBER_DOUBLE = 4, NUMBER_INT = 6, NUMBER_ATTRIBUTES = 7, NUMBER_FLAGS = 8 };
enum { HISTOGRAM_COUNTS = 6, HISTOGRAM_BOUNDS = 7, HISTOGRAM_ATTRIBUTES = 9, HISTOGRAM_FLAGS = 10 };
enum { SUMMARY_QUANTILES = 6, SUMMARY_ATTRIBUTES = 7, SUMMARY_FLAGS = 8 };
enum { QUANTILE_QUANTILE = 1, QUANTILE_VALUE = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5, ANY_MAP = 6, ANY_BYTES = 7 };
enum { VALUES_VALUES = 1 };

enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };
enum { FLAG_NO_RECORDED_VALUE = 1 };

enum decode_kind {
    KIND_MESSAGE,
    KIND_STRING,
    KIND_BYTES,   /* base64 in JSON */
    KIND_BOOL,    /* a varint */
    KIND_VARINT,  /* int64, uint32, uint64, enum */
    KIND_FIXED64, /* signed or not */
    KIND_DOUBLE,
};

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

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static inline enum wire_type decode_wire_type(enum decode_kind kind)
{
    if (kind == KIND_FIXED64 || kind == KIND_DOUBLE)
        return WIRE_FIXED64;
    return kind == KIND_BOOL || kind == KIND_VARINT ? WIRE_VARINT : WIRE_BYTES;
}

extern const struct decode_message decode_export;

enum {
    DECODE_MAX_DEPTH = 64,
    DECODE_MAX_FIELDS = 4000000, /* of a request, so that it is read within about 100 ms */
    DECODE_WHY_BYTES = 160
};

#define DECODE_TOO_MANY "more than %d fields; send smaller batches"

/* Whether `body` is a valid message, with all that it holds: lengths that fit, types as in the schema, and
 * at most DECODE_MAX_DEPTH levels. Readers need not look for errors then. -EBADMSG; -EFBIG: more than
 * DECODE_MAX_FIELDS. `why` says what is wrong; strings may be ill-formed UTF-8. */
MUST_USE int decode_check(struct str body, char why[DECODE_WHY_BYTES]);
/* Appends a request in JSON to `into` as protobuf: field names in lowerCamelCase, integers as numbers or
 * strings, bytes in base64; unknown fields are ignored. -EBADMSG or -EFBIG and `why`, which is empty if
 * `into` is full. */
MUST_USE int decode_json(struct str json, struct buf *into, char why[DECODE_WHY_BYTES]);

/* ---- Reading protobuf ---- */

struct wire {
    const char *p, *end;
};

struct wire_field {
    uint32_t number;
    uint32_t type;
    uint64_t value;   /* of a number; for WIRE_BYTES their length */
    const char *from; /* where the field begins, with its tag */
    struct str bytes; /* of WIRE_BYTES */
};

static inline struct wire wire_of(struct str s)
{
    const char *p = s.n ? s.p : ""; /* which may be NULL else */

    return (struct wire){p, p + s.n};
}

static inline bool wire_fixed(struct wire *w, size_t n, uint64_t *ret)
{
    if ((size_t)(w->end - w->p) < n)
        return false;
    *ret = 0;
    memcpy(ret, w->p, n);
    w->p += n;
    return true;
}

static inline bool wire_varint(struct wire *w, uint64_t *ret)
{
    const char *end;

    if (LIKELY(w->p < w->end && (unsigned char)*w->p < 0x80)) {
        *ret = (unsigned char)*w->p++;
        return true;
    }
    end = get_varint(w->p, w->end, ret);
    w->p = end ? end : w->p;
    return end != NULL;
}

/* Reads the next field. False at the end, where w->p == w->end, and where the bytes are malformed. */
static inline bool wire_next(struct wire *w, struct wire_field *f)
{
    uint64_t tag;

    f->from = w->p;
    if (w->p == w->end || !wire_varint(w, &tag))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    if (tag >> 32 || f->number == 0)
        return w->p = f->from, false;
    switch (f->type) {
    case WIRE_VARINT:
        if (wire_varint(w, &f->value))
            return true;
        break;
    case WIRE_FIXED64:
        if (wire_fixed(w, 8, &f->value))
            return true;
        break;
    case WIRE_FIXED32:
        if (wire_fixed(w, 4, &f->value))
            return true;
        break;
    case WIRE_BYTES:
        if (wire_varint(w, &f->value) && f->value <= (uint64_t)(w->end - w->p)) {
            f->bytes = (struct str){w->p, (size_t)f->value};
            w->p += f->value;
            return true;
        }
        break;
    default: /* groups, which proto3 does not have */
        break;
    }
    w->p = f->from;
    return false;
}

/* The last field with this number, as protobuf wants it; all zero without one. */
static inline struct wire_field wire_last(struct str message, unsigned number)
{
    struct wire w = wire_of(message);
    struct wire_field f = {0}, last = {0};

    while (wire_next(&w, &f))
        if (f.number == number)
            last = f;
    return last;
}

static inline double wire_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

#endif
