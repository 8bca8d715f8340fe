/* Effective summaries: precedence, defaults, and errors with their fields. */
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/score/feature.h"
#include "test/unit/hub/rules/spec_world.h"

#include <errno.h>

#define URL  "'configURL':'http://api:8000/config'"
#define FULL "'configSyncMode':'Full'," URL
#define GOOD "'source':{'host':'http://p','query':'up'},'scoring':{'host':'http://s','params':{'name':'n'}}"

/* config may be NULL: nothing synced. */
static struct effective make(const char *spec, const char *config)
{
    CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(spec);
    CLEANUP(api_config_done)
    struct api_config c = config ? good_config(config) : (struct api_config){0};
    struct effective e;

    effective_make(&e, "meta", &s, config ? &c : NULL);
    assert_int_equal(e.text.n > 0, e.reason == EFFECTIVE_OK);
    assert_int_equal(*e.error == '\0', e.reason == EFFECTIVE_OK);
    return e;
}

/* The summary's member as text; NULL when absent. */
static char *member(const struct effective *e, const char *key)
{
    json_auto_t *o = NULL;
    BUF_AUTO(text, 4096);
    const json_t *v;

    if (e->reason != EFFECTIVE_OK)
        print_error("%s\n", e->error);
    assert_int_equal(e->reason, EFFECTIVE_OK);
    assert_int_equal(kube_json_parse(&o, buf_str(&e->text), NULL), 0);
    v = kube_get(o, key, NULL);
    if (!v)
        return NULL;
    if (json_is_string(v))
        return strdup(json_string_value(v));
    kube_json_print(v, &text);
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
    return strdup(text.p);
}

static void assert_text(const struct effective *e, const char *want)
{
    CLEANUP(cleanup_free) char *json = quoted(want);
    CLEANUP(cleanup_free) char *got = str_dup(buf_str(&e->text));

    if (e->reason != EFFECTIVE_OK)
        print_error("%s\n", e->error);
    assert_string_equal(got, json);
}

static void writes_the_frameworks_summary(void **state)
{
    static const char *const config =
        "{'name':'sample-scorer','description':'A sample score for time series data','source':{"
        "'type':'prometheus','host':'http://prom.monitoring.svc:9090','path':'/api/v1/query_range',"
        "'params':{'query':'sum by (node) (x)','range':3600,'step':60}},"
        "'scoring':{'path':'/scoring','params':{'name':'sample_my_score','interval':30}}}";
    CLEANUP(effective_done)
    struct effective e = make(FULL ",'description':'d','scoreDimensionFormat':'${node};${pod}'", config);

    (void)state;
    assert_int_equal(e.source, CONFIG_FROM_API);
    assert_string_equal(e.score_name, "sample_my_score");
    assert_int_equal(e.interval_ms, 30000);
    assert_text(&e, "{'name':'sample-scorer','scoreName':'sample_my_score','sourceType':'Prometheus',"
                    "'sourceEndpoint':'http://prom.monitoring.svc:9090/api/v1/query_range',"
                    "'sourceEndpointAuthName':'','sourceEndpointAuthKey':'',"
                    "'sourceQuery':'sum by (node) (x)','sourceRange':3600,'sourceStep':60,"
                    "'scoringEndpoint':'http://api:8000/scoring','scoringInterval':30,"
                    "'scoringEndpointAuthName':'','scoringEndpointAuthKey':'','location':'Internal',"
                    "'scoreDestination':'AddOnPlacementScore','scoreDimensionFormat':'${node};${pod}'}");
}

