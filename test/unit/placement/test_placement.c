/* The requests to the hub, step by step, against a scripted API server and on a fake clock. Rounds are
 * real: the same server is the scoring API. */
#include "controller/kube/json.h"
#include "controller/placement/placement.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/score/secrets.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SCORES "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/c1/addonplacementscores"
#define OWNED                                                                                    \
    "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"%s\",\"resourceVersion\":\"5\",\"labels\":{" \
    "\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"     \
    "\"dynamic-scoring.open-cluster-management.io/owner\":\"%s\"}},\"status\":%s}"

struct world {
    struct fake_kube *f;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source;
    struct limits limits;
    struct scorer_env env;
    struct scorer *scorer;
    struct placement *placement;
    bool adopt;
    unsigned ended;
};

static size_t series_left(void *arg, const struct scorer *s)
{
    (void)arg;
    (void)s;
    return 1000;
}

static void publish(void *arg, struct scorer *s, struct batch *b)
{
    (void)arg;
    (void)s;
    (void)b;
}

static void withdraw(void *arg, struct scorer *s)
{
    (void)arg;
    (void)s;
}

static void ended(void *arg, struct scorer *s)
{
    struct world *w = arg;

    w->ended++;
    if (w->placement)
        placement_round(w->placement, s);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    assert_int_equal(metrics_new(&w->metrics, METRIC_OWNER_LOOP), 0);
    secret_files_init(&w->secrets, NULL);
    w->limits = (struct limits){
        .series_per_scorer = 1000, .label_value_bytes = 256, .round_ms = 60000, .stale_intervals = 3};
    w->source = (struct source_env){
        .loop = w->f->loop, .http = w->f->http, .secrets = &w->secrets.secrets, .max_answer = 1 << 20};
    w->env = (struct scorer_env){.source = &w->source,
                                 .metrics = w->metrics,
                                 .cluster_name = "c1",
                                 .limits = &w->limits,
                                 .series_left = series_left,
                                 .publish = publish,
                                 .withdraw = withdraw,
                                 .ended = ended,
                                 .arg = w};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->placement = placement_free(w->placement);
    (void)scorer_free(w->scorer);
    (void)metrics_free(w->metrics);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static void push(struct world *w, const char *path, int status, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.status = status,
                                                 .body = body,
                                                 .headers = "Content-Type: application/json\r\n",
                                                 .only_path = path});
}

static void push_scores(struct world *w, double score)
{
    push(w, "/s", 200,
         fake_kube_text(w->f, "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":%g}]}", score));
}

/* Starts the placement and passes its first list; requests 0 and 1. */
static void begin(struct world *w, const char *items)
{
    const struct placement_options o = {.hub = w->f->kube,
                                        .metrics = w->metrics,
                                        .cluster_name = "c1",
                                        .owner = "ns/addon",
                                        .adopt_unowned = w->adopt};

    fake_kube_list(w->f, "10", NULL, items);
    fake_kube_watch(w->f, FAKE_WATCH_STAYS, fake_kube_bookmark(w->f, "11"));
    assert_int_equal(placement_new(&w->placement, &o), 0);
    fake_kube_requests(w->f, 2);
}

/* A scorer of one-minute rounds whose first is asked for with the next request. */
static void add_scorer(struct world *w, const char *extra)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summaries_done) struct summaries s = {0};
    const char *text = fake_kube_text(
        w->f, "- {scoreName: My_Score, sourceType: None, scoringEndpoint: '%s', scoringInterval: 60%s}",
        fake_url(w->f->server, "/s"), extra);

    assert_int_equal(problems_init(&p, "f"), 0);
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    assert_int_equal(summaries_parse(&s, doc_root(d), PROBLEM_ERROR, &p), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(scorer_new(&w->scorer, &w->env, &s.list[0]), 0);
    assert_int_equal(placement_sync(w->placement, &w->scorer, 1), 0);
}

/* Runs the next round. */
static void round_to(struct world *w, int64_t ms)
{
    unsigned n = w->ended;

    fake_kube_advance(w->f, ms);
    fake_kube_turn(w->f, &w->ended, n + 1);
}

static void assert_asked(struct world *w, size_t i, const char *want)
{
    fake_kube_requests(w->f, i + 1);
    assert_string_equal(fake_kube_asked(w->f, i), want);
}

