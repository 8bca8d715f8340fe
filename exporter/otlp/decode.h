/* OTLP 1.11 on the wire: a check of a whole request by the schema, proto/otlp_metrics.proto, and a reader of
 * protobuf's format over bytes in memory. A request in JSON becomes protobuf first. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/num/num.h"
#include "otlp_metrics.pb-c.h"

#include <endian.h>

enum { DECODE_WHY_BYTES = 160 };

/* Whether `body` is a valid request, with all that it holds: lengths that fit, types as in the schema, and
 * at most 64 levels. Readers need not look for errors then. -EBADMSG; -EFBIG: more than 4,000,000 fields.
 * `why` says what is wrong; strings may be ill-formed UTF-8. *ret_fields is set in any case: how many were
 * read. */
MUST_USE int decode_check(struct str body, size_t *ret_fields, char why[DECODE_WHY_BYTES]);
/* Appends a message in JSON to `into` as protobuf: field names in lowerCamelCase, integers as numbers or
 * strings, bytes in base64; unknown fields are ignored. -EBADMSG, -EFBIG; no `why` if `into` is full. */
MUST_USE int decode_json(struct str json, const ProtobufCMessageDescriptor *m, struct buf *into,
                         char why[DECODE_WHY_BYTES]);
/* The same for a request. `skipped` tells of the first member that OTLP does not have, if there is one, and
 * of what it has in its place: `unknown member "resource_metrics", expected resourceMetrics`. */
MUST_USE int decode_json_request(struct str json, struct buf *into, char skipped[DECODE_WHY_BYTES],
                                 char why[DECODE_WHY_BYTES]);

/* ---- Reading protobuf ---- */

enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 }; /* field numbers of an attribute */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint32_t number;
    uint32_t type;
    uint64_t value;   /* of a number; for WIRE_BYTES their length */
    const char *from; /* where the field begins, with its tag */
    struct str bytes; /* of WIRE_BYTES */
};

/* The number of n bytes, little-endian as protobuf has it, at any address. */
static inline uint64_t wire_fixed(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return le64toh(v);
}

/* Cuts the next field off a message. False at its end and, with something left, where it is malformed. */
static inline bool wire_next(struct str *rest, struct wire_field *f)
{
    const char *p = rest->p, *end = rest->n ? p + rest->n : p;
    uint64_t tag, n = 0;

    f->from = p;
    p = get_varint(p, end, &tag);
    if (!p || tag >> 32 || tag < 8)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    f->value = 0;
    switch (f->type) {
    case WIRE_VARINT:
    case WIRE_BYTES:
        p = get_varint(p, end, &f->value);
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
    if (!p || n > (uint64_t)(end - p))
        return false;
    f->bytes = (struct str){p, f->type == WIRE_BYTES ? n : 0};
    if (f->type == WIRE_FIXED64 || f->type == WIRE_FIXED32)
        f->value = wire_fixed(p, n);
    *rest = (struct str){p + n, (size_t)(end - p) - n};
    return true;
}

/* Reads on to the next field with this number. */
static inline bool wire_find(struct str *rest, unsigned number, struct wire_field *f)
{
    while (wire_next(rest, f))
        if (f->number == number)
            return true;
    return false;
}

/* The last field with this number, as protobuf wants it; all zero without one. */
static inline struct wire_field wire_last(struct str message, unsigned number)
{
    struct wire_field f, last = {0};

    while (wire_find(&message, number, &f))
        last = f;
    return last;
}

/* ---- Names and values as Prometheus 3 makes them of OTLP by default (UnderscoreEscapingWithSuffixes). They
 * are appended to buffers without a ceiling: callers bound what comes in ---- */

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

/* Writes v without an exponent, as `le` and `quantile` have it: "0.005", "10", "+Inf". Returns the length. */
enum { DECIMAL_MAX = 360 };
size_t translate_decimal(double v, char to[DECIMAL_MAX]);
/* As JavaScript prints it: with an exponent below 1e-6 and from 1e21. */
size_t translate_number(double v, char to[DECIMAL_MAX]);
