/* The spec of a DynamicScorer: every alias, and an error for every invalid field. */
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/score/summary.h"
#include "test/unit/hub/rules/spec_world.h"

#include <errno.h>

static void reads_every_field(void **state)
{
    CLEANUP(scorer_spec_done)
    struct scorer_spec s =
        good_spec("'description':'d','configURL':'http://api:8000/config','configSyncMode':'Full',"
                  "'configAuth':{'tokenSecretRef':{'name':'cs','key':'ck'}},'location':'External',"
                  "'scoreDestination':'None','scoreDimensionFormat':'${node}','scoreAggregation':'avg',"
                  "'scoreRange':{'min':0,'max':1},'fallbackScore':-5,'timeout':'10s','healthCheck':'agents',"
                  "'source':{'type':'Prometheus','host':'http://p:9090','path':'/q',"
                  "'params':{'query':'up','range':600,'step':30},"
                  "'auth':{'tokenSecretRef':{'name':'ps','key':'pk'},'allowedHosts':['https://o:1','*']}},"
                  "'scoring':{'host':'http://s:1','path':'/s','params':{'name':'n','interval':30},"
                  "'auth':{'tokenSecretRef':{'name':'ss','key':'sk'}}}");
    const struct source_spec *p = &s.own.sources[0];

    (void)state;
    assert_int_equal(s.mode, SYNC_FULL);
    assert_int_equal(s.health_check, HEALTH_CHECK_AGENTS);
    assert_string_equal(s.config_url, "http://api:8000/config");
    assert_string_equal(s.config_token.name, "cs");
    assert_string_equal(s.config_token.key, "ck");
    assert_string_equal(s.location, "External");
    assert_string_equal(s.destination, "None");
    assert_string_equal(s.dimension_format, "${node}");
    assert_string_equal(s.aggregation, "avg");
    assert_true(json_is_object(s.score_range) && json_is_integer(s.fallback_score) &&
                json_is_string(s.timeout));
    assert_null(s.own.name);
    assert_string_equal(s.own.description, "d");
    assert_int_equal(s.own.n_sources, 1);
    assert_int_equal(p->type, SOURCE_PROMETHEUS);
    assert_string_equal(p->host, "http://p:9090");
    assert_string_equal(p->path, "/q");
    assert_string_equal(p->query, "up");
    assert_int_equal(p->range_s, 600);
    assert_int_equal(p->step_s, 30);
    assert_string_equal(p->auth.token.name, "ps");
    assert_string_equal(p->auth.token.key, "pk");
    assert_int_equal(json_array_size(p->auth.allowed_hosts), 2);
    assert_string_equal(s.own.scoring.host, "http://s:1");
    assert_string_equal(s.own.scoring.path, "/s");
    assert_string_equal(s.own.scoring.score_name, "n");
    assert_int_equal(s.own.scoring.interval_s, 30);
    assert_string_equal(s.own.scoring.auth.token.name, "ss");
    assert_null(s.own.scoring.auth.allowed_hosts);
    assert_null(s.own.scoring.params);
}

static void reads_the_aliases(void **state)
{
    CLEANUP(scorer_spec_done)
    struct scorer_spec s =
        good_spec("'name':'cpu-predictor','source':{'type':'Prometheus',"
                  "'endpoint':{'host':'http://prometheus.monitoring.svc:9090','path':'/api/v1/query_range'},"
                  "'query':{'query':'rate(x[5m])','range':3600,'step':60}},"
                  "'scoring':{'endpoint':{'host':'http://cpu:8000','path':'/scoring'},"
                  "'params':{'model':'linear_regression','horizon':3600}}");
    const struct source_spec *p = &s.own.sources[0];

    (void)state;
    assert_int_equal(s.mode, SYNC_NONE);
    assert_null(s.config_url);
    assert_string_equal(s.own.name, "cpu-predictor");
    assert_string_equal(p->host, "http://prometheus.monitoring.svc:9090");
    assert_string_equal(p->path, "/api/v1/query_range");
    assert_string_equal(p->query, "rate(x[5m])");
    assert_int_equal(p->range_s, 3600);
    assert_int_equal(p->step_s, 60);
    assert_string_equal(s.own.scoring.host, "http://cpu:8000");
    assert_string_equal(s.own.scoring.path, "/scoring");
    assert_null(s.own.scoring.score_name);
    assert_int_equal(json_object_size(s.own.scoring.params), 2);
    assert_string_equal(kube_str(s.own.scoring.params, "model", NULL), "linear_regression");
}