static json_t *body_of(struct world *w, size_t i)
{
    const struct fake_request *rq = fake_request(w->f->server, i);
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, (struct str){rq->body, rq->body_len}, NULL), 0);
    return o;
}

static void assert_status(struct world *w, size_t i, int64_t value, const char *until, const char *scored)
{
    json_t *o = body_of(w, i), *items = kube_list(o, "status", "scores", NULL);
    int64_t got = 0;

    assert_int_equal(json_array_size(items), 1);
    assert_true(kube_int(json_array_get(items, 0), &got, "value", NULL));
    assert_int_equal(got, value);
    assert_string_equal(kube_str(o, "status", "validUntil", NULL), until);
    assert_string_equal(
        kube_str(json_array_get(kube_list(o, "status", "conditions", NULL), 0), "status", NULL), scored);
    json_decref(o);
}

static const char *until(struct world *w, int64_t ms)
{
    char text[32];

    unix_ms_format((unix_ms){w->f->clock.wall.ms + ms}, text);
    return fake_kube_text(w->f, "%.19sZ", text);
}

/* Requests 2, 3 and 4: the round, the create and the status. */
static void first_write(struct world *w)
{
    push_scores(w, 41.9);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 3, "POST " SCORES);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
}

static void creates_an_object_then_writes_its_status(void **state)
{
    struct world *w = *state;
    json_t *o;

    begin(w, "");
    first_write(w);
    o = body_of(w, 3);
    assert_string_equal(kube_name(o), "my-score");
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    assert_string_equal(kube_annotation(o, "dynamic-scoring.open-cluster-management.io/owner"), "ns/addon");
    assert_null(kube_get(o, "status", NULL)); /* it would be dropped */
    json_decref(o);
    assert_status(w, 4, 41, until(w, 180000), "True");
    assert_int_equal(placement_behind(w->placement), 0);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
}

static void writes_nothing_until_half_of_the_validity_has_passed(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 41.2);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    push_scores(w, 41);
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    assert_status(w, 7, 41, until(w, 180000), "True");
}

static void writes_the_newest_state_after_the_write_under_way(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    fake_push(w->f->server, (struct fake_answer){.body = "{}", .delay_ms = 500, .only_path = SCORES});
    push_scores(w, 1);
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    push_scores(w, 2);
    push_scores(w, 3);
    round_to(w, 60000); /* both while the first write waits for its answer */
    round_to(w, 60000);
    assert_int_equal(fake_requests(w->f->server), 9);
    push(w, SCORES, 200, "{}");
    assert_asked(w, 9, "PATCH " SCORES "/my-score/status");
    assert_status(w, 9, 3, until(w, 180000), "True");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 10);
}

static void retries_a_failed_write_with_the_newest_state(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 1);
    push(w, SCORES, 500, "{\"kind\":\"Status\",\"message\":\"etcdserver: leader changed\",\"code\":500}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_trouble(w->placement, w->scorer), "leader changed"));
    assert_int_equal(placement_behind(w->placement), 1);
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
    assert_int_equal(placement_behind(w->placement), 0);
}

static void creates_a_vanished_object_again(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 1);
    push(w, SCORES, 404,
         "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"details\":{\"name\":\"my-score\"}}");
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 7, "POST " SCORES);
    assert_asked(w, 8, "PATCH " SCORES "/my-score/status");
}

static void leaves_a_foreign_object_alone(void **state)
{
    struct world *w = *state;
    const char *const exists = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}";

    begin(w, "");
    push_scores(w, 1);
    push(w, SCORES, 409, exists);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/other", "{}"));
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(
        strstr(placement_trouble(w->placement, w->scorer), "created by ns/other and is left alone"));
    push_scores(w, 2);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    assert_int_equal(placement_sync(w->placement, NULL, 0), 0); /* nor is it deleted */
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
}

#define EXISTS "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}"
#define UNOWNED                                                                                    \
    "{\"metadata\":{\"name\":\"my-score\",\"resourceVersion\":\"7\",\"labels\":{\"team\":\"x\"}}," \
    "\"status\":"                                                                                  \
    "{\"scores\":[{\"name\":\"x\",\"value\":7}]}}"

