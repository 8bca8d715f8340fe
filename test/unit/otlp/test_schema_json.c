#include "exporter/base/buf.h"
#include "exporter/otlp/schema.h"
#include "exporter/otlp/wire.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define METRIC(body) "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{" body "}]}]}]}"
#define POINT(body)  METRIC("\"gauge\":{\"dataPoints\":[{" body "}]}")

/* Follows the fields to the last one of that number. */
static struct wire_field find(struct str message, const unsigned *path, size_t n)
{
    struct wire_field f, found = {0};
    struct wire w = wire_of(message);

    while (wire_next(&w, &f))
        if (f.number == path[0])
            found = f;
    assert_ptr_equal(w.p, w.end);
    return n > 1 ? find(found.bytes, path + 1, n - 1) : found;
}

#define POINT_PATH \
    EXPORT_RESOURCE_METRICS, RESOURCE_METRICS_SCOPE_METRICS, SCOPE_METRICS_METRICS, METRIC_GAUGE, DATA_POINTS
#define VALUE_PATH POINT_PATH, NUMBER_ATTRIBUTES, KEY_VALUE_VALUE

static struct wire_field convert(struct buf *b, const char *json, const unsigned *path, size_t n)
{
    char why[SCHEMA_WHY_BYTES] = "";
    int r = schema_from_json(str_of(json), b, why);

    if (r < 0)
        fail_msg("%s: %s", json, why);
    assert_int_equal(schema_check(buf_str(b), why), 0);
    return find(buf_str(b), path, n);
}

static void reads_integers_and_doubles(void **state)
{
    static const struct {
        const char *json;
        unsigned field;
        uint64_t expected;
    } cases[] = {
        {POINT("\"asInt\":\"-5\""), NUMBER_INT, (uint64_t)-5},
        {POINT("\"asInt\":-5"), NUMBER_INT, (uint64_t)-5},
        {POINT("\"asInt\":\"9223372036854775807\""), NUMBER_INT, INT64_MAX},
        {POINT("\"asInt\":\"-9223372036854775808\""), NUMBER_INT, (uint64_t)INT64_MIN},
        {POINT("\"asInt\":12.0"), NUMBER_INT, 12},
        {POINT("\"asInt\":1e3"), NUMBER_INT, 1000},
        {POINT("\"timeUnixNano\":\"1700000000123456789\""), POINT_TIME, UINT64_C(1700000000123456789)},
        {POINT("\"timeUnixNano\":1700000000123456789"), POINT_TIME, UINT64_C(1700000000123456789)},
        {POINT("\"timeUnixNano\":\"18446744073709551615\""), POINT_TIME, UINT64_MAX},
        {POINT("\"asDouble\":1.5"), NUMBER_DOUBLE, UINT64_C(0x3ff8000000000000)},
        {POINT("\"asDouble\":\"1.5\""), NUMBER_DOUBLE, UINT64_C(0x3ff8000000000000)},
        {POINT("\"asDouble\":\"Infinity\""), NUMBER_DOUBLE, UINT64_C(0x7ff0000000000000)},
        {POINT("\"asDouble\":\"-Infinity\""), NUMBER_DOUBLE, UINT64_C(0xfff0000000000000)},
        {POINT("\"flags\":1"), NUMBER_FLAGS, 1},
        {POINT("\"unknown\":{\"a\":[1,2]},\"flags\":1,\"exemplars\":[{\"traceId\":\"zz\"}]"), NUMBER_FLAGS,
         1},
        {POINT("\"flags\":3,\"asInt\":null"), NUMBER_FLAGS, 3},
        {POINT("\"time\\u0055nixNano\":7"), POINT_TIME, 7},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const unsigned path[] = {POINT_PATH, cases[i].field};
        BUF_AUTO(b, 1 << 20);
        struct wire_field f = convert(&b, cases[i].json, path, ARRAY_SIZE(path));
        if (f.value != cases[i].expected)
            fail_msg("%s: got %#llx", cases[i].json, (unsigned long long)f.value);
    }
}

static void reads_values_of_attributes(void **state)
{
#define VALUE(v) POINT("\"attributes\":[{\"value\":{" v "},\"key\":\"k\"}]")
    static const struct {
        const char *json;
        unsigned field;
        const char *bytes;
        uint64_t value;
    } cases[] = {
        {VALUE("\"stringValue\":\"a\\u00e9\\n\""), ANY_STRING, "a\xc3\xa9\n", 0},
        {VALUE("\"stringValue\":\"\""), ANY_STRING, "", 0},
        {VALUE("\"bytesValue\":\"Zm9v\""), ANY_BYTES, "foo", 0},
        {VALUE("\"boolValue\":true"), ANY_BOOL, NULL, 1},
        {VALUE("\"boolValue\":false"), ANY_BOOL, NULL, 0},
        {VALUE("\"intValue\":\"-1\""), ANY_INT, NULL, UINT64_MAX},
        {VALUE("\"doubleValue\":2"), ANY_DOUBLE, NULL, UINT64_C(0x4000000000000000)},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const unsigned path[] = {VALUE_PATH, cases[i].field};
        BUF_AUTO(b, 1 << 20);
        struct wire_field f = convert(&b, cases[i].json, path, ARRAY_SIZE(path));
        assert_int_equal(f.number, cases[i].field);
        if (cases[i].bytes)
            assert_true(str_eq(f.bytes, str_of(cases[i].bytes)));
        else
            assert_int_equal(f.value, cases[i].value);
    }
}

