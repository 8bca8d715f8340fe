#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/source.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/history.h"
#include "exporter/ui/list.h"
#include "test/unit/agent/status_world.h"

#include <jansson.h>
#include <math.h>

static json_t *rendered_json(const struct world *w, const struct list_query *q)
{
    BUF_AUTO(b, OUTPUT_MAX);
    json_error_t e;
    json_t *j;

    render_json(w, q, &b);
    j = json_loadb(b.p, b.n, JSON_REJECT_DUPLICATES, &e);
    if (!j)
        fail_msg("%s at %d in %s", e.text, e.position, b.p);
    return j;
}

/* Whether two JSON texts mean the same. */
static void assert_json(const json_t *got, const char *want)
{
    json_auto_t *w = json_loads(want, JSON_DECODE_ANY, NULL);
    CLEANUP(cleanup_free) char *text = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);

    assert_non_null(w);
    if (!got || !json_equal(got, w))
        fail_msg("got %s\nexpected %s", text ? text : "nothing", want);
}

static json_t *first_scorer(const json_t *j)
{
    return json_array_get(json_object_get(j, "scorers"), 0);
}

static void has_every_member_of_a_good_scorer(void **state)
{
    WORLD(w);
    json_auto_t *j = NULL;

    (void)state;
    add(w, good_scorer((char *)"my_score"));
    j = rendered_json(w, NULL);
    assert_json(json_object_get(j, "cluster"), "\"c1\"");
    assert_json(json_object_get(j, "startedAt"), "\"2026-11-21T03:18:01.123Z\"");
    assert_json(json_object_get(j, "totals"),
                "{\"scorers\":1,\"series\":2,\"metricsPageBytes\":12345,\"states\":{\"waiting\":0,\"ok\":"
                "1,\"empty\":0,\"failing\":0,\"stale\":0}}");
    assert_json(
        json_object_get(j, "limits"),
        "{\"responseBytes\":268435456,\"seriesPerScorer\":100000,\"series\":1000000,\"labelValueBytes\":256,"
        "\"roundTimeSeconds\":300,\"staleAfterIntervals\":3}");
    assert_json(
        json_object_get(j, "config"),
        "{\"file\":\"/etc/config.yaml\",\"loadedAt\":\"2026-11-21T05:23:01.123Z\",\"ok\":true,"
        "\"lastTriedAt\":\"2026-11-21T05:23:01.123Z\",\"problems\":[],\"listen\":[\":8080\",\"[::1]:9\"],"
        "\"secretsFolder\":\"/run/secrets\",\"storageFolder\":null}");
    assert_json(
        first_scorer(j),
        "{\"name\":\"sample\",\"scoreName\":\"my_score\",\"state\":\"ok\",\"running\":false,\"runningSince\":"
        "null,"
        "\"rounds\":15,\"failures\":0,\"lastRound\":{\"startedAt\":\"2026-11-21T06:22:48.623Z\","
        "\"endedAt\":\"2026-11-21T06:22:49.123Z\",\"fetchSeconds\":0.0031,\"performSeconds\":1.25,"
        "\"sourceSeries\":12,"
        "\"results\":2,\"invalidResults\":0,\"firstInvalid\":null,\"duplicates\":0,\"cutLabels\":0,"
        "\"receivedBytes\":{\"source\":1536,\"scoring\":100},\"sentBytes\":{\"source\":0,\"scoring\":2048}},"
        "\"lastSuccessAt\":\"2026-11-21T06:22:49.123Z\",\"scoresAt\":\"2026-11-21T06:22:49.123Z\","
        "\"nextRoundAt\":\"2026-11-21T06:23:49.123Z\",\"intervalSeconds\":60,\"series\":2,\"error\":null,"
        "\"warnings\":null,\"source\":{\"type\":\"Prometheus\",\"endpoint\":\"http://prom:9090/api/v1/"
        "query_range\","
        "\"secret\":{\"name\":\"prom-token\",\"key\":\"token\"},\"query\":\"sum by (node) (up); "
        "rate(x[5m])\",\"queries\":[\"sum by (node) (up)\",\"rate(x[5m])\"],"
        "\"rangeSeconds\":3600,\"stepSeconds\":60},\"scoringEndpoint\":\"http://scorer/"
        "scoring\",\"scoringSecret\":null,"
        "\"highest\":[{\"labels\":{\"node\":\"n1\",\"pod\":\"web-1\"},\"score\":0.25},"
        "{\"labels\":{\"node\":\"n2\",\"meta\":\"gpu\"},\"score\":-17}],"
        "\"lowest\":[{\"labels\":{\"node\":\"n2\",\"meta\":\"gpu\"},\"score\":-17},"
        "{\"labels\":{\"node\":\"n1\",\"pod\":\"web-1\"},\"score\":0.25}],\"nanScores\":0}");
}