/* Requests 2 to 4: a round, the create that finds the object, and the object. */
static void meet(struct world *w, int round, const char *object)
{
    begin(w, "");
    push(w, "/s", round, "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":1}]}");
    push(w, SCORES, 409, EXISTS);
    push(w, SCORES, 200, object);
    add_scorer(w, "");
}

static void adopts_an_object_without_an_owner(void **state)
{
    struct world *w = *state;
    json_t *o;

    w->adopt = true;
    meet(w, 200, UNOWNED);
    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 2000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score");
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 5);
    assert_string_equal(kube_version(o), "7"); /* of two agents one adopts it */
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    assert_string_equal(kube_annotation(o, "dynamic-scoring.open-cluster-management.io/owner"), "ns/addon");
    assert_int_equal(json_object_size(kube_map(o, "metadata", "labels", NULL)), 1);
    json_decref(o);
    assert_status(w, 6, 1, until(w, 180000), "True");
    fake_kube_idle(w->f);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
    push(w, SCORES, 200, "{}");
    assert_int_equal(placement_sync(w->placement, NULL, 0), 0);
    assert_asked(w, 7, "DELETE " SCORES "/my-score");
}

/* Like an agent that restarts, although the object says no end of its scores. */
static void keeps_adopted_scores_while_the_first_round_fails(void **state)
{
    struct world *w = *state;
    json_t *o;

    w->adopt = true;
    meet(w, 500, UNOWNED);
    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 2000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 6);
    assert_null(kube_get(o, "status", "scores", NULL));
    json_decref(o);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 180000);
    fake_kube_requests(w->f, 9);
    o = body_of(w, strncmp(fake_kube_asked(w->f, 7), "PATCH", 5) == 0 ? 7 : 8);
    assert_int_equal(json_array_size(kube_list(o, "status", "scores", NULL)), 0);
    assert_non_null(kube_list(o, "status", "scores", NULL));
    json_decref(o);
}

static void adopts_only_when_told_to(void **state)
{
    struct world *w = *state;

    meet(w, 200, UNOWNED);
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_trouble(w->placement, w->scorer),
                           "created by another program and is left alone; delete it, adopt it with "
                           "--adopt-unowned-scores, or choose"));
    assert_int_equal(fake_requests(w->f->server), 5);
}

static void adopts_no_object_with_an_owner(void **state)
{
    struct world *w = *state;

    w->adopt = true;
    meet(w, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/other", "{}"));
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_trouble(w->placement, w->scorer),
                           "created by ns/other and is left alone; delete it, or choose"));
    assert_int_equal(fake_requests(w->f->server), 5);
}

/* Not before the scorers are known. */
static void deletes_objects_without_a_scorer(void **state)
{
    struct world *w = *state;

    begin(w, fake_kube_text(w->f, OWNED "," OWNED, "old", "ns/addon", "{}", "theirs", "ns/other", "{}"));
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 2);
    push(w, SCORES, 200, "{}");
    assert_int_equal(placement_sync(w->placement, NULL, 0), 0);
    assert_asked(w, 2, "DELETE " SCORES "/old");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 3);
}

/* The first write as above, requests 4 and 5, while the watch waits for its next attempt. */
static void write_unwatched(struct world *w)
{
    const struct placement_options o = {
        .hub = w->f->kube, .metrics = w->metrics, .cluster_name = "c1", .owner = "ns/addon"};

    fake_kube_list(w->f, "10", NULL, "");
    fake_kube_watch(w->f, FAKE_WATCH_ENDS, fake_kube_bookmark(w->f, "11"));
    fake_push(w->f->server,
              (struct fake_answer){.status = 503, .headers = "Retry-After: 30\r\n", .only_path = SCORES "?"});
    assert_int_equal(placement_new(&w->placement, &o), 0);
    fake_kube_requests(w->f, 2);
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 5000);
    fake_kube_requests(w->f, 3);
    fake_kube_idle(w->f);
    push_scores(w, 41.9);
    push(w, SCORES, 201, "{}");
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"20\"}}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
}

/* The answer to the watch's next attempt. */
static void push_events(struct world *w, const char *events)
{
    fake_push(w->f->server,
              (struct fake_answer){.mode = FAKE_HANG_LATE,
                                   .body = fake_kube_text(w->f, "%s%*s", events, (int)strlen(events), ""),
                                   .only_path = SCORES "?"});
}

