/* The tables of the messages, and the check of a request against them. */
#include "exporter/otlp/schema.h"

#include "exporter/otlp/wire.h"

#include <errno.h>
#include <stdio.h>

#define MESSAGE(name) \
    static const struct schema_message name = {.fields = name##_fields, .n = ARRAY_SIZE(name##_fields)}

static const struct schema_message any_value;

static const struct schema_field key_value_fields[] = {
    {"key", KEY_VALUE_KEY, KIND_STRING, false, NULL},
    {"value", KEY_VALUE_VALUE, KIND_MESSAGE, false, &any_value},
};
MESSAGE(key_value);

static const struct schema_field array_value_fields[] = {
    {"values", VALUES_VALUES, KIND_MESSAGE, true, &any_value},
};
MESSAGE(array_value);

static const struct schema_field map_value_fields[] = {
    {"values", VALUES_VALUES, KIND_MESSAGE, true, &key_value},
};
MESSAGE(map_value);

static const struct schema_field any_value_fields[] = {
    {"stringValue", ANY_STRING, KIND_STRING, false, NULL},
    {"boolValue", ANY_BOOL, KIND_BOOL, false, NULL},
    {"intValue", ANY_INT, KIND_VARINT, false, NULL},
    {"doubleValue", ANY_DOUBLE, KIND_DOUBLE, false, NULL},
    {"arrayValue", ANY_ARRAY, KIND_MESSAGE, false, &array_value},
    {"kvlistValue", ANY_MAP, KIND_MESSAGE, false, &map_value},
    {"bytesValue", ANY_BYTES, KIND_BYTES, false, NULL},
};
MESSAGE(any_value);

static const struct schema_field number_point_fields[] = {
    {"attributes", NUMBER_ATTRIBUTES, KIND_MESSAGE, true, &key_value},
    {"startTimeUnixNano", POINT_START, KIND_FIXED64, false, NULL},
    {"timeUnixNano", POINT_TIME, KIND_FIXED64, false, NULL},
    {"asDouble", NUMBER_DOUBLE, KIND_DOUBLE, false, NULL},
    {"asInt", NUMBER_INT, KIND_SFIXED64, false, NULL},
    {"flags", NUMBER_FLAGS, KIND_VARINT, false, NULL},
};
MESSAGE(number_point);

static const struct schema_field histogram_point_fields[] = {
    {"attributes", HISTOGRAM_ATTRIBUTES, KIND_MESSAGE, true, &key_value},
    {"startTimeUnixNano", POINT_START, KIND_FIXED64, false, NULL},
    {"timeUnixNano", POINT_TIME, KIND_FIXED64, false, NULL},
    {"count", POINT_COUNT, KIND_FIXED64, false, NULL},
    {"sum", POINT_SUM, KIND_DOUBLE, false, NULL},
    {"bucketCounts", HISTOGRAM_COUNTS, KIND_FIXED64, true, NULL},
    {"explicitBounds", HISTOGRAM_BOUNDS, KIND_DOUBLE, true, NULL},
    {"flags", HISTOGRAM_FLAGS, KIND_VARINT, false, NULL},
};
MESSAGE(histogram_point);

static const struct schema_field buckets_fields[] = {
    {"offset", BUCKETS_OFFSET, KIND_SINT32, false, NULL},
    {"bucketCounts", BUCKETS_COUNTS, KIND_VARINT, true, NULL},
};
MESSAGE(buckets);

static const struct schema_field exponential_point_fields[] = {
    {"attributes", EXPONENTIAL_ATTRIBUTES, KIND_MESSAGE, true, &key_value},
    {"startTimeUnixNano", POINT_START, KIND_FIXED64, false, NULL},
    {"timeUnixNano", POINT_TIME, KIND_FIXED64, false, NULL},
    {"count", POINT_COUNT, KIND_FIXED64, false, NULL},
    {"sum", POINT_SUM, KIND_DOUBLE, false, NULL},
    {"scale", EXPONENTIAL_SCALE, KIND_SINT32, false, NULL},
    {"zeroCount", EXPONENTIAL_ZERO_COUNT, KIND_FIXED64, false, NULL},
    {"positive", EXPONENTIAL_POSITIVE, KIND_MESSAGE, false, &buckets},
    {"negative", EXPONENTIAL_NEGATIVE, KIND_MESSAGE, false, &buckets},
    {"flags", EXPONENTIAL_FLAGS, KIND_VARINT, false, NULL},
};
MESSAGE(exponential_point);

static const struct schema_field quantile_fields[] = {
    {"quantile", QUANTILE_QUANTILE, KIND_DOUBLE, false, NULL},
    {"value", QUANTILE_VALUE, KIND_DOUBLE, false, NULL},
};
MESSAGE(quantile);

static const struct schema_field summary_point_fields[] = {
    {"attributes", SUMMARY_ATTRIBUTES, KIND_MESSAGE, true, &key_value},
    {"startTimeUnixNano", POINT_START, KIND_FIXED64, false, NULL},
    {"timeUnixNano", POINT_TIME, KIND_FIXED64, false, NULL},
    {"count", POINT_COUNT, KIND_FIXED64, false, NULL},
    {"sum", POINT_SUM, KIND_DOUBLE, false, NULL},
    {"quantileValues", SUMMARY_QUANTILES, KIND_MESSAGE, true, &quantile},
    {"flags", SUMMARY_FLAGS, KIND_VARINT, false, NULL},
};
MESSAGE(summary_point);

static const struct schema_field gauge_fields[] = {
    {"dataPoints", DATA_POINTS, KIND_MESSAGE, true, &number_point},
};
MESSAGE(gauge);

static const struct schema_field sum_fields[] = {
    {"dataPoints", DATA_POINTS, KIND_MESSAGE, true, &number_point},
    {"aggregationTemporality", DATA_TEMPORALITY, KIND_VARINT, false, NULL},
    {"isMonotonic", DATA_MONOTONIC, KIND_BOOL, false, NULL},
};
MESSAGE(sum);

static const struct schema_field histogram_fields[] = {
    {"dataPoints", DATA_POINTS, KIND_MESSAGE, true, &histogram_point},
    {"aggregationTemporality", DATA_TEMPORALITY, KIND_VARINT, false, NULL},
};
MESSAGE(histogram);

static const struct schema_field exponential_fields[] = {
    {"dataPoints", DATA_POINTS, KIND_MESSAGE, true, &exponential_point},
    {"aggregationTemporality", DATA_TEMPORALITY, KIND_VARINT, false, NULL},
};
MESSAGE(exponential);

static const struct schema_field summary_fields[] = {
    {"dataPoints", DATA_POINTS, KIND_MESSAGE, true, &summary_point},
};
MESSAGE(summary);

static const struct schema_field metric_fields[] = {
    {"name", METRIC_NAME, KIND_STRING, false, NULL},
    {"unit", METRIC_UNIT, KIND_STRING, false, NULL},
    {"gauge", METRIC_GAUGE, KIND_MESSAGE, false, &gauge},
    {"sum", METRIC_SUM, KIND_MESSAGE, false, &sum},
    {"histogram", METRIC_HISTOGRAM, KIND_MESSAGE, false, &histogram},
    {"exponentialHistogram", METRIC_EXPONENTIAL, KIND_MESSAGE, false, &exponential},
    {"summary", METRIC_SUMMARY, KIND_MESSAGE, false, &summary},
};
MESSAGE(metric);

static const struct schema_field scope_metrics_fields[] = {
    {"metrics", SCOPE_METRICS_METRICS, KIND_MESSAGE, true, &metric},
};
MESSAGE(scope_metrics);

static const struct schema_field resource_fields[] = {
    {"attributes", RESOURCE_ATTRIBUTES, KIND_MESSAGE, true, &key_value},
};
MESSAGE(resource);

static const struct schema_field resource_metrics_fields[] = {
    {"resource", RESOURCE_METRICS_RESOURCE, KIND_MESSAGE, false, &resource},
    {"scopeMetrics", RESOURCE_METRICS_SCOPE_METRICS, KIND_MESSAGE, true, &scope_metrics},
};
MESSAGE(resource_metrics);

static const struct schema_field export_fields[] = {
    {"resourceMetrics", EXPORT_RESOURCE_METRICS, KIND_MESSAGE, true, &resource_metrics},
};
const struct schema_message schema_export = {.fields = export_fields, .n = ARRAY_SIZE(export_fields)};

/* ---- Checking ---- */

struct check {
    const char *begin;
    char *why;
};

static int check_fail(const struct check *c, const char *at, const char *field, const char *what)
{
    (void)snprintf(c->why, SCHEMA_WHY_BYTES, "%s%s%s at byte %zu", field ? field : "", field ? " " : "", what,
                   (size_t)(at - c->begin));
    return -EBADMSG;
}

static const struct schema_field *field_of(const struct schema_message *m, unsigned number)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static unsigned wire_type_of(enum schema_kind kind)
{
    switch (kind) {
    case KIND_MESSAGE:
    case KIND_STRING:
    case KIND_BYTES:
        return WIRE_BYTES;
    case KIND_FIXED64:
    case KIND_SFIXED64:
    case KIND_DOUBLE:
        return WIRE_FIXED64;
    case KIND_BOOL:
    case KIND_VARINT:
    case KIND_SINT32:
        break;
    }
    return WIRE_VARINT;
}

/* Whether the bytes are numbers of the kind, one after the other. */
static bool is_packed(struct str bytes, enum schema_kind kind)
{
    struct wire w = wire_of(bytes);
    uint64_t v;

    if (wire_type_of(kind) == WIRE_FIXED64)
        return bytes.n % 8 == 0;
    while (w.p < w.end)
        if (!wire_varint(&w, &v))
            return false;
    return true;
}

static int check_message(const struct check *c, struct str body, const struct schema_message *m,
                         unsigned depth)
{
    struct wire w = wire_of(body);
    struct wire_field f;
    int r = 0;

    while (r == 0 && wire_next(&w, &f)) {
        const struct schema_field *field = field_of(m, f.number);
        if (!field)
            continue;
        if (field->kind == KIND_MESSAGE && f.type == WIRE_BYTES)
            r = depth == SCHEMA_MAX_DEPTH ? check_fail(c, f.from, field->json, "is nested too deeply")
                                          : check_message(c, f.bytes, field->message, depth + 1);
        else if (f.type == WIRE_BYTES && field->repeated)
            r = is_packed(f.bytes, field->kind) ? 0 : check_fail(c, f.from, field->json, "is malformed");
        else if (f.type != wire_type_of(field->kind))
            r = check_fail(c, f.from, field->json, "has the wrong wire type");
    }
    if (r == 0 && w.p != w.end)
        r = check_fail(c, w.p, NULL, "malformed field");
    return r;
}

int schema_check(struct str body, char why[SCHEMA_WHY_BYTES])
{
    const struct check c = {.begin = body.p, .why = why};

    return check_message(&c, body, &schema_export, 1);
}