static void tells_what_is_wrong(void **state)
{
    const double values[] = {INFINITY, -INFINITY, NAN};
    struct scorer s = bad_scorer(SCORER_FAILING, STAGE_SCORING, ROUND_TIMEOUT, "no answer in 10 s");
    WORLD(w);
    json_auto_t *j = NULL;

    (void)state;
    (void)batch_unref(s.batch);
    s.batch = make_batch(NULL, values, ARRAY_SIZE(values));
    s.status.source_warnings = 1;
    (void)strcpy(s.status.source_warning, "slow \"disk\"");
    s.status.running = true;
    s.status.next_ms = 0;
    add(w, s);
    w->agent.reload =
        (struct reload_status){.at_ms = NOW, .problems = (char *)"a:1:1: error: x\na:2:1: error: y\n"};
    j = rendered_json(w, NULL);
    assert_json(json_object_get(json_object_get(j, "config"), "problems"),
                "[\"a:1:1: error: x\",\"a:2:1: error: y\"]");
    assert_json(json_object_get(first_scorer(j), "error"),
                "{\"stage\":\"scoring\",\"class\":\"timeout\",\"url\":\"http://scorer/"
                "scoring\",\"text\":\"no answer in 10 s\","
                "\"hint\":\"why the scoring API takes so long, or raise timeout and limits.roundTime\"}");
    assert_json(json_object_get(first_scorer(j), "warnings"),
                "{\"count\":1,\"first\":\"slow \\\"disk\\\"\"}");
    assert_json(json_object_get(first_scorer(j), "nextRoundAt"), "null");
    assert_json(json_object_get(first_scorer(j), "runningSince"), "\"2026-11-21T06:22:48.623Z\"");
    assert_json(json_object_get(json_object_get(first_scorer(j), "lastRound"), "startedAt"), "null");
    assert_json(json_object_get(first_scorer(j), "highest"),
                "[{\"labels\":{\"node\":\"n000000\"},\"score\":\"+Inf\"},"
                "{\"labels\":{\"node\":\"n000001\"},\"score\":\"-Inf\"}]");
}

static void is_complete_without_scorers_rounds_or_configuration(void **state)
{
    WORLD(w);
    struct scorer s = good_scorer((char *)"new");
    json_auto_t *empty = rendered_json(w, NULL), *none = NULL, *starting = NULL;

    (void)state;
    assert_json(json_object_get(empty, "scorers"), "[]");
    w->agent.config = NULL;
    none = rendered_json(w, NULL);
    assert_json(json_object_get(none, "cluster"), "null");
    assert_json(json_object_get(none, "limits"), "null");
    s.batch = batch_unref(s.batch);
    s.status = (struct scorer_status){0};
    s.state = SCORER_WAITING;
    s.summary.source.type = SOURCE_NONE;
    s.summary.source.endpoint = s.summary.source.query = NULL;
    add(w, s);
    starting = rendered_json(w, NULL);
    assert_json(json_object_get(first_scorer(starting), "lastRound"), "null");
    assert_json(json_object_get(first_scorer(starting), "scoresAt"), "null");
    assert_json(json_object_get(first_scorer(starting), "lastSuccessAt"), "null");
    assert_json(json_object_get(first_scorer(starting), "source"), "{\"type\":\"None\"}");
    assert_json(json_object_get(first_scorer(starting), "highest"), "[]");
}

static void lists_several_sources(void **state)
{
    WORLD(w);
    struct summary_source more[] = {{.type = SOURCE_PROMETHEUS,
                                     .endpoint = (char *)"http://me:hunter2@other/q",
                                     .auth = {(char *)"other-token", (char *)"key"},
                                     .query = (char *)"down",
                                     .range_s = 60,
                                     .step_s = 5}};
    struct scorer s = good_scorer((char *)"sample");
    json_auto_t *j = NULL;
    json_t *list;

    (void)state;
    s.summary.more_sources = more;
    s.summary.n_more_sources = 1;
    add(w, s);
    j = rendered_json(w, NULL);
    list = json_object_get(first_scorer(j), "sources");
    assert_int_equal(json_array_size(list), 2);
    assert_true(json_equal(json_array_get(list, 0), json_object_get(first_scorer(j), "source")));
    assert_json(
        json_array_get(list, 1),
        "{\"type\":\"Prometheus\",\"endpoint\":\"http://other/q\",\"secret\":{\"name\":\"other-token\","
        "\"key\":\"key\"},\"query\":\"down\",\"queries\":[\"down\"],\"rangeSeconds\":60,\"stepSeconds\":5}");
}