static void reads_lists_of_numbers(void **state)
{
    static const unsigned path[] = {EXPORT_RESOURCE_METRICS,
                                    RESOURCE_METRICS_SCOPE_METRICS,
                                    SCOPE_METRICS_METRICS,
                                    METRIC_EXPONENTIAL,
                                    DATA_POINTS,
                                    EXPONENTIAL_POSITIVE,
                                    BUCKETS_COUNTS};
    static const unsigned offset[] = {EXPORT_RESOURCE_METRICS,
                                      RESOURCE_METRICS_SCOPE_METRICS,
                                      SCOPE_METRICS_METRICS,
                                      METRIC_EXPONENTIAL,
                                      DATA_POINTS,
                                      EXPONENTIAL_POSITIVE,
                                      BUCKETS_OFFSET};
    struct wire_field f;
    BUF_AUTO(b, 1 << 20);

    (void)state;
    f = convert(&b,
                METRIC("\"exponentialHistogram\":{\"dataPoints\":[{\"positive\":{\"offset\":-3,"
                       "\"bucketCounts\":[\"1\",300,0]}}]}"),
                path, ARRAY_SIZE(path));
    assert_true(str_eq(f.bytes, STR("\x01\xac\x02\x00")));
    assert_int_equal(wire_sint32(find(buf_str(&b), offset, ARRAY_SIZE(offset)).value), -3);
}

static void refuses_what_is_not_otlp(void **state)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "line 1, column 1: "},
        {"[]", "line 1, column 1: "},
        {"{\n \"resourceMetrics\":{}}", "line 2, column 20: "},
        {"{\"resourceMetrics\":[1]}", "line 1, column 21: "},
        {"{} x", "line 1, column 4: "},
        {POINT("\"asInt\":1.5"), "expected an integer"},
        {POINT("\"asInt\":\"x\""), "expected an integer"},
        {POINT("\"asInt\":\"18446744073709551616\""), "expected an integer"},
        {POINT("\"asInt\":\"-9223372036854775809\""), "expected an integer"},
        {POINT("\"asDouble\":\"wide\""), "expected a number"},
        {POINT("\"asDouble\":true"), ""},
        {POINT("\"attributes\":[{\"key\":1}]"), ""},
        {POINT("\"attributes\":[{\"value\":{\"boolValue\":1}}]"), "expected true or false"},
        {POINT("\"attributes\":[{\"value\":{\"bytesValue\":\"*\"}}]"), "expected base64"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[SCHEMA_WHY_BYTES] = "";
        BUF_AUTO(b, 1 << 20);
        assert_int_equal(schema_from_json(str_of(cases[i].json), &b, why), -EBADMSG);
        if (!strstr(why, cases[i].why))
            fail_msg("%s: got %s", cases[i].json, why);
    }
}

static void limits_the_depth(void **state)
{
    char why[SCHEMA_WHY_BYTES] = "";
    BUF_AUTO(json, 1 << 20);
    BUF_AUTO(b, 1 << 20);

    (void)state;
    assert_int_equal(buf_puts(&json, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"value\":"), 0);
    for (unsigned i = 0; i < 80; i++)
        assert_int_equal(buf_puts(&json, "{\"arrayValue\":{\"values\":["), 0);
    assert_int_equal(schema_from_json(buf_str(&json), &b, why), -EBADMSG);
    assert_non_null(strstr(why, "nested too deeply"));
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        char why[SCHEMA_WHY_BYTES];
        BUF_AUTO(b, 1 << 20);
        int r = schema_from_json(
            STR(POINT("\"attributes\":[{\"key\":\"k\"},{\"value\":{\"bytesValue\":\"Zm9v\"}}]")), &b, why);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
}

static void stops_at_the_ceiling(void **state)
{
    char why[SCHEMA_WHY_BYTES];
    BUF_AUTO(b, 40);

    (void)state;
    assert_int_equal(
        schema_from_json(STR(POINT("\"asInt\":1,\"timeUnixNano\":2,\"startTimeUnixNano\":3")), &b, why),
        -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_integers_and_doubles), cmocka_unit_test(reads_values_of_attributes),
        cmocka_unit_test(reads_lists_of_numbers),     cmocka_unit_test(refuses_what_is_not_otlp),
        cmocka_unit_test(limits_the_depth),           cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(stops_at_the_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
