/* The messages of OTLP 1.11 that are read: what an ExportMetricsServiceRequest may hold. Fields that nobody
 * reads, such as exemplars and descriptions, are not listed and skipped like unknown ones. */
#ifndef DS_OTLP_SCHEMA_H
#define DS_OTLP_SCHEMA_H

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

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
enum {
    EXPONENTIAL_ATTRIBUTES = 1,
    EXPONENTIAL_SCALE = 6,
    EXPONENTIAL_ZERO_COUNT = 7,
    EXPONENTIAL_POSITIVE = 8,
    EXPONENTIAL_NEGATIVE = 9,
    EXPONENTIAL_FLAGS = 10
};
enum { BUCKETS_OFFSET = 1, BUCKETS_COUNTS = 2 };
enum { SUMMARY_QUANTILES = 6, SUMMARY_ATTRIBUTES = 7, SUMMARY_FLAGS = 8 };
enum { QUANTILE_QUANTILE = 1, QUANTILE_VALUE = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5, ANY_MAP = 6, ANY_BYTES = 7 };
enum { VALUES_VALUES = 1 };

enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };
enum { FLAG_NO_RECORDED_VALUE = 1 };

enum schema_kind {
    KIND_MESSAGE,
    KIND_STRING,
    KIND_BYTES,  /* base64 in JSON */
    KIND_BOOL,   /* a varint */
    KIND_VARINT, /* int64, uint32, uint64, enum */
    KIND_SINT32, /* zigzag */
    KIND_FIXED64,
    KIND_SFIXED64,
    KIND_DOUBLE,
};

struct schema_message;

struct schema_field {
    const char *json; /* lowerCamelCase */
    unsigned number;
    enum schema_kind kind;
    bool repeated; /* numbers are packed, or not */
    const struct schema_message *message;
};

struct schema_message {
    const struct schema_field *fields;
    size_t n;
};

extern const struct schema_message schema_export;

enum { SCHEMA_MAX_DEPTH = 64, SCHEMA_WHY_BYTES = 160 };

/* Whether `body` is a valid message, with all that it holds: lengths that fit, types as in the schema, and
 * at most SCHEMA_MAX_DEPTH levels. Readers need not look for errors then. -EBADMSG, and `why` says what is
 * wrong; strings may be ill-formed UTF-8. */
MUST_USE int schema_check(struct str body, char why[SCHEMA_WHY_BYTES]);
/* Appends a request in JSON to `into` as protobuf: field names in lowerCamelCase, integers as numbers or
 * strings, bytes in base64; unknown fields are ignored. -EBADMSG and `why`, -EFBIG, -ENOMEM. */
MUST_USE int schema_from_json(struct str json, struct buf *into, char why[SCHEMA_WHY_BYTES]);

#endif
