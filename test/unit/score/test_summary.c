#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/score/format.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Reads a list; *said is what was wrong, printed. */
static struct summaries read_list(const char *text, enum problem_kind unknown, struct buf *said)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    struct summaries s = {0};
    struct problems p;

    problems_init(&p, "f");
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    summaries_parse(&s, d->root, unknown, &p);
    if (p.errors) /* as for a configuration */
        summaries_done(&s);
    problems_sort(&p);
    problems_print(&p, said);
    assert_int_equal(buf_failed(said), 0);
    problems_done(&p);
    return s;
}

static void assert_said(const char *text, const struct buf *said, const char *want)
{
    if (!str_eq(buf_str(said), str_of(want)))
        fail_msg("%s\ngot:\n%.*s\nexpected:\n%s", text, STR_ARG(buf_str(said)), want);
}

/* One summary that must be good. */
static struct summaries read_one(const char *text)
{
    BUF_AUTO(said, 1 << 16);
    struct summaries s = read_list(text, PROBLEM_ERROR, &said);

    assert_said(text, &said, "");
    assert_int_equal(s.n, 1);
    return s;
}

static const char minimal[] = "- {scoreName: cpu, sourceEndpoint: 'http://prom:9090', sourceQuery: up, "
                              "scoringEndpoint: 'http://scorer'}\n";

/* As the hub writes it into the ConfigMap. */
static const char of_the_hub[] =
    "[\n  {\n"
    "    \"name\": \"sample-scorer\",\n"
    "    \"scoreName\": \"sample_my_score\",\n"
    "    \"sourceType\": \"Prometheus\",\n"
    "    \"sourceEndpoint\": \"http://prom.monitoring.svc:9090/api/v1/query_range\",\n"
    "    \"sourceEndpointAuthName\": \"\",\n"
    "    \"sourceEndpointAuthKey\": \"\",\n"
    "    \"sourceQuery\": \"sum by (node, namespace, pod) "
    "(rate(container_cpu_usage_seconds_total{container!=\\\"\\\", pod!=\\\"\\\"}[1m]))\",\n"
    "    \"sourceRange\": 7200,\n"
    "    \"sourceStep\": 30,\n"
    "    \"scoringEndpoint\": \"http://10.0.0.1:30007/scoring\",\n"
    "    \"scoringInterval\": 30,\n"
    "    \"scoringEndpointAuthName\": \"scorer-secret\",\n"
    "    \"scoringEndpointAuthKey\": \"token\",\n"
    "    \"location\": \"External\",\n"
    "    \"scoreDestination\": \"None\",\n"
    "    \"scoreDimensionFormat\": \"${node};${namespace};${pod}\"\n"
    "  }\n]\n";

static void reads_what_the_hub_writes(void **state)
{
    struct summaries s = read_one(of_the_hub);
    const struct summary *x = &s.list[0];

    (void)state;
    assert_string_equal(x->name, "sample-scorer");
    assert_string_equal(x->score_name, "sample_my_score");
    assert_int_equal(x->sources[0].type, SOURCE_PROMETHEUS);
    assert_string_equal(x->sources[0].endpoint, "http://prom.monitoring.svc:9090/api/v1/query_range");
    assert_null(x->sources[0].auth.name);
    assert_null(x->sources[0].auth.key);
    assert_string_equal(x->sources[0].query,
                        "sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{"
                        "container!=\"\", pod!=\"\"}[1m]))");
    assert_int_equal(x->sources[0].range_s, 7200);
    assert_int_equal(x->sources[0].step_s, 30);
    assert_string_equal(x->scoring_endpoint, "http://10.0.0.1:30007/scoring");
    assert_string_equal(x->scoring_auth.name, "scorer-secret");
    assert_string_equal(x->scoring_auth.key, "token");
    assert_int_equal(x->interval_ms, 30000);
    assert_int_equal(x->timeout_ms, 0);
    assert_int_equal(x->location, LOCATION_EXTERNAL);
    assert_int_equal(x->destination, DESTINATION_NONE);
    assert_string_equal(x->items[0].format, "${node};${namespace};${pod}");
    assert_int_equal(x->line, 2);
    assert_int_equal(x->column, 3);
    summaries_done(&s);
}

