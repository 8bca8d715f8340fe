/* Bodies of /config, and status.lastSyncedConfig. */
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/score/summary.h"
#include "test/unit/hub/rules/spec_world.h"

#include <errno.h>

/* From the framework's documents. */
static const char *const samples[] = {
    "{'name':'simple-prediction-scorer','description':'A simple prediction score for time series data',"
    "'source':{'host':'http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090',"
    "'path':'/api/v1/query_range','params':{'query':'sum by (node, namespace, pod) "
    "(rate(container_cpu_usage_seconds_total{container!=\\'\\', pod!=\\'\\'}[1m]))','range':3600,'step':30}},"
    "'scoring':{'path':'/scoring','params':{'name':'simple_prediction_score','interval':30}}}",
    "{'name':'sample-scorer','description':'A sample score for time series data','source':{"
    "'type':'prometheus','host':'http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090',"
    "'path':'/api/v1/query_range','params':{'query':'sum by (node) (x)','range':3600,'step':60}},"
    "'scoring':{'path':'/scoring','params':{'name':'sample_my_score','interval':30}}}",
    "{'name':'example-performance-scorer','description':'An example performance score',"
    "'source':{'type':'none'},'scoring':{'path':'/performance/scoring',"
    "'params':{'name':'example_performance_score','interval':30}}}",
};

static void reads_sample_configurations(void **state)
{
    CLEANUP(api_config_done) struct api_config c = good_config(samples[0]);
    CLEANUP(api_config_done) struct api_config typed = good_config(samples[1]);
    CLEANUP(api_config_done) struct api_config none = good_config(samples[2]);

    (void)state;
    assert_string_equal(c.name, "simple-prediction-scorer");
    assert_string_equal(c.description, "A simple prediction score for time series data");
    assert_int_equal(c.n_sources, 1);
    assert_int_equal(c.sources[0].type, SOURCE_UNSET);
    assert_int_equal(c.sources[0].step_s, 30);
    assert_non_null(strstr(c.sources[0].query, "{container!=\"\", pod!=\"\"}"));
    assert_null(c.scoring.host);
    assert_string_equal(c.scoring.path, "/scoring");
    assert_string_equal(c.scoring.score_name, "simple_prediction_score");
    assert_int_equal(c.scoring.interval_s, 30);
    assert_int_equal(typed.sources[0].type, SOURCE_PROMETHEUS);
    assert_int_equal(none.sources[0].type, SOURCE_NONE);
    assert_null(none.sources[0].host);
}

static void ignores_tokens(void **state)
{
    CLEANUP(api_config_done)
    struct api_config c = good_config("{'source':{'host':'h','auth':{'tokenSecretRef':{'name':'a','key':'b'},"
                                      "'allowedHosts':['*']}},'scoring':{'auth':'anything'}}");

    (void)state;
    assert_null(c.sources[0].auth.token.name);
    assert_null(c.sources[0].auth.allowed_hosts);
    assert_null(c.scoring.auth.token.name);
}

static void rejects_what_is_not_a_configuration(void **state)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        {"", "not JSON at line 1, column 0"},
        {"<html>", "not JSON at line 1, column 1"},
        {"{'source':{\n'host':NaN}}", "not JSON at line 2, column 10"},
        {"{} {}", "not JSON at line 1, column 4"},
        {"[]", "configuration: expected an object with source and scoring, got a list"},
        {"{}", "not a configuration: it has neither source nor scoring"},
        {"{'error':'internal','name':'x'}", "not a configuration: it has neither source nor scoring"},
        {"{'source':null,'scoring':null}", "not a configuration: it has neither source nor scoring"},
        {"{'source':'x'}", "source: expected an object, got a string"},
        {"{'source':{},'sources':[]}", "source and sources: only one may be set"},
        {"{'sources':[{'host':5}]}", "sources[0].host: expected a string, got 5"},
        {"{'source':{'type':'x'}}",
         "source.type: expected Prometheus, None, OpenTelemetry, OTel or OTLP, got \"x\""},
        {"{'scoring':{'params':{'interval':'30s'}}}",
         "scoring.params.interval: expected a whole number of seconds, got a string"},
        {"{'scoring':{'params':{'interval':-3}},'name':{}}",
         "name: expected a string, got an object; scoring.params.interval: expected a whole number of "
         "seconds, got -3"},
        {"{'scoring':{'params':{'x':[]}}}",
         "scoring.params.x: expected a string, a number, true or false, got a list"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_config c = {.name = "untouched"};
        char why[SPEC_WHY_BYTES] = "";

        assert_int_equal(parse_config(&c, cases[i].body, why), i < 4 ? -EBADMSG : -EINVAL);
        assert_string_equal(why, cases[i].why);
        assert_string_equal(c.name, "untouched");
    }
}

