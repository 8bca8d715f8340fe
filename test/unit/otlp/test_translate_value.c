#include "exporter/base/buf.h"
#include "exporter/otlp/translate.h"

#include "exporter/otlp/schema.h"
#include "exporter/otlp/wire.h"
#include "test/oom.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ATTRIBUTES "{\"resourceMetrics\":[{\"resource\":{\"attributes\":["

/* The attribute's value of a resource, in JSON, as an AnyValue's bytes in `b`. */
static struct str parse(struct buf *b, const char *json)
{
    char why[SCHEMA_WHY_BYTES] = "";
    BUF_AUTO(request, 1 << 16);
    struct str key, value = {0};
    struct wire_field f;
    struct wire w;

    assert_int_equal(buf_printf(&request, ATTRIBUTES "{\"key\":\"k\",\"value\":%s}]}}]}", json), 0);
    if (schema_from_json(buf_str(&request), b, why) < 0)
        fail_msg("%s: %s", json, why);
    w = wire_of(buf_str(b));
    for (unsigned level = 0; level < 3; level++) {
        assert_true(wire_next(&w, &f));
        w = wire_of(f.bytes);
    }
    translate_key_value(f.bytes, &key, &value);
    assert_true(str_eq(key, STR("k")));
    return value;
}

static void prints_values_as_prometheus_does(void **state)
{
    static const struct {
        const char *json, *expected;
    } cases[] = {
        {"{}", ""},
        {"{\"stringValue\":\"a\\u00e9\"}", "a\xc3\xa9"},
        {"{\"boolValue\":true}", "true"},
        {"{\"boolValue\":false}", "false"},
        {"{\"intValue\":\"-9223372036854775808\"}", "-9223372036854775808"},
        {"{\"doubleValue\":1}", "1"},
        {"{\"doubleValue\":0.1}", "0.1"},
        {"{\"doubleValue\":1e-6}", "0.000001"},
        {"{\"doubleValue\":9e-7}", "9e-7"},
        {"{\"doubleValue\":123456789012345680000}", "123456789012345680000"},
        {"{\"doubleValue\":1e21}", "1e+21"},
        {"{\"doubleValue\":-0.0}", "-0"},
        {"{\"doubleValue\":\"NaN\"}", "json: unsupported value: NaN"},
        {"{\"doubleValue\":\"-Infinity\"}", "json: unsupported value: -Inf"},
        {"{\"bytesValue\":\"\"}", ""},
        {"{\"bytesValue\":\"Zg==\"}", "Zg=="},
        {"{\"bytesValue\":\"Zm8=\"}", "Zm8="},
        {"{\"bytesValue\":\"+/+/\"}", "+/+/"},
        {"{\"arrayValue\":{}}", "[]"},
        {"{\"arrayValue\":{\"values\":[{},{\"intValue\":1},{\"stringValue\":\"<a&b>\"},{\"bytesValue\":\"Zg=="
         "\"}]}}",
         "[null,1,\"\\u003ca\\u0026b\\u003e\",\"Zg==\"]"},
        {"{\"kvlistValue\":{\"values\":[{\"key\":\"b\",\"value\":{\"boolValue\":true}},{\"key\":\"a\"},"
         "{\"key\":\"b\",\"value\":{\"doubleValue\":2.5}}]}}",
         "{\"a\":null,\"b\":2.5}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(message, 1 << 16);
        BUF_AUTO(text, 1 << 16);
        assert_int_equal(translate_value(parse(&message, cases[i].json), &text), 0);
        if (!str_eq(buf_str(&text), str_of(cases[i].expected)))
            fail_msg("%s: got %.*s", cases[i].json, STR_ARG(buf_str(&text)));
    }
}

static void prints_bounds_without_an_exponent(void **state)
{
    static const struct {
        double v;
        const char *expected;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {10, "10"},
        {0.005, "0.005"},
        {-2.5, "-2.5"},
        {1e-7, "0.0000001"},
        {-1.25e-9, "-0.00000000125"},
        {1e17, "100000000000000000"},
        {1e22, "10000000000000000000000"},
        {1.5e22, "15000000000000000000000"},
        {HUGE_VAL, "+Inf"},
        {-HUGE_VAL, "-Inf"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 1000);
        assert_int_equal(translate_bound(cases[i].v, &b), 0);
        assert_true(str_eq(buf_str(&b), str_of(cases[i].expected)));
    }
}

static void survives_each_failed_allocation(void **state)
{
    BUF_AUTO(message, 1 << 16);
    struct str value;

    (void)state;
    value =
        parse(&message, "{\"arrayValue\":{\"values\":[{\"stringValue\":\"a\"},{\"kvlistValue\":{\"values\":["
                        "{\"key\":\"k\"}]}}]}}");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(text, 1000);
        int r = translate_value(value, &text);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_values_as_prometheus_does),
        cmocka_unit_test(prints_bounds_without_an_exponent),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
