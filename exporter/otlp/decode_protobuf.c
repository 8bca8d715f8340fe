/* The tables of the messages, and the check of a request against them. */
#include "exporter/base/def.h"
#include "exporter/otlp/decode.h"

#include <errno.h>
#include <stdio.h>

#define MESSAGE(name, ...)                                            \
    static const struct decode_field name##_fields[] = {__VA_ARGS__}; \
    static const struct decode_message name = {.fields = name##_fields, .n = ARRAY_SIZE(name##_fields)}

/* clang-format off */
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

static const struct decode_field export_fields[] = {
    MANY("resourceMetrics", EXPORT_RESOURCE_METRICS, resource_metrics),
};
const struct decode_message decode_export = {.fields = export_fields, .n = ARRAY_SIZE(export_fields)};
/* clang-format on */

/* ---- Checking ---- */

struct check {
    const char *begin;
    char *why;
    unsigned fields;
};

static int check_fail(const struct check *c, const char *at, const char *field, const char *what)
{
    (void)snprintf(c->why, DECODE_WHY_BYTES, "%s%s%s at byte %zu", field ? field : "", field ? " " : "", what,
                   (size_t)(at - c->begin));
    return -EBADMSG;
}

static const struct decode_field *field_of(const struct decode_message *m, unsigned number)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static int check_message(struct check *c, struct str body, const struct decode_message *m, unsigned depth)
{
    struct wire w = wire_of(body);
    struct wire_field f = {0};
    int r = 0;

    while (r == 0 && wire_next(&w, &f)) {
        const struct decode_field *field = field_of(m, f.number);
        if (++c->fields > DECODE_MAX_FIELDS) {
            (void)snprintf(c->why, DECODE_WHY_BYTES, DECODE_TOO_MANY, DECODE_MAX_FIELDS);
            return -EFBIG;
        }
        if (!field)
            continue;
        if (field->kind == KIND_MESSAGE && f.type == WIRE_BYTES)
            r = depth == DECODE_MAX_DEPTH ? check_fail(c, f.from, field->json, "is nested too deeply")
                                          : check_message(c, f.bytes, field->message, depth + 1);
        else if (f.type == WIRE_BYTES && field->repeated) /* packed: numbers of 8 bytes, all of them */
            r = f.bytes.n % 8 == 0 ? 0 : check_fail(c, f.from, field->json, "is malformed");
        else if (f.type != decode_wire_type(field->kind))
            r = check_fail(c, f.from, field->json, "has the wrong wire type");
    }
    if (r == 0 && w.p != w.end)
        r = check_fail(c, w.p, NULL, "malformed field");
    return r;
}

int decode_check(struct str body, char why[DECODE_WHY_BYTES])
{
    struct check c = {.begin = body.p, .why = why};

    return check_message(&c, body, &decode_export, 1);
}