/* Lets the watch try again, request 6. */
static void watch_again(struct world *w)
{
    fake_kube_advance(w->f, 40000);
    fake_kube_requests(w->f, 7);
}

/* An event with the status as it was written, but for the value of its item if that is not 41. */
static const char *event_of(struct world *w, const char *type, const char *version, int value)
{
    json_t *o = body_of(w, 5);
    char *text;
    const char *event;

    assert_int_equal(json_object_set_new(json_array_get(kube_list(o, "status", "scores", NULL), 0), "value",
                                         json_integer(value)),
                     0);
    text = json_dumps(json_object_get(o, "status"), JSON_COMPACT);
    event = fake_kube_text(w->f, OWNED, "my-score", "ns/addon", text);
    free(text);
    json_decref(o);
    text = strstr((char *)(uintptr_t)event, "\"5\"");
    event = fake_kube_text(w->f, "%.*s\"%s\"%s", (int)(text - event), event, version, text + 3);
    return fake_kube_event(w->f, type, event);
}

static void writes_an_edited_score_again_at_once(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(
        w, fake_kube_text(w->f, "%s%s", event_of(w, "ADDED", "20", 41), event_of(w, "MODIFIED", "21", 99)));
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"22\"}}");
    watch_again(w);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    assert_string_equal(fake_request(w->f->server, 7)->body, fake_request(w->f->server, 5)->body);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
    assert_int_equal(placement_behind(w->placement), 0);
}

/* Its own write, an older version, and what others did to the metadata. */
static void writes_nothing_for_events_that_show_what_was_written(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(w, fake_kube_text(w->f, "%s%s%s", event_of(w, "ADDED", "19", 7),
                                  event_of(w, "MODIFIED", "20", 41), event_of(w, "MODIFIED", "21", 41)));
    watch_again(w);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 7);
}

static void backs_off_while_another_writer_keeps_editing(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(w, fake_kube_text(w->f, "%s%s%s", event_of(w, "MODIFIED", "21", 99),
                                  event_of(w, "MODIFIED", "23", 99), event_of(w, "MODIFIED", "25", 99)));
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"22\"}}");
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"24\"}}");
    watch_again(w);
    assert_asked(w, 8, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 9);
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"26\"}}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 9, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 10);
}

