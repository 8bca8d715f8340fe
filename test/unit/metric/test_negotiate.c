#include "exporter/base/def.h"
#include "exporter/metric/negotiate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define OM  "application/openmetrics-text"
#define OM1 OM ";version=1.0.0"
#define OM0 OM ";version=0.0.1"

static void formats(void **state)
{
    static const struct {
        const char *accept;
        enum expo_format want;
    } cases[] = {
        {"", EXPO_TEXT},
        {"*/*", EXPO_TEXT},
        {"text/plain", EXPO_TEXT},
        {"text/*", EXPO_TEXT},
        {OM, EXPO_OPENMETRICS_1},
        {OM1, EXPO_OPENMETRICS_1},
        {OM "; version=1.0.0; charset=utf-8", EXPO_OPENMETRICS_1},
        {OM0, EXPO_OPENMETRICS_001},
        {OM ";version=2.0.0", EXPO_TEXT},
        {OM ";version=1.0", EXPO_TEXT},
        /* Prometheus 2.42 */
        {OM1 ",application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPO_OPENMETRICS_1},
        /* Prometheus 2.30 */
        {"application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         EXPO_OPENMETRICS_001},
        /* Prometheus 3, with and without names in UTF-8, and with native histograms */
        {OM1 ";escaping=allow-utf-8;q=0.6," OM0 ";q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
             "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         EXPO_OPENMETRICS_1},
        {OM1 ";escaping=underscores;q=0.5," OM0 ";q=0.4,text/plain;version=1.0.0;escaping=underscores;q=0.3,"
             "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
         EXPO_OPENMETRICS_1},
        {"application/"
         "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6," OM1
         ";q=0.5," OM0 ";q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         EXPO_OPENMETRICS_1},
        /* With scrape_protocols: [PrometheusText0.0.4] and the like */
        {"text/plain;version=0.0.4;q=0.5,*/*;q=0.4", EXPO_TEXT},
        {"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.4",
         EXPO_TEXT},
        {"text/plain;version=0.0.4;q=0.6," OM1 ";q=0.5,*/*;q=0.4", EXPO_TEXT},
        /* Telegraf, vmagent, curl, browsers */
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
         "text/plain;version=0.0.4;q=0.3",
         EXPO_TEXT},
        {"text/plain;version=0.0.4;q=1,*/*;q=0.1", EXPO_TEXT},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", EXPO_TEXT},
        /* By q, not by order */
        {"text/plain;q=0.3," OM1 ";q=0.4", EXPO_OPENMETRICS_1},
        {OM1 ";q=0.4,text/plain;q=0.3", EXPO_OPENMETRICS_1},
        {"text/plain;q=0.401," OM1 ";q=0.4", EXPO_TEXT},
        {OM1 ";q=0.1," OM0 ";q=0.2", EXPO_OPENMETRICS_001},
        {"text/plain," OM1, EXPO_OPENMETRICS_1},
        {OM1 ",text/plain", EXPO_OPENMETRICS_1},
        {OM1 ";q=0.4,*/*;q=0.9", EXPO_TEXT},
        {OM1 ";q=0", EXPO_TEXT},
        {OM1 ";q=0.000," OM0 ";q=0.001", EXPO_OPENMETRICS_001},
        {"text/plain;q=0," OM1 ";q=0.1", EXPO_OPENMETRICS_1},
        {"text/plain;q=0", EXPO_TEXT}, /* nothing left: the last resort */
        /* Forms of writing it */
        {" APPLICATION/OpenMetrics-Text ; Version = \"1.0.0\" ; Q=0.5 , text/plain;q=0.4",
         EXPO_OPENMETRICS_1},
        {OM ";version=\"0.0.1\"", EXPO_OPENMETRICS_001},
        {OM ";charset=utf-8;version=1.0.0", EXPO_OPENMETRICS_1},
        {OM1 ";q=1.000", EXPO_OPENMETRICS_1},
        {OM1 ";q=1.", EXPO_OPENMETRICS_1},
        {OM1 ";q=0.", EXPO_TEXT},
        /* Garbage asks for nothing. */
        {",", EXPO_TEXT},
        {";;;,,,===", EXPO_TEXT},
        {OM1 ";q=", EXPO_TEXT},
        {OM1 ";q=x", EXPO_TEXT},
        {OM1 ";q=-1", EXPO_TEXT},
        {OM1 ";q=2", EXPO_TEXT},
        {OM1 ";q=1.5", EXPO_TEXT},
        {OM1 ";q=0.1234", EXPO_TEXT},
        {OM1 ";q=0x1", EXPO_TEXT},
        {OM1 ";q=00.5", EXPO_TEXT},
        {OM1 ";q=.5", EXPO_TEXT},
        {OM ";version=\"", EXPO_TEXT},
        {OM ";version=\"1.0.0", EXPO_TEXT},
        {"application/openmetrics-textual", EXPO_TEXT},
        {"application/*", EXPO_TEXT},
        {"\x01\xff,\"", EXPO_TEXT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (negotiate_format(cases[i].accept) != cases[i].want)
            fail_msg("`%s` got format %d", cases[i].accept, (int)negotiate_format(cases[i].accept));
}

static void compression(void **state)
{
    static const struct {
        const char *accept;
        bool want;
    } cases[] = {
        {"", false},
        {"gzip", true},
        {"GZip", true},
        {"x-gzip", true},
        {"gzip, deflate, br, zstd", true}, /* browsers */
        {"deflate, gzip;q=1.0, *;q=0.5", true},
        {"*", true},
        {"identity", false},
        {"deflate", false},
        {"gzip;q=0", false},
        {"gzip;q=0.000", false},
        {"gzip;q=0, *", false},
        {"*;q=0", false},
        {"gzip;q=0.5", true},
        {"gzip;q=0.5, identity", false},
        {"gzip;q=0.5, identity;q=0.5", true},
        {"gzip;q=0.5, identity;q=0.6", false},
        {"identity;q=0.5, gzip;q=0.6", true},
        {"identity;q=0, gzip;q=0.1", true},
        {"gzip;q=0.5, *", false}, /* all else, what is not compressed too, is liked better */
        {"gzip;q=0.5, *;q=0", true},
        {"identity;q=0, *", true},
        {"gzip;q=nonsense", false},
        {"gzipped", false},
        {",,;q=1,", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (negotiate_gzip(cases[i].accept) != cases[i].want)
            fail_msg("`%s` gave %d", cases[i].accept, negotiate_gzip(cases[i].accept));
}

/* Prometheus 3 fails a scrape whose type it does not know: these are its words, letter by letter. */
static void content_types(void **state)
{
    (void)state;
    assert_string_equal(expo_content_types[EXPO_TEXT], "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(expo_content_types[EXPO_OPENMETRICS_1],
                        "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert_string_equal(expo_content_types[EXPO_OPENMETRICS_001],
                        "application/openmetrics-text; version=0.0.1; charset=utf-8");
    for (enum expo_format f = EXPO_TEXT; f < EXPO_FORMATS; f++)
        assert_int_equal(negotiate_format(expo_content_types[f]), f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(compression),
        cmocka_unit_test(content_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
