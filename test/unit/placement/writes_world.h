/* What the tests of writes to the hub share: a scripted API server, a fake clock, and a real scorer, whose
 * scoring API is the same server. */
#pragma once

#include "controller/kube/json.h"
#include "controller/placement/placement.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/score/credentials.h"
#include "exporter/score/secret_files.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SCORES "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/c1/addonplacementscores"
#define OWNED_AT(version)                                                                                  \
    "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"%s\",\"resourceVersion\":\"" version "\",\"labels\":{" \
    "\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"               \
    "\"dynamic-scoring.open-cluster-management.io/owner\":\"%s\"}},\"status\":%s}"
#define OWNED OWNED_AT("5")

struct world {
    struct fake_kube *f;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source;
    struct limits limits;
    struct scorer_env env;
    struct summaries summaries;
    struct scorer *scorer;
    struct placement *placement;
    bool adopt;
    unsigned ended;
};

static inline size_t series_left(void *arg, const struct scorer *s)
{
    (void)arg;
    (void)s;
    return 1000;
}

static inline void ended(void *arg, struct scorer *s, const struct round_outcome *o)
{
    struct world *w = arg;

    w->ended++;
    if (w->placement)
        placement_round_ended(w->placement, s->summary.score_name, o);
}

static inline void expired(void *arg, struct scorer *s)
{
    struct world *w = arg;

    w->ended++;
    if (w->placement)
        placement_withdrawn(w->placement, s->summary.score_name);
}

static inline int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->metrics = metrics_new(METRIC_OWNER_LOOP);
    secret_files_init(&w->secrets, NULL);
    w->limits = (struct limits){
        .series_per_scorer = 1000, .label_value_bytes = 256, .round_ms = 60000, .stale_intervals = 3};
    w->source = (struct source_env){.loop = w->f->loop,
                                    .http = w->f->http,
                                    .secrets = &w->secrets.secrets,
                                    .max_answer = 1 << 20,
                                    .cluster_name = "c1"};
    w->env = (struct scorer_env){.source = &w->source,
                                 .metrics = w->metrics,
                                 .limits = &w->limits,
                                 .series_left = series_left,
                                 .ended = ended,
                                 .expired = expired,
                                 .arg = w};
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = *state;

    w->placement = placement_free(w->placement);
    (void)scorer_free(w->scorer);
    summaries_done(&w->summaries);
    (void)metrics_free(w->metrics);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static inline void push(struct world *w, const char *path, int status, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.status = status,
                                                 .body = body,
                                                 .headers = "Content-Type: application/json\r\n",
                                                 .only_path = path});
}

static inline void push_scores(struct world *w, double score)
{
    push(w, "/s", 200,
         fake_kube_text(w->f, "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":%g}]}", score));
}

/* Starts the placement and passes its first list; requests 0 and 1. */
static inline void begin(struct world *w, const char *items)
{
    const struct placement_options o = {.hub = w->f->kube,
                                        .metrics = w->metrics,
                                        .cluster_name = "c1",
                                        .owner = "ns/addon",
                                        .adopt_unowned = w->adopt};

    fake_kube_list(w->f, "10", NULL, items);
    fake_kube_watch(w->f, FAKE_WATCH_STAYS, fake_kube_bookmark(w->f, "11"));
    w->placement = placement_new(&o);
    fake_kube_requests(w->f, 2);
}

/* The list of one scorer of one-minute rounds. */
static inline void read_list(struct world *w, const char *extra)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    const char *text = fake_kube_text(
        w->f, "- {scoreName: My_Score, sourceType: None, scoringEndpoint: '%s', scoringInterval: 60%s}",
        fake_url(w->f->server, "/s"), extra);

    problems_init(&p, "f");
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    summaries_parse(&w->summaries, d->root, PROBLEM_ERROR, &p);
    assert_int_equal(w->summaries.n, 1);
}

/* Its first round is asked for with the next request. */
static inline void add_scorer(struct world *w, const char *extra)
{
    read_list(w, extra);
    w->scorer = scorer_new(&w->env, &w->summaries.list[0]);
    placement_sync(w->placement, &w->summaries, w->limits.stale_intervals);
}

/* The hub sends the list anew. */
static inline void change_scorer(struct world *w, const char *extra)
{
    struct summaries was = w->summaries;

    w->summaries = (struct summaries){0};
    read_list(w, extra);
    scorer_change(w->scorer, &w->summaries.list[0]);
    placement_sync(w->placement, &w->summaries, w->limits.stale_intervals);
    summaries_done(&was);
}

/* Runs the next round. */
static inline void round_to(struct world *w, int64_t ms)
{
    unsigned n = w->ended;

    fake_kube_advance(w->f, ms);
    fake_kube_turn(w->f, &w->ended, n + 1);
}

/* want: without the field manager, with which creates and patches end. */
static inline void assert_asked(struct world *w, size_t i, const char *want)
{
    bool writes =
        strncmp(want, "POST " SCORES, strlen("POST " SCORES)) == 0 || strncmp(want, "PATCH", 5) == 0;

    fake_kube_requests(w->f, i + 1);
    assert_string_equal(
        fake_kube_asked(w->f, i),
        fake_kube_text(w->f, "%s%s", want, writes ? "?fieldManager=dynamic-scoring-agent" : ""));
}

static inline json_t *body_of(struct world *w, size_t i)
{
    const struct fake_request *rq = fake_request(w->f->server, i);
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, (struct str){rq->body, rq->body_len}, NULL), 0);
    return o;
}

static inline void assert_status(struct world *w, size_t i, int64_t value, const char *until,
                                 const char *scored)
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

static inline const char *until(struct world *w, int64_t ms)
{
    char text[32];

    unix_ms_format((unix_ms){w->f->clock.wall.ms + ms}, text);
    return fake_kube_text(w->f, "%.19sZ", text);
}

/* Requests 2, 3 and 4: the round, the create and the status. */
static inline void first_write(struct world *w)
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