static void has_scorers(const json_t *j, const char *const *names, size_t n)
{
    const json_t *list = json_object_get(j, "scorers");

    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, i), "scoreName")),
                            names[i]);
}

static void gives_the_scorers_that_are_asked_for(void **state)
{
    static const struct {
        struct list_query query;
        const char *names[3];
        size_t n, remaining;
    } cases[] = {
        {{.limit = 10, .filter = "", .state = ""}, {"a", "b", "c"}, 3, 0},
        {{.limit = 2, .filter = "", .state = ""}, {"a", "b"}, 2, 1},
        {{.limit = 2, .filter = "", .state = "", .after = (char *)"a"}, {"b", "c"}, 2, 0},
        {{.limit = 1, .filter = "", .state = "", .worst_first = true}, {"b"}, 1, 2},
        {{.limit = 9, .filter = "", .state = "stale,empty"}, {"b"}, 1, 0},
        {{.limit = 9, .filter = "C", .state = ""}, {"c"}, 1, 0},
        {{.limit = 9, .filter = "SAMPLE", .state = "ok"}, {"a", "c"}, 2, 0}, /* the name of each */
        {{.limit = 9, .filter = "x", .state = ""}, {NULL}, 0, 0},
    };
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"c"));
    add(w, good_scorer((char *)"a"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_DNS, "no"));
    w->scorers[2].summary.score_name = (char *)"b";
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *j = rendered_json(w, &cases[i].query);
        const json_t *metadata = json_object_get(j, "metadata");

        has_scorers(j, cases[i].names, cases[i].n);
        assert_int_equal(json_integer_value(json_object_get(metadata, "remainingItemCount")),
                         cases[i].remaining);
        assert_int_equal(json_is_null(json_object_get(metadata, "continue")), cases[i].remaining == 0);
    }
}

static void has_the_history_when_asked(void **state)
{
    struct list_query q = list_query_all();
    struct history *h = NULL;
    WORLD(w);
    json_auto_t *without = NULL, *with = NULL;

    (void)state;
    add(w, good_scorer((char *)"a"));
    history_add(&h, 5, (unix_ms){NOW}, (const double[]){0.25, NAN, 1, 2, 3});
    w->scorers[0].status.history = h;
    without = rendered_json(w, &q);
    assert_null(json_object_get(first_scorer(without), "history"));
    q.with_history = true;
    with = rendered_json(w, &q);
    assert_json(
        json_object_get(first_scorer(with), "history"),
        "{\"unixSeconds\":[1795242181],\"fetchSeconds\":[0.25],\"performSeconds\":[null],\"lowest\":[1],"
        "\"mean\":[2],\"highest\":[3]}");
    (void)history_free(h);
}

static bool an_election(void *arg, struct agent_election *ret)
{
    (void)arg;
    *ret = (struct agent_election){.identity = "pod_1", .holder = "pod_2", .error = "HTTP 403"};
    return true;
}

static void says_who_leads(void **state)
{
    WORLD(w);
    json_auto_t *alone = NULL, *standby = NULL;

    (void)state;
    w->agent.leading = true;
    alone = rendered_json(w, NULL);
    assert_json(json_object_get(alone, "leading"), "true");
    assert_json(json_object_get(alone, "election"), "null");
    w->agent.leading = false;
    w->agent.hooks.election = an_election;
    standby = rendered_json(w, NULL);
    assert_json(json_object_get(standby, "leading"), "false");
    assert_json(json_object_get(standby, "election"),
                "{\"identity\":\"pod_1\",\"holder\":\"pod_2\",\"error\":\"HTTP 403\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_every_member_of_a_good_scorer),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test(is_complete_without_scorers_rounds_or_configuration),
        cmocka_unit_test(lists_several_sources),
        cmocka_unit_test(gives_the_scorers_that_are_asked_for),
        cmocka_unit_test(has_the_history_when_asked),
        cmocka_unit_test(says_who_leads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