/* To the watch, which selects by the label, the object is deleted then. */
static void takes_back_an_object_without_its_label(void **state)
{
    struct world *w = *state;
    json_t *o;

    write_unwatched(w);
    push_events(
        w, fake_kube_text(w->f, "%s%s", event_of(w, "ADDED", "20", 41), event_of(w, "DELETED", "21", 41)));
    push(w, SCORES, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    push(w, SCORES "/my-score", 200,
         "{\"metadata\":{\"name\":\"my-score\",\"annotations\":{"
         "\"dynamic-scoring.open-cluster-management.io/owner\":\"ns/addon\"}}}");
    push(w, SCORES "/my-score", 200, "{}");
    push(w, SCORES "/my-score/", 200, "{}");
    watch_again(w);
    assert_asked(w, 7, "POST " SCORES);
    assert_asked(w, 8, "GET " SCORES "/my-score");
    assert_asked(w, 9, "PATCH " SCORES "/my-score");
    assert_asked(w, 10, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 9);
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    json_decref(o);
    fake_kube_idle(w->f);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
    assert_int_equal(fake_requests(w->f->server), 11);
}

static void keeps_valid_scores_when_the_first_round_after_a_restart_fails(void **state)
{
    struct world *w = *state;
    const char *valid =
        fake_kube_text(w->f,
                       "{\"scores\":[{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\",\"conditions\":["
                       "{\"type\":\"Scored\",\"status\":\"False\",\"lastTransitionTime\":\"%s\"}]}",
                       until(w, 100000), until(w, -500000));
    const char *since = until(w, -500000);
    json_t *o;

    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", valid));
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 3, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 3);
    assert_null(kube_get(o, "status", "scores", NULL));
    assert_null(kube_get(o, "status", "validUntil", NULL));
    assert_string_equal(
        kube_str(json_array_get(kube_list(o, "status", "conditions", NULL), 0), "lastTransitionTime", NULL),
        since);
    json_decref(o);
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    w->f->clock.wall.ms += 100000;
    round_to(w, 10000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score/status");
    assert_status(w, 5, -9, until(w, 180000), "False");
}

static void assert_scored(struct world *w, size_t i, const char *reason, const char *words)
{
    json_t *o = body_of(w, i);
    const json_t *scored = json_array_get(kube_list(o, "status", "conditions", NULL), 0);

    assert_string_equal(kube_str(scored, "reason", NULL), reason);
    assert_non_null(strstr(kube_str(scored, "message", NULL), words));
    json_decref(o);
}

static void keeps_the_last_scores_of_an_empty_result_then_falls_back(void **state)
{
    struct world *w = *state;
    const char *end;
    size_t i;

    begin(w, "");
    push_scores(w, 41);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    end = until(w, 180000);
    push(w, "/s", 200, "{\"results\":[]}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    assert_status(w, 6, 41, end, "False");
    assert_scored(w, 6, "NoResults", "the scoring API returned no results; the last scores stay");
    push(w, "/s", 200, "{\"results\":[]}");
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 60000); /* the scores end without a round that does */
    fake_kube_requests(w->f, 10);
    fake_kube_idle(w->f);
    i = strncmp(fake_kube_asked(w->f, 8), "PATCH", 5) == 0 ? 8 : 9;
    assert_status(w, i, -9, until(w, 180000), "False");
    assert_scored(w, i, "NoResults", "fallbackScore is used");
}

static void falls_back_to_the_one_item_of_a_scorer_that_never_had_any(void **state)
{
    struct world *w = *state;

    begin(w, "");
    push(w, "/s", 200, "{\"results\":[{\"metric\":{},\"score\":NaN}]}");
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    assert_status(w, 4, -9, until(w, 180000), "False");
    assert_scored(w, 4, "NoItems", "1 are NaN or infinite, 0 have an empty name; fallbackScore is used");
}

static void writes_an_empty_result_at_once_without_a_fallback(void **state)
{
    struct world *w = *state;
    json_t *o;

    begin(w, "");
    first_write(w);
    push(w, "/s", 200, "{\"results\":[]}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    assert_scored(w, 6, "NoResults", "; there are no scores");
    o = body_of(w, 6);
    assert_int_equal(json_array_size(kube_list(o, "status", "scores", NULL)), 0);
    json_decref(o);
}

static void survives_each_failed_allocation(void **state)
{
    struct world *w = *state;
    const struct placement_options o = {
        .hub = w->f->kube, .metrics = w->metrics, .cluster_name = "c1", .owner = "ns/addon"};

    begin(w, "");
    first_write(w);
    w->placement = placement_free(w->placement);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct placement *p = NULL;
        int r = placement_new(&p, &o);

        if (r == 0) {
            r = placement_sync(p, &w->scorer, 1);
            placement_round(p, w->scorer);
        }
        assert_true(r == 0 || r == -ENOMEM);
        (void)placement_free(p);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(creates_an_object_then_writes_its_status),
        TEST(writes_nothing_until_half_of_the_validity_has_passed),
        TEST(writes_the_newest_state_after_the_write_under_way),
        TEST(retries_a_failed_write_with_the_newest_state),
        TEST(creates_a_vanished_object_again),
        TEST(leaves_a_foreign_object_alone),
        TEST(adopts_an_object_without_an_owner),
        TEST(keeps_adopted_scores_while_the_first_round_fails),
        TEST(adopts_only_when_told_to),
        TEST(adopts_no_object_with_an_owner),
        TEST(deletes_objects_without_a_scorer),
        TEST(writes_an_edited_score_again_at_once),
        TEST(writes_nothing_for_events_that_show_what_was_written),
        TEST(backs_off_while_another_writer_keeps_editing),
        TEST(takes_back_an_object_without_its_label),
        TEST(keeps_valid_scores_when_the_first_round_after_a_restart_fails),
        TEST(keeps_the_last_scores_of_an_empty_result_then_falls_back),
        TEST(falls_back_to_the_one_item_of_a_scorer_that_never_had_any),
        TEST(writes_an_empty_result_at_once_without_a_fallback),
        TEST(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