static void fills_in_defaults(void **state)
{
    static const char *const texts[] = {
        minimal,
        /* What a Go program writes for fields that were never set. */
        "- {name: '', scoreName: cpu, sourceType: '', sourceEndpoint: 'http://prom:9090', "
        "sourceEndpointAuthName: '', "
        "sourceEndpointAuthKey: '', sourceQuery: up, sourceRange: 0, sourceStep: 0, scoringEndpoint: "
        "'http://scorer', "
        "scoringInterval: 0, location: '', scoreDestination: '', scoreDimensionFormat: '', timeout: 0}",
        "- {name: ~, scoreName: cpu, sourceType: ~, sourceEndpoint: 'http://prom:9090/', sourceQuery: up, "
        "sourceRange: ~, "
        "sourceStep: ~, scoringEndpoint: 'http://scorer/', scoringInterval: ~, location: ~, "
        "scoreDestination: ~}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct summaries s = read_one(texts[i]);
        const struct summary *x = &s.list[0];

        assert_string_equal(x->name, "cpu");
        assert_int_equal(x->sources[0].type, SOURCE_PROMETHEUS);
        assert_string_equal(x->sources[0].endpoint, "http://prom:9090/api/v1/query_range");
        assert_int_equal(x->sources[0].range_s, 3600);
        assert_int_equal(x->sources[0].step_s, 60);
        assert_string_equal(x->scoring_endpoint, "http://scorer/scoring");
        assert_int_equal(x->interval_ms, 60000);
        assert_int_equal(x->timeout_ms, 0);
        assert_int_equal(x->location, LOCATION_INTERNAL);
        assert_int_equal(x->destination, DESTINATION_PLACEMENT_SCORE);
        assert_string_equal(x->items[0].format, "${scoreName}");
        summaries_done(&s);
    }
}

static void reads_words_in_any_case(void **state)
{
    struct summaries s =
        read_one("- {scoreName: a, sourceType: nOnE, scoringEndpoint: 'HTTPS://scorer/x', "
                 "location: external, scoreDestination: NONE, timeout: 1m30s, "
                 "sourceEndpoint: ignored, sourceQuery: [1], sourceRange: -1, sourceEndpointAuthName: ..}");
    const struct summary *x = &s.list[0];

    (void)state;
    assert_int_equal(x->n_sources, 0);
    assert_int_equal(x->location, LOCATION_EXTERNAL);
    assert_int_equal(x->destination, DESTINATION_NONE);
    assert_string_equal(x->scoring_endpoint, "HTTPS://scorer/x");
    assert_int_equal(x->timeout_ms, 90000);
    summaries_done(&s);

    s = read_one("- {scoreName: a, sourceType: PROMETHEUS, sourceEndpoint: 'http://p/q', sourceQuery: up, "
                 "scoringEndpoint: 'http://s/', location: INTERNAL, scoreDestination: addonplacementscore}");
    assert_int_equal(s.list[0].sources[0].type, SOURCE_PROMETHEUS);
    assert_int_equal(s.list[0].destination, DESTINATION_PLACEMENT_SCORE);
    summaries_done(&s);
}