static void writes_what_the_status_schema_requires(void **state)
{
    static const struct {
        const char *config, *value;
    } cases[] = {
        {"{'scoring':{}}", "{'description':'','name':'','scoring':{'params':{'interval':0,'name':''},"
                           "'path':''},'source':{'params':{'query':'','range':0,'step':0},'path':''}}"},
        {"{'name':'n','description':'d','source':{'type':'NONE','host':'h','query':'q'},"
         "'scoring':{'host':'s','params':{'z':1,'a':true,'name':'sn'}}}",
         "{'description':'d','name':'n','scoring':{'host':'s','params':{'interval':0,'name':'sn','z':1,"
         "'a':true},'path':''},'source':{'host':'h','params':{'query':'q','range':0,'step':0},"
         "'path':'','type':'None'}}"},
        {"{'sources':[{'query':'a'},{'type':'prometheus','path':'p'}]}",
         "{'description':'','name':'','scoring':{'params':{'interval':0,'name':''},'path':''},"
         "'source':{'params':{'query':'a','range':0,'step':0},'path':''},"
         "'sources':[{'params':{'query':'a','range':0,'step':0},'path':''},"
         "{'params':{'query':'','range':0,'step':0},'path':'p','type':'Prometheus'}]}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(api_config_done) struct api_config c = good_config(cases[i].config);
        CLEANUP(cleanup_free) char *want = quoted(cases[i].value);
        json_auto_t *value = api_config_value(&c);
        BUF_AUTO(text, 4096);

        assert_non_null(value);
        kube_json_print(value, &text);
        buf_putc(&text, '\0');
        assert_int_equal(buf_failed(&text), 0);
        assert_string_equal(text.p, want);
    }
}

static void reads_its_own_status_back(void **state)
{
    static const char *const more[] = {
        "{'scoring':{}}",
        "{'source':{}}",
        "{'sources':[]}",
        "{'sources':[{}]}",
        "{'sources':[{},{}]}",
        "{'sources':[{},{'type':'None'},{'host':'h','query':{'query':'q','range':1,'step':2}}]}",
        "{'source':{'endpoint':{'host':'h','path':'p'}},'scoring':{'endpoint':{'host':'h','path':'p'}}}",
        "{'scoring':{'params':{'model':'m','x':0.1,'big':9007199254740993,'no':false,'empty':''}}}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(samples) + ARRAY_SIZE(more); i++) {
        const char *text = i < ARRAY_SIZE(samples) ? samples[i] : more[i - ARRAY_SIZE(samples)];
        CLEANUP(api_config_done) struct api_config c = good_config(text);
        CLEANUP(api_config_done) struct api_config again = {0};
        json_auto_t *value = api_config_value(&c);
        char why[SPEC_WHY_BYTES];

        assert_int_equal(api_config_read(&again, value, why), 0);
        assert_true(same_config(&c, &again));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_sample_configurations),
        cmocka_unit_test(ignores_tokens),
        cmocka_unit_test(rejects_what_is_not_a_configuration),
        cmocka_unit_test(writes_what_the_status_schema_requires),
        cmocka_unit_test(reads_its_own_status_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