static void writes_every_field_that_is_set(void **state)
{
    CLEANUP(effective_done)
    struct effective e = make(
        "'name':'own','location':'external','scoreDestination':'none','scoreAggregation':'MAX',"
        "'scoreRange':{'min':0,'max':1.5},'fallbackScore':-50,'timeout':'10s','source':{'type':'prometheus',"
        "'host':'https://p/prefix/','params':{'query':'a;b','range':60,'step':5},"
        "'auth':{'tokenSecretRef':{'name':'ps','key':'pk'}}},'scoring':{'host':'https://s:1/',"
        "'path':'x?y=1','params':{'name':'N','interval':7,'model':'l r','h':3},"
        "'auth':{'tokenSecretRef':{'name':'ss','key':'sk'}}}",
        NULL);

    (void)state;
    assert_int_equal(e.source, CONFIG_FROM_SPEC);
    assert_int_equal(e.interval_ms, 7000);
    assert_text(&e, "{'name':'own','scoreName':'N','sourceType':'Prometheus',"
                    "'sourceEndpoint':'https://p/prefix/api/v1/query_range','sourceEndpointAuthName':'ps',"
                    "'sourceEndpointAuthKey':'pk','sourceQuery':'a;b','sourceRange':60,'sourceStep':5,"
                    "'scoringEndpoint':'https://s:1/x?y=1&h=3&model=l%20r','scoringInterval':7,"
                    "'scoringEndpointAuthName':'ss','scoringEndpointAuthKey':'sk','location':'External',"
                    "'scoreDestination':'None','scoreDimensionFormat':'${scoreName}',"
                    "'scoreAggregation':'max','scoreRange':{'min':0,'max':1.5},'fallbackScore':-50,"
                    "'timeout':'10s'}");
}

static void fills_in_defaults(void **state)
{
    CLEANUP(effective_done) struct effective e = make(URL, NULL);

    (void)state;
    assert_int_equal(e.interval_ms, 60000);
    assert_text(&e, "{'name':'meta','scoreName':'meta','sourceType':'None','sourceEndpoint':'',"
                    "'sourceEndpointAuthName':'','sourceEndpointAuthKey':'','sourceQuery':'','sourceRange':0,"
                    "'sourceStep':0,'scoringEndpoint':'http://api:8000/scoring','scoringInterval':60,"
                    "'scoringEndpointAuthName':'','scoringEndpointAuthKey':'','location':'Internal',"
                    "'scoreDestination':'AddOnPlacementScore','scoreDimensionFormat':'${scoreName}'}");
}

/* ${cluster} alone stays as it is, for agents to replace; an unknown placeholder is sent, with a warning. */
static void passes_on_the_cluster_of_the_scoring_endpoint(void **state)
{
    CLEANUP(effective_done)
    struct effective e =
        make("'source':{'type':'None'},'scoring':{'host':'http://s','path':'/for/${cluster}',"
             "'params':{'name':'N','as':'a ${cluster} & b','x':'${node}'}},'scoreTolerance':5,"
             "'scoreRange':{'min':1,'max':0}",
             NULL);

    (void)state;
    assert_int_equal(e.reason, EFFECTIVE_OK);
    assert_non_null(memmem(e.text.p, e.text.n,
                           "http://s/for/${cluster}?as=a%20${cluster}%20%26%20b&x=%24%7Bnode%7D", 63));
    assert_non_null(memmem(e.text.p, e.text.n, "\"scoreTolerance\":5", 18));
    assert_true(e.unknown_placeholder);
    assert_string_equal(e.warning,
                        "scoring: unknown placeholder \"${node}\" is sent as it is; known is ${cluster}");
    assert_int_equal(e.needs, 1u << FEATURE_REVERSED_RANGE | 1u << FEATURE_SCORE_TOLERANCE |
                                  1u << FEATURE_SCORING_CLUSTER);
}