static void prefers_the_canonical_field(void **state)
{
    CLEANUP(scorer_spec_done)
    struct scorer_spec s =
        good_spec("'source':{'host':'h','endpoint':{'host':'no','path':'p'},'params':{'query':'','step':5},"
                  "'query':{'query':'q','range':7,'step':9}},"
                  "'scoring':{'path':'sp','endpoint':{'host':'sh','path':'no'}}");
    CLEANUP(scorer_spec_done) struct scorer_spec plain = good_spec("'sources':[{'query':'up'},{'host':'b'}]");
    const struct source_spec *p = &s.own.sources[0];

    (void)state;
    assert_string_equal(p->host, "h");
    assert_string_equal(p->path, "p");
    assert_string_equal(p->query, "q");
    assert_int_equal(p->range_s, 7);
    assert_int_equal(p->step_s, 5);
    assert_string_equal(s.own.scoring.host, "sh");
    assert_string_equal(s.own.scoring.path, "sp");
    assert_int_equal(plain.own.n_sources, 2);
    assert_string_equal(plain.own.sources[0].query, "up");
    assert_string_equal(plain.own.sources[1].host, "b");
}

static void reads_enums_in_any_case(void **state)
{
    static const struct {
        const char *members;
        enum sync_mode mode;
        enum source_type type;
        const char *location, *destination, *aggregation;
    } cases[] = {
        {"'configSyncMode':'full','configURL':'u','source':{'type':'prometheus'},'location':'external',"
         "'scoreDestination':'ADDONPLACEMENTSCORE','scoreAggregation':'MAX'",
         SYNC_FULL, SOURCE_PROMETHEUS, "External", "AddOnPlacementScore", "max"},
        {"'configSyncMode':'NONE','source':{'type':'none'},'location':'INTERNAL','scoreDestination':'none'",
         SYNC_NONE, SOURCE_NONE, "Internal", "None", NULL},
        {"'configSyncMode':'','source':{'type':'','host':'x'},'location':'','scoreDestination':''", SYNC_NONE,
         SOURCE_UNSET, NULL, NULL, NULL},
        {"", SYNC_NONE, SOURCE_UNSET, NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(cases[i].members);

        assert_int_equal(s.mode, cases[i].mode);
        assert_int_equal(s.own.sources[0].type, cases[i].type);
        assert_true(same_str(s.location, cases[i].location));
        assert_true(same_str(s.destination, cases[i].destination));
        assert_true(same_str(s.aggregation, cases[i].aggregation));
    }
}

static void reads_empty_values_as_absent(void **state)
{
    static const char *const cases[] = {
        "",
        "'source':null,'sources':null,'scoring':null",
        "'source':{},'scoring':{}",
        "'sources':[]",
        "'sources':[{}]",
        "'source':{'type':null,'host':'','params':{'query':'','range':0,'step':0.0},'auth':null}",
        "'source':{'auth':{'tokenSecretRef':{'name':'','key':''},'allowedHosts':[]}}",
        "'scoring':{'host':'','params':{'name':'','interval':0},'auth':{'tokenSecretRef':{}}}",
        "'unknown':{'a':1},'source':{'unknown':[]}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(cases[i]);

        assert_int_equal(s.own.n_sources, 0);
        assert_null(s.own.sources[0].host);
        assert_null(s.own.scoring.host);
        assert_null(s.own.scoring.score_name);
        assert_null(s.own.scoring.auth.token.name);
        assert_non_null(s.own.owner);
    }
}

static void names_each_invalid_field(void **state)
{
    static const struct {
        const char *members, *why;
    } cases[] = {
        {"'configSyncMode':'part'", "spec.configSyncMode: expected Full or None, got \"part\""},
        {"'configSyncMode':1", "spec.configSyncMode: expected a string, got 1"},
        {"'configSyncMode':'Full'", "spec.configURL: expected a URL, as configSyncMode is Full, got nothing"},
        {"'configURL':[]", "spec.configURL: expected a string, got a list"},
        {"'healthCheck':'node'", "spec.healthCheck: expected Hub, Agents or None, got \"node\""},
        {"'location':'moon'", "spec.location: expected Internal or External, got \"moon\""},
        {"'scoreDestination':'x'", "spec.scoreDestination: expected AddOnPlacementScore or None, got \"x\""},
        {"'scoreAggregation':'median'",
         "spec.scoreAggregation: expected last, avg, max, min or sum, got \"median\""},
        {"'scoreDimensionFormat':{}", "spec.scoreDimensionFormat: expected a string, got an object"},
        {"'name':true", "spec.name: expected a string, got true"},
        {"'description':1.5", "spec.description: expected a string, got 1.5"},
        {"'description':'a\\u0000b'", "spec.description: expected a string without NUL characters"},
        {"'source':[]", "spec.source: expected an object, got a list"},
        {"'source':{},'sources':[]", "spec.source and spec.sources: only one may be set"},
        {"'sources':{}", "spec.sources: expected a list, got an object"},
        {"'sources':[{},7]", "spec.sources[1]: expected an object, got 7"},
        {"'sources':[{},{'params':{'query':5}}]", "spec.sources[1].params.query: expected a string, got 5"},
        {"'sources':[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "spec.sources: expected at most 16, got 17"},
        {"'source':{'type':'graphite'}",
         "spec.source.type: expected Prometheus, None, OpenTelemetry, OTel or OTLP, got \"graphite\""},
        {"'source':{'host':1}", "spec.source.host: expected a string, got 1"},
        {"'source':{'params':'x'}", "spec.source.params: expected an object, got a string"},
        {"'source':{'params':{'range':'1h'}}",
         "spec.source.params.range: expected a whole number of seconds, got a string"},
        {"'source':{'params':{'range':-1}}",
         "spec.source.params.range: expected a whole number of seconds, got -1"},
        {"'source':{'params':{'step':0.5}}",
         "spec.source.params.step: expected a whole number of seconds, got 0.5"},
        {"'source':{'endpoint':'x'}", "spec.source.endpoint: expected an object, got a string"},
        {"'source':{'endpoint':{'path':1}}", "spec.source.endpoint.path: expected a string, got 1"},
        {"'source':{'query':[]}", "spec.source.query: expected an object, got a list"},
        {"'source':{'query':{'step':''}}",
         "spec.source.query.step: expected a whole number of seconds, got an empty string"},
        {"'source':{'auth':'s3cret'}", "spec.source.auth: expected an object, got a string"},
        {"'source':{'auth':{'tokenSecretRef':'s3cret'}}",
         "spec.source.auth.tokenSecretRef: expected an object, got a string"},
        {"'source':{'auth':{'tokenSecretRef':{'key':'a'}}}",
         "spec.source.auth.tokenSecretRef: a key needs the name of its Secret"},
        {"'scoring':{'auth':{'tokenSecretRef':{'key':'a','name':''}}}",
         "spec.scoring.auth.tokenSecretRef: a key needs the name of its Secret"},
        {"'scoring':{'auth':{'tokenSecretRef':{'key':'a','name':3}}}",
         "spec.scoring.auth.tokenSecretRef.name: expected a string, got 3"},
        {"'configAuth':{'tokenSecretRef':{'key':'a'}}",
         "spec.configAuth.tokenSecretRef: a key needs the name of its Secret"},
        {"'source':{'auth':{'allowedHosts':'x'}}",
         "spec.source.auth.allowedHosts: expected a list of at most 64 hosts, got a string"},
        {"'scoring':{'auth':{'allowedHosts':['http://a','prometheus:9090']}}",
         "spec.scoring.auth.allowedHosts[1]: expected an origin such as https://prometheus.example:9090, "
         "or *, got a string"},
        {"'scoring':{'auth':{'allowedHosts':[null]}}",
         "spec.scoring.auth.allowedHosts[0]: expected an origin such as https://prometheus.example:9090, "
         "or *, got null"},
        {"'scoring':7", "spec.scoring: expected an object, got 7"},
        {"'scoring':{'params':{'name':1}}", "spec.scoring.params.name: expected a string, got 1"},
        {"'scoring':{'params':{'interval':false}}",
         "spec.scoring.params.interval: expected a whole number of seconds, got false"},
        {"'scoring':{'params':{'model':['a']}}",
         "spec.scoring.params.model: expected a string, a number, true or false, got a list"},
        {"'scoring':{'params':{'model':{}}}",
         "spec.scoring.params.model: expected a string, a number, true or false, got an object"},
        {"'scoring':{'params':{'model':null}}",
         "spec.scoring.params.model: expected a string, a number, true or false, got null"},
        {"'name':1,'scoring':{'host':2,'path':3}",
         "spec.name: expected a string, got 1; spec.scoring.host: expected a string, got 2; "
         "spec.scoring.path: expected a string, got 3"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct scorer_spec s = {.config_url = "untouched"};
        char why[SPEC_WHY_BYTES] = "";

        assert_int_equal(read_spec(&s, cases[i].members, why), -EINVAL);
        assert_string_equal(why, cases[i].why);
        assert_string_equal(s.config_url, "untouched");
    }
}

/* A scorer that is distributed without a health check stays so while its spec is invalid. */
static void reads_the_health_check_of_an_invalid_spec(void **state)
{
    static const struct {
        const char *text;
        enum health_check check;
        const char *word;
    } cases[] = {
        {"{'spec':{'configURL':[],'healthCheck':'NONE'}}", HEALTH_CHECK_NONE, "None"},
        {"{'spec':{'configURL':[],'healthCheck':'Agents'}}", HEALTH_CHECK_AGENTS, "Agents"},
        {"{'spec':{'healthCheck':'hub'}}", HEALTH_CHECK_HUB, "Hub"},
        {"{'spec':{'healthCheck':''}}", HEALTH_CHECK_HUB, "Hub"},
        {"{'spec':{'healthCheck':'node'}}", HEALTH_CHECK_HUB, "Hub"},
        {"{'spec':{'healthCheck':3}}", HEALTH_CHECK_HUB, "Hub"},
        {"{'spec':[]}", HEALTH_CHECK_HUB, "Hub"},
        {"{}", HEALTH_CHECK_HUB, "Hub"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = value_of(cases[i].text);

        char why[SPEC_WHY_BYTES] = "";
        CLEANUP(scorer_spec_done) struct scorer_spec s = {0};

        (void)!scorer_spec_read(&s, o, why);
        assert_int_equal(s.health_check, cases[i].check);
        assert_string_equal(health_check_word(cases[i].check), cases[i].word);
    }
}

static void rejects_an_object_without_spec(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{}", "spec: expected an object, got nothing"},
        {"{'spec':null}", "spec: expected an object, got nothing"},
        {"{'spec':'x'}", "spec: expected an object, got a string"},
        {"[]", "spec: expected an object, got nothing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = value_of(cases[i].text);
        char why[SPEC_WHY_BYTES] = "";
        struct scorer_spec s;

        assert_int_equal(scorer_spec_read(&s, o, why), -EINVAL);
        assert_string_equal(why, cases[i].why);
    }
}

static void shortens_many_errors(void **state)
{
    CLEANUP(cleanup_free) char *text = malloc(40000);
    char why[SPEC_WHY_BYTES];
    struct scorer_spec s;
    size_t n = 0;

    (void)state;
    assert_non_null(text);
    n += (size_t)sprintf(text, "'scoring':{'params':{");
    for (int i = 0; i < 1000; i++)
        n += (size_t)sprintf(text + n, "%s'name of a parameter %d':[]", i ? "," : "", i);
    (void)strcpy(text + n, "}}");
    assert_int_equal(read_spec(&s, text, why), -EINVAL);
    assert_true(strlen(why) < SPEC_WHY_BYTES && strlen(why) > SPEC_WHY_BYTES - 10);
    assert_non_null(strstr(why, "…"));
}

static void limits_the_number_of_parameters(void **state)
{
    CLEANUP(cleanup_free) char *text = malloc(4000);
    char why[SPEC_WHY_BYTES];
    struct scorer_spec s;

    (void)state;
    assert_non_null(text);
    for (int most = 64; most <= 65; most++) {
        size_t n = (size_t)sprintf(text, "'scoring':{'params':{'name':'n','interval':5");

        for (int i = 0; i < most; i++)
            n += (size_t)sprintf(text + n, ",'p%d':%d", i, i);
        (void)strcpy(text + n, "}}");
        assert_int_equal(read_spec(&s, text, why), most == 64 ? 0 : -EINVAL);
        if (most == 64)
            scorer_spec_done(&s);
    }
    assert_string_equal(why, "spec.scoring.params: expected at most 64 parameters, got 65");
}

static void shares_the_document_with_copies(void **state)
{
    CLEANUP(scorer_spec_done)
    struct scorer_spec s = good_spec("'name':'n','scoring':{'params':{'a':1}}");
    struct scorer_spec copy = s;

    (void)state;
    (void)json_incref(copy.own.owner);
    scorer_spec_done(&s);
    assert_string_equal(copy.own.name, "n");
    assert_int_equal(json_integer_value(kube_get(copy.own.scoring.params, "a", NULL)), 1);
    scorer_spec_done(&copy);
    scorer_spec_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_field),
        cmocka_unit_test(reads_the_aliases),
        cmocka_unit_test(prefers_the_canonical_field),
        cmocka_unit_test(reads_enums_in_any_case),
        cmocka_unit_test(reads_empty_values_as_absent),
        cmocka_unit_test(names_each_invalid_field),
        cmocka_unit_test(reads_the_health_check_of_an_invalid_spec),
        cmocka_unit_test(rejects_an_object_without_spec),
        cmocka_unit_test(shortens_many_errors),
        cmocka_unit_test(limits_the_number_of_parameters),
        cmocka_unit_test(shares_the_document_with_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
