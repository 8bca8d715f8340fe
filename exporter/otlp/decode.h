/* OTLP 1.11 on the wire: a check of a whole request by the schema, proto/otlp_metrics.proto, and a reader of
 * protobuf's format over bytes in memory. A request in JSON becomes protobuf first, so that one reader is
 * enough. */
#ifndef DS_OTLP_DECODE_H
#define DS_OTLP_DECODE_H

#include "exporter/base/buf.h"
#include "exporter/num/num.h"
#include "otlp_metrics.pb-c.h"

/* Field numbers. */
enum { EXPORT_RESOURCE_METRICS = 1 };
enum { RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPE_METRICS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_METRICS_METRICS = 2 };
enum { METRIC_NAME = 1, METRIC_UNIT = 3 };
enum { METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9, METRIC_EXPONENTIAL = 10, METRIC_SUMMARY = 11 };
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

enum {
    DECODE_MAX_DEPTH = 64,
    DECODE_MAX_FIELDS = 4000000, /* of a request, so that it is read within about 100 ms */
    DECODE_WHY_BYTES = 160
};

/* Whether `body` is a valid request, with all that it holds: lengths that fit, types as in the schema, and
 * at most DECODE_MAX_DEPTH levels. Readers need not look for errors then. -EBADMSG; -EFBIG: more than
 * DECODE_MAX_FIELDS. `why` says what is wrong; strings may be ill-formed UTF-8. */
MUST_USE int decode_check(struct str body, char why[DECODE_WHY_BYTES]);
/* Appends a message in JSON to `into` as protobuf: field names in lowerCamelCase, integers as numbers or
 * strings, bytes in base64; unknown fields are ignored. -EBADMSG or -EFBIG and `why`, which is empty if
 * `into` is full. */
MUST_USE int decode_json(struct str json, const ProtobufCMessageDescriptor *m, struct buf *into,
                         char why[DECODE_WHY_BYTES]);

/* ---- Reading protobuf ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

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

/* Reads the next field. False at the end, where w->p == w->end, and where the bytes are malformed. */
static inline bool wire_next(struct wire *w, struct wire_field *f)
{
    uint64_t tag, n = 0;
    const char *p;

    f->from = w->p;
    p = get_varint(w->p, w->end, &tag);
    if (!p || tag >> 32 || tag < 8)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    f->value = 0;
    switch (f->type) {
    case WIRE_VARINT:
    case WIRE_BYTES:
        p = get_varint(p, w->end, &f->value);
        n = f->type == WIRE_BYTES ? f->value : 0;
        break;
    case WIRE_FIXED64:
        n = 8;
        break;
    case WIRE_FIXED32:
        n = 4;
        break;
    default: /* groups, which proto3 does not have */
        return false;
    }
    if (!p || n > (uint64_t)(w->end - p))
        return false;
    f->bytes = (struct str){p, f->type == WIRE_BYTES ? n : 0};
    if (f->type == WIRE_FIXED64 || f->type == WIRE_FIXED32)
        memcpy(&f->value, p, n);
    w->p = p + n;
    return true;
}

/* Reads on to the next field with this number. */
static inline bool wire_find(struct wire *w, unsigned number, struct wire_field *f)
{
    while (wire_next(w, f))
        if (f->number == number)
            return true;
    return false;
}

/* The last field of each number, as protobuf wants it; all zero without one. */
enum { WIRE_NUMBERS = 12 /* the largest one that is read this way, and 1 */ };

static inline void wire_read(struct str message, struct wire_field last[WIRE_NUMBERS])
{
    struct wire w = wire_of(message);
    struct wire_field f;

    memset(last, 0, WIRE_NUMBERS * sizeof(*last));
    while (wire_next(&w, &f))
        if (f.number < WIRE_NUMBERS)
            last[f.number] = f;
}

static inline struct wire_field wire_last(struct str message, unsigned number)
{
    struct wire_field last[WIRE_NUMBERS];

    wire_read(message, last);
    return last[number];
}

/* ---- Names and values as Prometheus 3 makes them of OTLP by default (UnderscoreEscapingWithSuffixes). All
 * append to a buffer without a ceiling: whoever calls bounds what comes in ---- */

enum otlp_type {
    OTLP_GAUGE,
    OTLP_COUNTER,
    OTLP_UP_DOWN_COUNTER,
    OTLP_HISTOGRAM,
    OTLP_EXPONENTIAL,
    OTLP_SUMMARY
};

void put_str(struct buf *into, struct str s);

/* The metric's name: characters other than letters, digits and colons become underscores, each run of them
 * one; the unit is appended in words, and `total` or `ratio` where the type asks for it. */
void put_metric_name(struct buf *into, struct str name, struct str unit, enum otlp_type type);
/* The label's name: characters other than letters and digits become an underscore each, and a name that
 * starts with a digit or with one underscore gets the prefix `key`. */
void put_label_name(struct buf *into, struct str name);
/* The text of an attribute's value, the bytes of an AnyValue; in JSON, or as a label has it. */
void put_any_value(struct buf *into, struct str any_value, bool in_json);

struct attribute {
    struct str key, value; /* value: an AnyValue */
};

/* The attributes of a message, which are its fields with this number, sorted by key; equal keys stay in their
 * order. *ret is from malloc, and NULL if there are more than `max`, or none. Returns how many. */
size_t read_attributes(struct attribute **ret, struct str message, unsigned number, size_t max);

/* Writes v in decimal notation without an exponent, as `le` and `quantile` have it ("0.005", "10", "+Inf"),
 * and returns the length. */
enum { DECIMAL_MAX = 360 };
size_t translate_decimal(double v, char to[DECIMAL_MAX]);
/* As JavaScript prints it: with an exponent below 1e-6 and from 1e21. */
size_t translate_number(double v, char to[DECIMAL_MAX]);

#endif