/* One field of the summary, set in every way. */
static void prefers_config_to_spec_to_default(void **state)
{
    static const struct {
        const char *spec, *config, *key, *want;
    } rows[] = {
        /* None mode ignores /config. */
        {GOOD, "{'scoring':{'host':'http://no','params':{'name':'no'}}}", "scoreName", "n"},
        {GOOD, "{'scoring':{'host':'http://no'}}", "scoringEndpoint", "http://s/scoring"},
        {GOOD, "{'name':'no','scoring':{}}", "name", "meta"},
        {"'name':'own'," GOOD, NULL, "name", "own"},
        /* Full: /config, the spec, the default. */
        {FULL ",'name':'own'," GOOD, "{'name':'api','scoring':{}}", "name", "api"},
        {FULL ",'name':'own'," GOOD, "{'scoring':{}}", "name", "own"},
        {FULL "," GOOD, "{'scoring':{}}", "name", "meta"},
        {FULL "," GOOD, "{'scoring':{'params':{'name':'api'}}}", "scoreName", "api"},
        {FULL "," GOOD, "{'name':'no','scoring':{}}", "scoreName", "n"},
        {FULL ",'name':'own','source':{'type':'none'}", "{'name':'no','scoring':{}}", "scoreName", "own"},
        {FULL ",'name':'own','source':{'type':'none'}", "{'name':'api','scoring':{}}", "name", "api"},
        {FULL ",'name':'no','source':{'type':'none'}", "{'scoring':{'params':{'name':'api'}}}", "scoreName",
         "api"},
        {FULL ",'source':{'type':'none'}", "{'name':'api','scoring':{}}", "scoreName", "api"},
        {FULL ",'name':'own','source':{'type':'none'}", "{'scoring':{}}", "scoreName", "own"},
        {"'name':'own','source':{'type':'none'}," URL, NULL, "scoreName", "own"},
        {FULL "," GOOD, "{'source':{'host':'http://api'}}", "sourceEndpoint",
         "http://api/api/v1/query_range"},
        {FULL "," GOOD, "{'source':{'path':'q'}}", "sourceEndpoint", "http://p/q"},
        {FULL "," GOOD, "{'source':{'query':'api'}}", "sourceQuery", "api"},
        {FULL "," GOOD, "{'source':{'params':{'range':5}}}", "sourceQuery", "up"},
        {FULL "," GOOD, "{'source':{'params':{'range':5}}}", "sourceRange", "5"},
        {FULL "," GOOD, "{'source':{'params':{'step':5}}}", "sourceRange", "3600"},
        {FULL "," GOOD, "{'source':{'params':{'step':5}}}", "sourceStep", "5"},
        {FULL "," GOOD, "{'source':{'type':'NONE'}}", "sourceType", "None"},
        {FULL "," GOOD, "{'source':{'type':'NONE','host':'x','query':'y'}}", "sourceEndpoint", ""},
        {FULL "," GOOD, "{'source':{'type':'NONE'}}", "sourceRange", "0"},
        {FULL ",'source':{'type':'none'},'scoring':{'params':{'name':'n'}}", "{'scoring':{}}", "sourceType",
         "None"},
        {FULL ",'scoring':{'params':{'name':'n'}}", "{'scoring':{}}", "sourceType", "None"},
        {FULL "," GOOD, "{'scoring':{'host':'http://api'}}", "scoringEndpoint", "http://api/scoring"},
        {FULL "," GOOD, "{'scoring':{'path':'/x'}}", "scoringEndpoint", "http://s/x"},
        {FULL ",'scoring':{'path':'/own'}", "{'name':'n','source':{'host':'http://prom','query':'q'}}",
         "scoringEndpoint", "http://api:8000/own"},
        {FULL "," GOOD, "{'scoring':{'params':{'interval':5}}}", "scoringInterval", "5"},
        {FULL ",'scoring':{'params':{'name':'n','interval':9}}", "{'source':{'type':'none'}}",
         "scoringInterval", "9"},
        {FULL ",'scoring':{'params':{'name':'n','a':1,'b':2}}",
         "{'source':{'type':'none'},'scoring':{'params':{'b':3,'c':4}}}", "scoringEndpoint",
         "http://api:8000/scoring?a=1&b=3&c=4"},
        /* Before the first /config, a complete spec is used. */
        {FULL "," GOOD, NULL, "scoreName", "n"},
        /* Numbers in every notation. */
        {GOOD ",'fallbackScore':5.0", NULL, "fallbackScore", "5"},
        {GOOD ",'timeout':30", NULL, "timeout", "30"},
        {GOOD ",'timeout':2.5", NULL, "timeout", "2.5"},
        {GOOD ",'scoreAggregation':'Last'", NULL, "scoreAggregation", "last"},
        {GOOD, NULL, "scoreAggregation", NULL},
        /* The first of several items is what older agents know. */
        {GOOD ",'scoreItems':[{'format':'f','aggregation':'sum'},{'format':'g'}]", NULL,
         "scoreDimensionFormat", "f"},
        {GOOD ",'scoreItems':[{'format':'f','aggregation':'sum'},{'format':'g'}]", NULL, "scoreAggregation",
         "sum"},
        {GOOD, NULL, "sources", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(effective_done) struct effective e = make(rows[i].spec, rows[i].config);
        CLEANUP(cleanup_free) char *got = member(&e, rows[i].key);

        if (!same_str(got, rows[i].want))
            print_error("%s with %s: %s is %s\n", rows[i].spec, cstr(rows[i].config), rows[i].key, cstr(got));
        assert_true(same_str(got, rows[i].want));
    }
}

static void names_the_fields_that_are_missing_or_invalid(void **state)
{
#define URL_WANTED "expected an absolute http or https URL with a host"
#define WAITING    "no configuration received from spec.configURL yet: "
    static const struct {
        const char *spec, *config;
        enum effective_reason reason;
        const char *why, *score_name;
    } rows[] = {
        {"'source':{'host':'http://p','query':'q'}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoring.host: missing, " URL_WANTED, "meta"},
        {URL ",'source':{'query':'q'}", NULL, EFFECTIVE_INCOMPLETE, "spec.source.host: missing, " URL_WANTED,
         "meta"},
        {URL ",'source':{'host':'http://p'}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.source.params.query: missing, expected a PromQL query", "meta"},
        {URL ",'source':{'host':'p:9090','query':'q'}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.source.host: " URL_WANTED ", got the string \"p:9090/api/v1/query_range\"", "meta"},
        {URL ",'source':{'host':'http://p','query':' ; '}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.source.params.query: expected a PromQL query, got the string \" ; \"", "meta"},
        {URL ",'source':{'host':'http://p','query':'q','params':{'range':99999999}}", NULL,
         EFFECTIVE_INCOMPLETE,
         "spec.source.params.range: expected a whole number of seconds from 1 to 31622400, got 99999999",
         "meta"},
        {URL ",'source':{'host':'http://p','query':'q','params':{'step':99999999}}", NULL,
         EFFECTIVE_INCOMPLETE,
         "spec.source.params.step: expected a whole number of seconds from 1 to 86400, got 99999999", "meta"},
        {URL
         ",'source':{'host':'http://p','query':'q','auth':{'tokenSecretRef':{'name':'../x','key':'a/b'}}}",
         NULL, EFFECTIVE_INCOMPLETE,
         "spec.source.auth.tokenSecretRef.name: expected at most 253 letters, digits, '-', '_' and '.', not "
         "starting with '.', got the string \"../x\"; spec.source.auth.tokenSecretRef.key: expected at most "
         "253 letters, digits, '-', '_' and '.', not starting with '.', got the string \"a/b\"",
         "meta"},
        {URL ",'scoring':{'params':{'interval':9999999}}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoring.params.interval: expected a whole number of seconds from 1 to 604800, got 9999999",
         "meta"},
        {URL ",'scoring':{'params':{'name':'  '}}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoring.params.name: expected a name of 1 to 1024 bytes that is not blank, got the string "
         "\"  \"",
         "  "},
        {URL ",'scoring':{'auth':{'tokenSecretRef':{'name':'a b','key':'k'}}}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoring.auth.tokenSecretRef.name: expected at most 253 letters, digits, '-', '_' and '.', not "
         "starting with '.', got the string \"a b\"",
         "meta"},
        {URL ",'fallbackScore':101", NULL, EFFECTIVE_INCOMPLETE,
         "spec.fallbackScore: expected a whole number from -100 to 100, got 101", "meta"},
        {URL ",'scoreRange':{'min':1}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoreRange.max: missing, expected a finite number", "meta"},
        {URL ",'scoreRange':7", NULL, EFFECTIVE_INCOMPLETE, "spec.scoreRange: expected an object, got 7",
         "meta"},
        {URL ",'scoreItems':[{'format':'a','aggregation':'median'},{'format':'a'}]", NULL,
         EFFECTIVE_INCOMPLETE,
         "spec.scoreItems[0].aggregation: expected last, avg, max, min or sum, got the string \"median\"; "
         "spec.scoreItems[1].format: already the format of scoreItems[0]",
         "meta"},
        {URL ",'scoreItems':[{'format':'a'}],'scoreDimensionFormat':'b'", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoreDimensionFormat: must equal scoreItems[0].format, or be left out", "meta"},
        {URL ",'scoreItems':{}", NULL, EFFECTIVE_INCOMPLETE,
         "spec.scoreItems: expected a list of items, got an object", "meta"},
        {URL ",'sources':[{'host':'http://p','query':'q'},{'host':'http://p'}]", NULL, EFFECTIVE_INCOMPLETE,
         "spec.sources[1].params.query: missing, expected a PromQL query", "meta"},
        {URL ",'sources':[{'type':'none'},{'query':'q'},{'host':'http://p','query':'q'}]", NULL,
         EFFECTIVE_INCOMPLETE, "spec.sources[1].host: missing, " URL_WANTED, "meta"},
        /* Fields are named as in the document that sets them. */
        {FULL "," GOOD, "{'source':{'host':'p:9090'}}", EFFECTIVE_INCOMPLETE,
         "source.host in /config: " URL_WANTED ", got the string \"p:9090/api/v1/query_range\"", "n"},
        {FULL "," GOOD, "{'sources':[{},{'query':' '}]}", EFFECTIVE_INCOMPLETE,
         "sources[1].params.query in /config: expected a PromQL query, got the string \" \"", "n"},
        {FULL "," GOOD, "{'scoring':{'host':'x','params':{'interval':9999999,'name':' '}}}",
         EFFECTIVE_INCOMPLETE,
         "scoring.params.name in /config: expected a name of 1 to 1024 bytes that is not blank, got the "
         "string \" \"; scoring.host in /config: " URL_WANTED ", got the string \"x/scoring\"; "
         "scoring.params.interval in /config: expected a whole number of seconds from 1 to 604800, got "
         "9999999",
         " "},
        {FULL, "{'source':{'type':'none'}}", EFFECTIVE_INCOMPLETE,
         "spec.scoring.params.name: missing, expected a name of 1 to 1024 bytes that is not blank", NULL},
        {FULL ",'scoring':{'params':{'name':'n'}}", "{'source':{'query':'q'}}", EFFECTIVE_INCOMPLETE,
         "spec.source.host: missing, " URL_WANTED, "n"},
        {"'configSyncMode':'Full','configURL':'http://u:p@api/config','scoring':{'params':{'name':'n'}}",
         "{'source':{'type':'none'}}", EFFECTIVE_INCOMPLETE, "spec.scoring.host: missing, " URL_WANTED, "n"},
        /* Nothing synced yet. */
        {FULL, NULL, EFFECTIVE_WAITING, WAITING "spec.source: missing", NULL},
        {FULL ",'scoring':{'params':{'name':'n'}}", NULL, EFFECTIVE_WAITING, WAITING "spec.source: missing",
         "n"},
        {FULL ",'source':{'type':'none'}", NULL, EFFECTIVE_WAITING,
         WAITING "spec.scoring.params.name: missing, expected a name of 1 to 1024 bytes that is not blank",
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(effective_done) struct effective e = make(rows[i].spec, rows[i].config);

        assert_string_equal(e.error, rows[i].why);
        assert_int_equal(e.reason, rows[i].reason);
        assert_true(same_str(e.score_name, rows[i].score_name));
        assert_int_equal(e.source, rows[i].config ? CONFIG_FROM_API : CONFIG_FROM_SPEC);
    }
}

static void warns_of_what_agents_accept_and_prometheus_rejects(void **state)
{
#define POINTS(range, points) \
    range " s at a step of 1 s is " points " points per series; queries of more than 11,000 fail"
    static const struct {
        const char *spec, *config, *warning;
    } rows[] = {
        {URL ",'source':{'host':'http://p','query':{'query':'q','range':11000,'step':1}}", NULL, ""},
        {URL ",'source':{'host':'http://p','query':{'query':'q','range':11001,'step':1}}", NULL,
         "spec.source.params.step: " POINTS("11001", "11002")},
        {FULL "," GOOD, "{'source':{'params':{'range':86400,'step':1}}}",
         "source.params.step in /config: " POINTS("86400", "86401")},
        {URL
         ",'sources':[{'host':'http://p','query':{'query':'q','range':20000,'step':1}},"
         "{'host':'http://p','query':'q'},{'host':'http://q','query':{'query':'q','range':30000,'step':1}}]",
         NULL,
         "spec.sources[0].params.step: " POINTS("20000", "20001") "; spec.sources[2].params.step: " POINTS(
             "30000", "30001")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(effective_done) struct effective e = make(rows[i].spec, rows[i].config);

        assert_int_equal(e.reason, EFFECTIVE_OK);
        assert_string_equal(e.warning, rows[i].warning);
    }
}

/* It has no endpoint, so that no host is needed and no token goes anywhere. */
static void takes_opentelemetry_without_a_host(void **state)
{
    static const char *const types[] = {"OpenTelemetry", "opentelemetry", "OTel", "otlp"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        char spec[512];

        (void)snprintf(spec, sizeof(spec),
                       URL ",'source':{'type':'%s','query':'up','auth':{'tokenSecretRef':{'name':'a','key':"
                           "'b'}}},'scoring':{'params':{'name':'n'}}",
                       types[i]);
        CLEANUP(effective_done) struct effective e = make(spec, NULL);

        assert_text(&e, "{'name':'meta','scoreName':'n','sourceType':'OpenTelemetry','sourceEndpoint':'',"
                        "'sourceEndpointAuthName':'','sourceEndpointAuthKey':'','sourceQuery':'up',"
                        "'sourceRange':3600,'sourceStep':60,'scoringEndpoint':'http://api:8000/scoring',"
                        "'scoringInterval':60,'scoringEndpointAuthName':'','scoringEndpointAuthKey':'',"
                        "'location':'Internal','scoreDestination':'AddOnPlacementScore','"
                        "scoreDimensionFormat':'${scoreName}'}");
    }
}

static void lists_sources_of_several_types(void **state)
{
    CLEANUP(effective_done)
    struct effective e = make(URL ",'sources':[{'type':'OTel','query':'a'},{'host':'http://p','query':'b'},"
                                  "{'type':'OTLP','query':'c'}],'scoring':{'params':{'name':'n'}}",
                              NULL);
    CLEANUP(cleanup_free) char *list = member(&e, "sources");

    (void)state;
    assert_non_null(strstr(list, "OpenTelemetry"));
    assert_non_null(strstr(list, "http://p/api/v1/query_range"));
}

static void warns_of_a_query_that_opentelemetry_does_not_know(void **state)
{
    CLEANUP(effective_done)
    struct effective e =
        make(URL ",'source':{'type':'OTLP','query':'topk(3, up)'},'scoring':{'params':{'name':'n'}}", NULL);

    (void)state;
    assert_int_equal(e.reason, EFFECTIVE_OK);
    assert_non_null(strstr(e.warning, "spec.source.params.query"));
}

static void lists_sources_at_several_endpoints(void **state)
{
    CLEANUP(effective_done)
    struct effective e = make(FULL ",'sources':[{'auth':{'tokenSecretRef':{'name':'a','key':'b'},"
                                   "'allowedHosts':['*']}},{'step':1,'query':{'step':7}}],"
                                   "'scoring':{'params':{'name':'n'}}",
                              "{'sources':[{'host':'http://p','query':'a'},{'host':'http://q','query':'b'},"
                              "{'host':'http://r','query':'c'}]}");
    CLEANUP(cleanup_free) char *list = member(&e, "sources");
    CLEANUP(cleanup_free) char *top = member(&e, "sourceEndpoint"), *query = member(&e, "sourceQuery");
    CLEANUP(cleanup_free)
    char *want = quoted(
        "[{'sourceType':'Prometheus','sourceEndpoint':'http://p/api/v1/query_range',"
        "'sourceEndpointAuthName':'a','sourceEndpointAuthKey':'b','sourceQuery':'a','sourceRange':3600,"
        "'sourceStep':60},{'sourceType':'Prometheus','sourceEndpoint':'http://q/api/v1/query_range',"
        "'sourceEndpointAuthName':'','sourceEndpointAuthKey':'','sourceQuery':'b','sourceRange':3600,"
        "'sourceStep':7},{'sourceType':'Prometheus','sourceEndpoint':'http://r/api/v1/query_range',"
        "'sourceEndpointAuthName':'a','sourceEndpointAuthKey':'b','sourceQuery':'c','sourceRange':3600,"
        "'sourceStep':60}]");

    (void)state;
    assert_string_equal(list, want);
    assert_string_equal(top, "http://p/api/v1/query_range");
    assert_string_equal(query, "a");
}

static void shares_the_fields_of_one_source(void **state)
{
    CLEANUP(effective_done)
    struct effective e = make(FULL ",'source':{'host':'http://p','path':'/x','query':'own','auth':"
                                   "{'tokenSecretRef':{'name':'a','key':'b'}}}",
                              "{'name':'n','sources':[{'query':'a'},{},{'query':'c'}]}");
    static const char *const queries[] = {"a", "own", "c"};
    CLEANUP(cleanup_free) char *list = member(&e, "sources");
    json_auto_t *sources = json_loads(list, 0, NULL);

    (void)state;
    assert_int_equal(json_array_size(sources), ARRAY_SIZE(queries));
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        const json_t *one = json_array_get(sources, i);

        assert_string_equal(kube_str(one, "sourceQuery", NULL), queries[i]);
        assert_string_equal(kube_str(one, "sourceEndpoint", NULL), "http://p/x");
        assert_string_equal(kube_str(one, "sourceEndpointAuthName", NULL), "a");
    }
}

static void limits_the_summary(void **state)
{
    CLEANUP(cleanup_free) char *spec = malloc(300000);
    size_t n;

    (void)state;
    assert_non_null(spec);
    n = (size_t)sprintf(spec, URL ",'source':{'host':'http://p','query':'");
    memset(spec + n, 'q', 270000);
    (void)strcpy(spec + n + 270000, "'}");
    {
        CLEANUP(effective_done) struct effective e = make(spec, NULL);

        assert_int_equal(e.reason, EFFECTIVE_INCOMPLETE);
        assert_string_equal(e.error, "spec: the summary exceeds 256 KiB");
    }
}

/* Byte for byte, if agents accept it. */
static void resumes_a_summary_from_a_status(void **state)
{
    static const char *const bad[] = {"", "x", "{}", "[]", "{\"scoreName\":\"n\"}", "1,2"};
    CLEANUP(effective_done) struct effective e = make(GOOD "," URL, NULL), again = {0};

    (void)state;
    assert_true(effective_resume(&again, buf_str(&e.text), CONFIG_FROM_API));
    assert_true(again.kept && effective_usable(&again) && again.mode == SYNC_FULL);
    assert_string_equal(again.score_name, "n");
    assert_int_equal(again.interval_ms, e.interval_ms);
    assert_true(str_eq(buf_str(&again.text), buf_str(&e.text)));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct effective none = {.interval_ms = 7};

        assert_false(effective_resume(&none, str_of(bad[i]), CONFIG_FROM_SPEC));
        assert_true(none.interval_ms == 7 && !none.kept);
    }
}

/* Only what both set, to different values. */
static void names_the_fields_that_config_overrides(void **state)
{
    static const struct {
        const char *own, *config, *want;
    } cases[] = {
        {"'source':{'host':'http://p','params':{'query':'up'}}",
         "{'source':{'host':'http://p','path':'/q','params':{'query':'up','step':5}}}", ""},
        {"'source':{'type':'Prometheus','path':'/a','params':{'query':'up','range':60}}",
         "{'source':{'type':'None','path':'/b','params':{'query':'down','range':90}}}",
         "spec.source.type, spec.source.path, spec.source.params.query, spec.source.params.range"},
        {"'sources':[{'host':'http://a'},{'host':'http://b'}],'scoring':{'params':{'name':'a','interval':5}}",
         "{'sources':[{'host':'http://a'},{'host':'http://c'}],'scoring':{'params':{'interval':6}}}",
         "spec.sources[1].host, spec.scoring.params.interval"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(cases[i].own);
        CLEANUP(api_config_done) struct api_config c = good_config(cases[i].config);
        BUF_AUTO(fields, 1024);

        effective_overrides(&s, &c, &fields);
        assert_true(str_eq(buf_str(&fields), str_of(cases[i].want)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_frameworks_summary),
        cmocka_unit_test(resumes_a_summary_from_a_status),
        cmocka_unit_test(writes_every_field_that_is_set),
        cmocka_unit_test(fills_in_defaults),
        cmocka_unit_test(passes_on_the_cluster_of_the_scoring_endpoint),
        cmocka_unit_test(prefers_config_to_spec_to_default),
        cmocka_unit_test(names_the_fields_that_are_missing_or_invalid),
        cmocka_unit_test(warns_of_what_agents_accept_and_prometheus_rejects),
        cmocka_unit_test(takes_opentelemetry_without_a_host),
        cmocka_unit_test(lists_sources_of_several_types),
        cmocka_unit_test(warns_of_a_query_that_opentelemetry_does_not_know),
        cmocka_unit_test(lists_sources_at_several_endpoints),
        cmocka_unit_test(shares_the_fields_of_one_source),
        cmocka_unit_test(limits_the_summary),
        cmocka_unit_test(names_the_fields_that_config_overrides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