static void knows_how_long_a_round_may_take(void **state)
{
    static const struct {
        int64_t interval_ms, timeout_ms, want_ms;
    } rows[] = {
        {60000, 0, 60000},  {1000, 0, 10000},    {10000, 0, 10000},
        {1000, 3000, 3000}, {60000, 3000, 3000}, {1000, 90000, 90000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct summary s = {.interval_ms = rows[i].interval_ms, .timeout_ms = rows[i].timeout_ms};

        assert_int_equal(summary_round_ms(&s), rows[i].want_ms);
    }
}

static void reads_how_scores_become_items(void **state)
{
    struct summaries s =
        read_one("- {scoreName: a, sourceType: none, scoringEndpoint: 'http://s/', "
                 "scoreAggregation: Max, scoreRange: {min: -0.5, max: 2}, fallbackScore: -7}");
    struct summaries plain = read_one(minimal);
    struct summaries several = read_one(
        "- {scoreName: a, sourceType: none, scoringEndpoint: 'http://s/', scoreDimensionFormat: c,\n"
        "   scoreAggregation: AVG, scoreItems: [{format: c, aggregation: avg}, {format: '${node}'}]}");
    struct summaries one =
        read_one("- {scoreName: b, sourceType: none, scoringEndpoint: 'http://s/', scoreAggregation: last,\n"
                 "   scoreItems: [{format: c, aggregation: ''}], scoreDimensionFormat: ''}");

    (void)state;
    assert_int_equal(several.list[0].n_items, 2);
    assert_string_equal(several.list[0].items[0].format, "c");
    assert_int_equal(several.list[0].items[0].aggregation, AGGREGATE_AVG);
    assert_string_equal(several.list[0].items[1].format, "${node}");
    assert_int_equal(several.list[0].items[1].aggregation, AGGREGATE_LAST);
    assert_int_equal(one.list[0].n_items, 1);
    summaries_done(&several);
    summaries_done(&one);
    assert_int_equal(s.list[0].items[0].aggregation, AGGREGATE_MAX);
    assert_true(s.list[0].has_range);
    assert_float_equal(s.list[0].range_min, -0.5, 0);
    assert_float_equal(s.list[0].range_max, 2, 0);
    assert_true(s.list[0].has_fallback);
    assert_int_equal(s.list[0].fallback, -7);
    assert_int_equal(plain.list[0].items[0].aggregation, AGGREGATE_LAST);
    assert_false(plain.list[0].has_range);
    assert_false(plain.list[0].has_fallback);
    summaries_done(&plain);
    summaries_done(&s);
}

static void completes_urls(void **state)
{
    static const char *const cases[][2] = {
        {"http://s", "http://s/scoring"},
        {"http://s/", "http://s/scoring"},
        {" http://s:8000/deep/path/ ", "http://s:8000/deep/path/"},
        {"http://s?a=b", "http://s/scoring?a=b"},
        {"http://s/x?a=b", "http://s/x?a=b"},
        {"https://me:pw@s", "https://me:pw@s/scoring"},
        {"http://[::1]:80", "http://[::1]:80/scoring"},
        {"http://s:65535", "http://s:65535/scoring"},
        {"scorer:8000", NULL},
        {"//scorer", NULL},
        {"/scoring", NULL},
        {"http:/scorer", NULL},
        {"http:///scorer", NULL},
        {"http://", NULL},
        {"http://:80/", NULL},
        {"ftp://scorer/", NULL},
        {"file:///etc/passwd", NULL},
        {"http://s:65536/", NULL},
        {"http://s:port/", NULL},
        {"http://a b/", NULL},
        {"http://[::1/", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(text, 256);
        BUF_AUTO(said, 4096);
        struct summaries s;

        buf_printf(&text, "- {scoreName: a, sourceType: None, scoringEndpoint: '%s'}%c", cases[i][0], 0);
        assert_int_equal(buf_failed(&text), 0);
        s = read_list(text.p, PROBLEM_ERROR, &said);
        if (s.n != (cases[i][1] ? 1 : 0) || (said.n > 0) != (cases[i][1] == NULL))
            fail_msg("%s: %.*s", cases[i][0], STR_ARG(buf_str(&said)));
        if (s.n)
            assert_string_equal(s.list[0].scoring_endpoint, cases[i][1]);
        summaries_done(&s);
    }
}

#define AT_ONE "f:1:3: error: [0]"
#define URL    "an absolute http or https URL with a host"

/* Each rule broken: what follows `{`, and what is said. */
static void reports_each_invalid_field(void **state)
{
    static const char good[] =
        "scoreName: a, sourceEndpoint: 'http://p', sourceQuery: up, scoringEndpoint: 'http://s'";
    static const char *const cases[][2] = {
        {"scoringInterval: -5",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got -5"},
        {"scoringInterval: 604801",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got 604801"},
        {"scoringInterval: 1.5",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got 1.5"},
        {"scoringInterval: '30'",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got the string \"30\""},
        {"scoringInterval: 30s",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got the string \"30s\""},
        {"scoringInterval: 99999999999999999999",
         ".scoringInterval: expected a whole number of seconds from 1 to 604800, got 99999999999999999999"},
        {"sourceRange: 31622401",
         ".sourceRange: expected a whole number of seconds from 1 to 31622400, got 31622401"},
        {"sourceRange: [1]",
         ".sourceRange: expected a whole number of seconds from 1 to 31622400, got a list"},
        {"sourceStep: 86401", ".sourceStep: expected a whole number of seconds from 1 to 86400, got 86401"},
        {"sourceStep: -1", ".sourceStep: expected a whole number of seconds from 1 to 86400, got -1"},
        {"sourceType: Graphite",
         ".sourceType: expected Prometheus, None, OpenTelemetry, OTel or OTLP, got the string \"Graphite\""},
        {"sourceType: true", ".sourceType: expected a string (put it in quotes), got true"},
        {"location: Elsewhere", ".location: expected Internal or External, got the string \"Elsewhere\""},
        {"scoreDestination: x",
         ".scoreDestination: expected AddOnPlacementScore or None, got the string \"x\""},
        {"timeout: 2h",
         ".timeout: expected a duration from 0s to 1h (a number of seconds, or like 30s, 5m, 1h30m), "
         "got the string \"2h\""},
        {"name: 5", ".name: expected a string (put it in quotes), got 5"},
        {"scoreDimensionFormat: {}", ".scoreDimensionFormat: expected a string, got an object"},
        {"scoreAggregation: median",
         ".scoreAggregation: expected last, avg, max, min or sum, got the string \"median\""},
        {"scoreAggregation: [avg]", ".scoreAggregation: expected a string, got a list"},
        {"scoreItems: 5", ".scoreItems: expected a list of items, got 5"},
        {"scoreItems: [{format: a},{format: b},{format: c},{format: d},{format: e},{format: f},{format: g},"
         "{format: h},{format: i}]",
         ".scoreItems: expected at most 8 items, got 9"},
        {"scoreItems: [a]",
         ".scoreItems[0]: expected an object with format and aggregation, got the string \"a\""},
        {"scoreItems: [{}]", ".scoreItems[0].format: missing, expected a format of names such as ${node}"},
        {"scoreItems: [{format: ''}]",
         ".scoreItems[0].format: expected a format of names such as ${node}, got an empty string"},
        {"scoreItems: [{format: a}, {format: 5}]",
         ".scoreItems[1].format: expected a string (put it in quotes), got 5"},
        {"scoreItems: [{format: a}, {format: b, aggregation: median}]",
         ".scoreItems[1].aggregation: expected last, avg, max, min or sum, got the string \"median\""},
        {"scoreItems: [{format: a, agregation: max}]",
         ".scoreItems[0].agregation: unknown key, did you mean aggregation?"},
        {"scoreItems: [{format: a}, {format: b}, {format: a, aggregation: max}]",
         ".scoreItems[2].format: already the format of scoreItems[0]"},
        {"scoreItems: [{format: a}, {format: b}], scoreDimensionFormat: b",
         ".scoreDimensionFormat: must equal scoreItems[0].format, or be left out"},
        {"scoreItems: [{format: a}], scoreDimensionFormat: []",
         ".scoreDimensionFormat: must equal scoreItems[0].format, or be left out"},
        {"scoreItems: [{format: a}], scoreAggregation: avg",
         ".scoreAggregation: must equal scoreItems[0].aggregation, or be left out"},
        {"scoreRange: 5", ".scoreRange: expected an object, got 5"},
        {"scoreRange: {min: 0}", ".scoreRange.max: missing, expected a finite number"},
        {"scoreRange: {min: '0', max: 1}", ".scoreRange.min: expected a finite number, got the string \"0\""},
        {"scoreRange: {min: 0, max: .inf}", ".scoreRange.max: expected a finite number, got .inf"},
        {"scoreRange: {min: 0, max: 1, unit: 2}", ".scoreRange.unit: unknown key, expected one of min, max"},
        {"scoreRange: {min: 1, max: 1}",
         ".scoreRange: min and max must differ, and their difference be finite"},
        {"scoreRange: {min: -1.5e308, max: 1.5e308}",
         ".scoreRange: min and max must differ, and their difference be finite"},
        {"scoreTolerance: 51", ".scoreTolerance: expected a whole number from 0 to 50, got 51"},
        {"scoreTolerance: -1", ".scoreTolerance: expected a whole number from 0 to 50, got -1"},
        {"scoreTolerance: 0.5", ".scoreTolerance: expected a whole number from 0 to 50, got 0.5"},
        {"fallbackScore: 101", ".fallbackScore: expected a whole number from -100 to 100, got 101"},
        {"fallbackScore: 1.5", ".fallbackScore: expected a whole number from -100 to 100, got 1.5"},
        {"sourceEndpointAuthKey: tok", ".sourceEndpointAuthKey: sourceEndpointAuthName must be set too"},
        {"scoringEndpointAuthName: '', scoringEndpointAuthKey: tok",
         ".scoringEndpointAuthKey: scoringEndpointAuthName must be set too"},
        {"scoringEndpointAuthName: tok, scoringEndpointAuthKey: a/b",
         ".scoringEndpointAuthKey: expected at most 253 letters, digits, '-', '_' and '.', not starting with "
         "'.', got "
         "the string \"a/b\""},
        {"scoringEndpointAuthName: .., scoringEndpointAuthKey: b",
         ".scoringEndpointAuthName: expected at most 253 letters, digits, '-', '_' and '.', not starting "
         "with '.', got "
         "the string \"..\""},
        {"sourceQeury: x", ".sourceQeury: unknown key, did you mean sourceQuery?"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(text, 4096);
        BUF_AUTO(said, 4096);
        struct summaries s;
        const char *at;

        buf_printf(&text, "- {%s, %s}%c", good, cases[i][0], 0);
        assert_int_equal(buf_failed(&text), 0);
        s = read_list(text.p, PROBLEM_ERROR, &said);
        at = said.n ? memmem(said.p, said.n, "error: [0]", 10) : NULL;
        if (!at || !str_eq(str_trim((struct str){at + 10, (size_t)(said.p + said.n - at - 10)}),
                           str_of(cases[i][1])))
            fail_msg("%s\ngot:\n%.*s\nexpected:\n%s", cases[i][0], STR_ARG(buf_str(&said)), cases[i][1]);
        assert_int_equal(s.n, 0);
        summaries_done(&s);
    }
}

static void requires_fields_without_a_default(void **state)
{
    static const char *const cases[][2] = {
        {"- {}", AT_ONE ".scoreName: missing, expected a name of 1 to 1024 bytes that is not blank\n" //
         AT_ONE ".scoringEndpoint: missing, expected " URL "\n"                                       //
         AT_ONE ".sourceEndpoint: missing, expected " URL "\n"                                        //
         AT_ONE ".sourceQuery: missing, expected a PromQL query\n"},
        {"- {scoreName: '  ', sourceType: None, scoringEndpoint: ''}",
         "f:1:15: error: [0].scoreName: expected a name of 1 to 1024 bytes that is not blank, got the string "
         "\"  \"\n"
         "f:1:56: error: [0].scoringEndpoint: expected " URL ", got an empty string\n"},
        {"- {scoreName: a, sourceEndpoint: 'http://p', sourceQuery: ' ;; ', scoringEndpoint: 'http://s'}",
         "f:1:59: error: [0].sourceQuery: expected a PromQL query, got the string \" ;; \"\n"},
        {"- null\n- []\n",
         "f:1:3: error: [0]: expected a summary: an object with scoreName, scoringEndpoint and so on, "
         "got null\n"
         "f:2:3: error: [1]: expected a summary: an object with scoreName, scoringEndpoint and so on, "
         "got a list\n"},
        {"a: b", "f:1:1: error: expected a list of summaries, got an object\n"},
        {"[]", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(said, 4096);
        struct summaries s = read_list(cases[i][0], PROBLEM_ERROR, &said);

        assert_said(cases[i][0], &said, cases[i][1]);
        assert_int_equal(s.n, 0);
        summaries_done(&s);
    }
}

static void limits_the_length_of_the_score_name(void **state)
{
    (void)state;
    for (size_t n = 1024; n <= 1025; n++) {
        BUF_AUTO(text, 4096);
        BUF_AUTO(said, 4096);
        struct summaries s;

        buf_puts(&text, "- {sourceType: None, scoringEndpoint: 'http://s', scoreName: ");
        for (size_t i = 0; i < n; i++)
            buf_putc(&text, 'x');
        buf_put(&text, "}", 2);
        assert_int_equal(buf_failed(&text), 0);
        s = read_list(text.p, PROBLEM_ERROR, &said);
        assert_int_equal(s.n, n == 1024 ? 1 : 0);
        summaries_done(&s);
    }
}

static void warns_about_unknown_keys_and_duplicates(void **state)
{
    static const char text[] =
        "- {scoreName: a, sourceEndpoint: 'http://p', sourceQuery: up, scoringEndpoint: 'http://s',\n"
        "   newField: 1, sourceRange: 660059}\n"
        "- {scoreName: b, sourceEndpoint: 'http://p', sourceQuery: up, scoringEndpoint: 'http://s',\n"
        "   sourceRange: 660060}\n"
        "- {scoreName: c, sourceEndpoint: 'http://p', sourceQuery: up, scoringEndpoint: 'http://s',\n"
        "   sourceRange: 31622400, sourceStep: 1}\n"
        "- {scoreName: a, sourceType: None, scoringEndpoint: 'http://other'}\n"
        "- {scoreName: a, sourceType: None, scoringEndpoint: 'http://third'}\n";
    BUF_AUTO(said, 4096);
    struct summaries s = read_list(text, PROBLEM_WARNING, &said);

    (void)state;
    assert_said(
        text, &said,
        "f:2:4: warning: [0].newField: unknown key, expected one of name, scoreName, sourceType, "
        "sourceEndpoint, "
        "sourceEndpointAuthName, sourceEndpointAuthKey, sourceQuery, sourceRange, sourceStep, "
        "sources, scoringEndpoint, "
        "scoringInterval, scoringEndpointAuthName, scoringEndpointAuthKey, location, scoreDestination, "
        "scoreDimensionFormat, scoreAggregation, scoreItems, scoreRange, scoreTolerance, fallbackScore, "
        "timeout, since\n"
        "f:4:17: warning: [1].sourceRange: 660060 s at a step of 60 s is 11002 points per series; "
        "queries of more than 11,000 fail\n"
        "f:6:39: warning: [2].sourceStep: 31622400 s at a step of 1 s is 31622401 points per series; "
        "queries of more than 11,000 fail\n"
        "f:7:15: warning: [3].scoreName: already used by the summary at line 1; the one at line 7 is "
        "ignored\n"
        "f:8:15: warning: [4].scoreName: already used by the summary at line 1; the one at line 8 is "
        "ignored\n");
    assert_int_equal(s.n, 3);
    assert_string_equal(s.list[0].scoring_endpoint, "http://s/scoring");
    assert_string_equal(s.list[2].score_name, "c");
    summaries_done(&s);
}

static void never_shows_a_password(void **state)
{
    static const char text[] =
        "- {scoreName: a, sourceEndpoint: 'http://me:s3cret@p:x/', sourceQuery: up, "
        "scoringEndpoint: 'me:s3cret@s', scoringEndpointAuthName: 'http://me:s3cret@'}";
    BUF_AUTO(said, 4096);
    struct summaries s = read_list(text, PROBLEM_ERROR, &said);

    (void)state;
    assert_non_null(memmem(said.p, said.n, "http://***@p:x/", 15));
    assert_null(memmem(said.p, said.n, "s3cret", 6));
    summaries_done(&s);
}

#define FIRST "{sourceEndpoint: 'http://p/', sourceQuery: up}"

static void compares_and_copies(void **state)
{
    static const char *const others[] = {
        "name: n",
        "sourceEndpoint: 'http://q/'",
        "sourceQuery: down",
        "sourceRange: 60",
        "sourceStep: 30",
        "scoringEndpoint: 'http://t/'",
        "scoringInterval: 61",
        "timeout: 3s",
        "location: external",
        "scoreDestination: none",
        "scoreDimensionFormat: x",
        "scoreAggregation: sum",
        "scoreItems: [{format: '${scoreName}'}, {format: x}]",
        "scoreRange: {min: 0, max: 1}",
        "scoreTolerance: 5",
        "fallbackScore: 0",
        "sourceType: none",
        "sourceEndpointAuthName: n, sourceEndpointAuthKey: k",
        "scoringEndpointAuthName: n, scoringEndpointAuthKey: k",
        "sources: [" FIRST ", " FIRST "]",
    };
    static const char *const base[] = {"scoreName: a", "sourceEndpoint: 'http://p/'", "sourceQuery: up",
                                       "scoringEndpoint: 'http://s/'"};
    struct summaries a = read_one("- {scoreName: a, sourceEndpoint: 'http://p/', sourceQuery: up, "
                                  "scoringEndpoint: 'http://s/'}");
    struct summary copy;

    (void)state;
    copy = summary_copy(&a.list[0]);
    copy.line = 99;
    assert_true(summary_same(&copy, &a.list[0]));
    summary_done(&copy);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        BUF_AUTO(text, 4096);
        struct summaries b;

        buf_printf(&text, "- {%s", others[i]);
        for (size_t k = 0; k < ARRAY_SIZE(base); k++)
            if (strncmp(base[k], others[i], strcspn(base[k], ":") + 1) != 0)
                buf_printf(&text, ", %s", base[k]);
        buf_put(&text, "}", 2);
        assert_int_equal(buf_failed(&text), 0);
        b = read_one(text.p);
        if (summary_same(&a.list[0], &b.list[0]) || !summary_same(&b.list[0], &b.list[0]))
            fail_msg("%s", text.p);
        summaries_done(&b);
    }
    summaries_done(&a);
}

static void reads_one_summary_and_names_the_field_of_each_problem(void **state)
{
    static const struct {
        const char *text, *path;
        bool missing;
    } cases[] = {
        {"{\"sourceType\":\"None\",\"scoringEndpoint\":\"http://a\"}", "scoreName", true},
        {"{\"scoreName\":1,\"sourceType\":\"None\",\"scoringEndpoint\":\"http://a\"}", "scoreName", false},
        {"{\"scoreName\":\"a\",\"scoringEndpoint\":\"http://a\",\"sources\":[{\"sourceType\":\"None\"},"
         "{\"sourceEndpoint\":\"http://a\"}]}",
         "sources[1].sourceQuery", true},
        {"{\"scoreName\":\"a\",\"scoringEndpoint\":\"http://"
         "a\",\"sourceType\":\"None\",\"scoreRange\":{\"min\":1}}",
         "scoreRange.max", true},
        {"[]", "", false},
        {"scoreName: a", "", false},
        {"{\"scoreName\":", "", false},
        {"", "", false},
    };
    struct problems p;
    struct summary s;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        summary_parse(&s, str_of(cases[i].text), &p);
        if (p.errors != 1 || !str_eq(p.list[0].path, str_of(cases[i].path)) ||
            p.list[0].missing != cases[i].missing || s.score_name)
            fail_msg("%s: %s", cases[i].text, p.n ? p.list[0].text : "no problem");
        summary_done(&s);
        problems_done(&p);
    }
    summary_parse(&s,
                  STR(" {\"scoreName\":\"a\",\"x\":1,\"sourceType\":\"None\","
                      "\"scoringEndpoint\":\"http://a\"}"),
                  &p);
    assert_int_equal(p.errors, 0);
    assert_true(p.n == 1 && p.list[0].kind == PROBLEM_WARNING && str_eq(p.list[0].path, STR("x")));
    assert_string_equal(s.score_name, "a");
    summary_done(&s);
    problems_done(&p);
}

static void finds_what_is_no_placeholder(void **state)
{
    static const struct {
        const char *format, *unknown;
    } cases[] = {
        {"${node}-${pod}", ""},
        {"", ""},
        {"${nod}", "${nod}"},
        {"${node}${instance}", "${instance}"},
        {"a${node", "${node"},
        {"${}", "${}"},
        {"$node", "$node"},
        {"a-$node-b", "$node"},
        {"$nodes", ""},
        {"$node_1", ""},
        {"$5", ""},
        {"$", ""},
        {"$(pod)", "$(pod)"},
        {"$(date)", ""},
        {"{{node}}", "{{node}}"},
        {"{{ .scoreName }}", "{{ .scoreName }}"},
        {"{{x}}", ""},
        {"{{node}", ""},
        {"%device%", "%device%"},
        {"100%", ""},
        {"%device", ""},
        {"%", ""},
        {"${node}/$pod", "$pod"},
        {"$${node}", ""},
        {"{{${node}}}", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str found = format_mistake(cases[i].format);

        if (!str_eq(found, str_of(cases[i].unknown)))
            fail_msg("%s: \"%.*s\" instead of \"%s\"", cases[i].format, STR_ARG(found), cases[i].unknown);
    }
}

/* A warning ends in the way that works. */
static void says_what_to_write_instead_of_an_unknown_placeholder(void **state)
{
    static const struct {
        const char *format, *advice;
    } cases[] = {
        {"$node", "${meta}; write ${node}\n"},
        {"{{ .pod }}", "${meta}; write ${pod}\n"},
        {"$(app)", "${meta}; write ${app}\n"},
        {"%scoreName%", "${meta}; write ${scoreName}\n"},
        {"${instance}", "${meta}; to use another label, copy it to one of these in the query: "
                        "label_replace(QUERY, \"device\", \"$1\", \"instance\", \"(.*)\")\n"},
        {"${}", "${meta}\n"},
        {"${a b}", "${meta}\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_free)
        char *text = xasprintf("- {scoreName: cpu, sourceType: None, scoringEndpoint: 'http://s', "
                               "scoreDimensionFormat: '%s'}\n",
                               cases[i].format);
        BUF_AUTO(said, 1 << 16);
        struct summaries s = read_list(text, PROBLEM_ERROR, &said);

        assert_int_equal(s.n, 1);
        if (!memmem(said.p, said.n, cases[i].advice, strlen(cases[i].advice)))
            fail_msg("%s: %.*s", cases[i].format, STR_ARG(buf_str(&said)));
        summaries_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_hub_writes),
        cmocka_unit_test(fills_in_defaults),
        cmocka_unit_test(reads_words_in_any_case),
        cmocka_unit_test(knows_how_long_a_round_may_take),
        cmocka_unit_test(reads_how_scores_become_items),
        cmocka_unit_test(finds_what_is_no_placeholder),
        cmocka_unit_test(says_what_to_write_instead_of_an_unknown_placeholder),
        cmocka_unit_test(completes_urls),
        cmocka_unit_test(reports_each_invalid_field),
        cmocka_unit_test(requires_fields_without_a_default),
        cmocka_unit_test(limits_the_length_of_the_score_name),
        cmocka_unit_test(warns_about_unknown_keys_and_duplicates),
        cmocka_unit_test(never_shows_a_password),
        cmocka_unit_test(compares_and_copies),
        cmocka_unit_test(reads_one_summary_and_names_the_field_of_each_problem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
