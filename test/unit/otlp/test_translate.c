#include "exporter/otlp/translate.h"

#include "exporter/base/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What prometheus/otlptranslator makes of these, in the version that Prometheus 3.5 uses. */
static void names_metrics_as_prometheus_does(void **state)
{
    static const struct {
        const char *name, *unit;
        enum otlp_type type;
        const char *expected;
    } cases[] = {
        /* clang-format off */
        {"system.cpu.utilization", "1", OTLP_GAUGE, "system_cpu_utilization_ratio"},
        {"system.cpu.utilization.ratio", "1", OTLP_GAUGE, "system_cpu_utilization_ratio"},
        {"http.requests", "1", OTLP_COUNTER, "http_requests_total"},
        {"http.requests.total", "1", OTLP_COUNTER, "http_requests_total"},
        {"a.total.b", "", OTLP_COUNTER, "a_b_total"},
        {"total", "", OTLP_COUNTER, "total"},
        {"total.total", "{x}", OTLP_COUNTER, "total"},
        {"ratio", "1", OTLP_GAUGE, "ratio"},
        {"ratio.of.things", "1", OTLP_GAUGE, "of_things_ratio"},
        {"ratio", "1", OTLP_UP_DOWN_COUNTER, "ratio"},
        {"http.server.duration", "ms", OTLP_HISTOGRAM, "http_server_duration_milliseconds"},
        {"http.server.request.duration", "s", OTLP_HISTOGRAM, "http_server_request_duration_seconds"},
        {"request.seconds.bucket", "s", OTLP_HISTOGRAM, "request_seconds_bucket"},
        {"network.io", "By", OTLP_COUNTER, "network_io_bytes_total"},
        {"network.io.bytes", "By", OTLP_COUNTER, "network_io_bytes_total"},
        {"Network.IO", "KiBy/s", OTLP_GAUGE, "Network_IO_kibibytes_per_second"},
        {"mem", "MBy", OTLP_GAUGE, "mem_megabytes"},
        {"rate", "By/s", OTLP_GAUGE, "rate_bytes_per_second"},
        {"rate", "{objects}/s", OTLP_GAUGE, "rate_per_second"},
        {"x", "{scanned}/{returned}", OTLP_GAUGE, "x"},
        {"x", "m/s", OTLP_GAUGE, "x_meters_per_second"},
        {"x", "km/h", OTLP_GAUGE, "x_km_per_hour"},
        {"x", "/s", OTLP_GAUGE, "x_per_second"},
        {"x", "s/", OTLP_GAUGE, "x_seconds"},
        {"x", "1/s", OTLP_GAUGE, "x_per_second"},
        {"x", "1/s", OTLP_COUNTER, "x_per_second_total"},
        {"x", "%", OTLP_GAUGE, "x_percent"},
        {"x.percent", "%", OTLP_GAUGE, "x_percent"},
        {"x", "Cel", OTLP_GAUGE, "x_celsius"},
        {"x", " s ", OTLP_GAUGE, "x_seconds"},
        {"x", "\011", OTLP_GAUGE, "x"},
        {"x", "a/b/c", OTLP_GAUGE, "x_a_per_b_c"},
        {"x", "foo?", OTLP_GAUGE, "x_foo_"},
        {"x", "foo?/s", OTLP_GAUGE, "x_foo_per_second"},
        {"x", "foo/$", OTLP_GAUGE, "x_foo"},
        {"x", "/", OTLP_GAUGE, "x"},
        {"x", "$1000", OTLP_GAUGE, "x_1000"},
        {"x", "hello, world", OTLP_GAUGE, "x_hello_world"},
        {"x", "  a  b ", OTLP_GAUGE, "x_a_b"},
        {"x", "per/mo", OTLP_GAUGE, "x_per_per_month"},
        {"x", "w/y", OTLP_GAUGE, "x_w_per_year"},
        {"x", "{a}b", OTLP_GAUGE, "x"},
        {"x", "s/{a}b", OTLP_GAUGE, "x_seconds"},
        {"x", "\302\260C", OTLP_GAUGE, "x_C"},
        {"x", "\302\265s", OTLP_GAUGE, "x_s"},
        {"x", "__a__", OTLP_GAUGE, "x_a_"},
        {"unsupported.metric.temperature", "\302\260F", OTLP_GAUGE, "unsupported_metric_temperature_F"},
        {"unsupported.metric.weird", "+=.:,!* & #", OTLP_GAUGE, "unsupported_metric_weird_:_"},
        {"unsupported.metric.redundant", "__test $/\302\260C",
         OTLP_GAUGE, "unsupported_metric_redundant_test_per_C"},
        {"unsupported.metric.redundant", "s/\302\260_", OTLP_GAUGE, "unsupported_metric_redundant_seconds"},
        {"1.leading", "", OTLP_GAUGE, "_1_leading"},
        {"9", "1", OTLP_GAUGE, "_9_ratio"},
        {"", "s", OTLP_GAUGE, "seconds"},
        {"", "", OTLP_COUNTER, "total"},
        {"", "", OTLP_GAUGE, ""},
        {"#test", "", OTLP_GAUGE, "test"},
        {"...", "", OTLP_GAUGE, ""},
        {"a..b__c--d", "", OTLP_GAUGE, "a_b_c_d"},
        {"_a_", "", OTLP_GAUGE, "a"},
        {"a:b::c", "", OTLP_GAUGE, "a:b::c"},
        {":", "", OTLP_GAUGE, ":"},
        {"\303\251t\303\251.temp\303\251rature", "Cel", OTLP_GAUGE, "t_temp_rature_celsius"},
        {"\346\227\245\346\234\254", "By", OTLP_COUNTER, "bytes_total"},
        {"a\377b", "", OTLP_GAUGE, "a_b"},
        {"a b\011c", "", OTLP_GAUGE, "a_b_c"},
        {"k8s.pod.cpu.usage", "{cpu}", OTLP_GAUGE, "k8s_pod_cpu_usage"},
        {"jvm.gc.duration", "s", OTLP_HISTOGRAM, "jvm_gc_duration_seconds"},
        {"process.cpu.time", "s", OTLP_COUNTER, "process_cpu_time_seconds_total"},
        {"system.disk.operation_time", "s", OTLP_COUNTER, "system_disk_operation_time_seconds_total"},
        {"foo.days", "d", OTLP_GAUGE, "foo_days"},
        {"foo.days.x", "d", OTLP_GAUGE, "foo_days_x"},
        {"foo", "d", OTLP_GAUGE, "foo_days"},
        {"foo", "h", OTLP_GAUGE, "foo_hours"},
        {"foo", "min", OTLP_GAUGE, "foo_minutes"},
        {"foo", "us", OTLP_GAUGE, "foo_microseconds"},
        {"foo", "ns", OTLP_GAUGE, "foo_nanoseconds"},
        {"foo", "GiBy", OTLP_GAUGE, "foo_gibibytes"},
        {"foo", "TiBy", OTLP_GAUGE, "foo_tibibytes"},
        {"foo", "TBy", OTLP_GAUGE, "foo_terabytes"},
        {"foo", "GBy", OTLP_GAUGE, "foo_gigabytes"},
        {"foo", "V", OTLP_GAUGE, "foo_volts"},
        {"foo", "A", OTLP_GAUGE, "foo_amperes"},
        {"foo", "J", OTLP_GAUGE, "foo_joules"},
        {"foo", "W", OTLP_GAUGE, "foo_watts"},
        {"foo", "g", OTLP_GAUGE, "foo_grams"},
        {"foo", "Hz", OTLP_GAUGE, "foo_hertz"},
        {"foo", "total", OTLP_COUNTER, "foo_total"},
        {"foo", "ratio", OTLP_GAUGE, "foo_ratio"},
        {"foo", "ratio/1", OTLP_GAUGE, "foo_ratio_per_1"},
        {"foo.meters", "m", OTLP_GAUGE, "foo_meters"},
        {"metres", "M", OTLP_GAUGE, "metres_M"},
        {"foo", "ratio", OTLP_COUNTER, "foo_ratio_total"},
        {"foo", "1 ", OTLP_GAUGE, "foo"},
        {"foo", " 1", OTLP_GAUGE, "foo"},
        {"foo", "7/d", OTLP_GAUGE, "foo_7_per_day"},
        {"7.foo", "7", OTLP_COUNTER, "_7_foo_total"},
        {"total.7", "", OTLP_COUNTER, "_7_total"},
        /* clang-format on */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 200);
        buf_puts(&b, "x");
        assert_int_equal(buf_failed(&b), 0);
        put_metric_name(&b, str_of(cases[i].name), str_of(cases[i].unit), cases[i].type);
        if (!str_eq((struct str){b.p + 1, b.n - 1}, str_of(cases[i].expected)))
            fail_msg("%s, unit %s: got %.*s, expected %s", cases[i].name, cases[i].unit, (int)b.n - 1,
                     b.p + 1, cases[i].expected);
    }
}

static void names_labels_as_prometheus_does(void **state)
{
    static const struct {
        const char *name, *expected;
    } cases[] = {
        /* clang-format off */
        {"", ""},
        {"a", "a"},
        {"http.method", "http_method"},
        {"http_method", "http_method"},
        {"1a", "key_1a"},
        {"123", "key_123"},
        {"_a", "key_a"},
        {"__a", "__a"},
        {"___a", "___a"},
        {"_", "key_"},
        {"__", "__"},
        {"a__b", "a__b"},
        {"a..b", "a__b"},
        {"a:b", "a_b"},
        {"\303\251t\303\251", "key_t_"},
        {"\346\227\245\346\234\254", "__"},
        {"a\377\376b", "a__b"},
        {"k8s.pod.name", "k8s_pod_name"},
        {"a b", "a_b"},
        {"-a", "key_a"},
        {"--a", "__a"},
        {".1", "key_1"},
        {"@x@", "key_x_"},
        {"A-Z", "A_Z"},
        {"a\314\201", "a_"},
        {"\303", "key_"},
        /* clang-format on */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 200);
        buf_puts(&b, "x");
        assert_int_equal(buf_failed(&b), 0);
        put_label_name(&b, str_of(cases[i].name));
        if (!str_eq((struct str){b.p + 1, b.n - 1}, str_of(cases[i].expected)))
            fail_msg("%s: got %.*s, expected %s", cases[i].name, (int)b.n - 1, b.p + 1, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_metrics_as_prometheus_does),
        cmocka_unit_test(names_labels_as_prometheus_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
