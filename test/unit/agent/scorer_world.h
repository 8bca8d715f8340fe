/* A scorer on a clock that the test moves. Its rounds are real: they ask a scoring API over HTTP. */
#pragma once

#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/credentials.h"
#include "exporter/score/secret_files.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ONE_SCORE "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":1.5}]}"

static mono_ms now = {1000000};
static unix_ms wall = {1795000000000};

static inline mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return now;
}

static inline unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return wall;
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

struct world {
    struct fake_server *api;
    struct loop *loop;
    struct http *http;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source;
    struct limits limits;
    struct scorer_env env;
    struct summary summary;
    struct scorer *scorer;
    size_t left, published, withdrawn, ended;
    int64_t published_at_ms;
};

static inline size_t series_left(void *arg, const struct scorer *s)
{
    (void)s;
    return ((struct world *)arg)->left;
}

static inline void ended(void *arg, struct scorer *s, const struct round_outcome *o)
{
    struct world *w = arg;

    (void)s;
    w->ended++;
    if (!o->batch)
        return;
    w->published++;
    w->published_at_ms = o->batch->at.ms;
}

static inline void expired(void *arg, struct scorer *s)
{
    (void)s;
    ((struct world *)arg)->withdrawn++;
}

static inline int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    now.ms = 1000000;
    wall.ms = 1795000000000;
    w->api = fake_new();
    fake_default(w->api, (struct fake_answer){.body = ONE_SCORE});
    assert_int_equal(loop_new(&w->loop, &fake_clock), 0);
    w->http = http_new(w->loop, "test/1");
    w->metrics = metrics_new(METRIC_OWNER_LOOP);
    secret_files_init(&w->secrets, NULL);
    w->source = (struct source_env){w->loop, w->http, &w->secrets.secrets, 1 << 20, "c1", NULL, NULL, NULL};
    w->limits = (struct limits){.response_bytes = 1 << 20,
                                .series_per_scorer = 100,
                                .series = 1000,
                                .label_value_bytes = 256,
                                .round_ms = 300000,
                                .stale_intervals = 3};
    w->left = 100;
    w->env = (struct scorer_env){.source = &w->source,
                                 .metrics = w->metrics,
                                 .limits = &w->limits,
                                 .series_left = series_left,
                                 .ended = ended,
                                 .expired = expired,
                                 .arg = w};
    w->summary = (struct summary){
        .name = (char *)"s",
        .score_name = (char *)"s",
        .scoring_endpoint = (char *)(uintptr_t)fake_url(w->api, "/scoring"),
        .interval_ms = 60000,
        .items = {{.format = (char *)"${scoreName}"}},
        .n_items = 1,
    };
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = *state;

    (void)scorer_free(w->scorer);
    (void)http_free(w->http);
    (void)metrics_free(w->metrics);
    (void)loop_free(w->loop);
    (void)fake_free(w->api);
    free(w);
    return 0;
}

static inline void start(struct world *w)
{
    w->scorer = scorer_new(&w->env, &w->summary);
}

/* Turns until n rounds have ended in all; real time passes only while the answer is under way. */
static inline void turn_until_ended(struct world *w, size_t n)
{
    for (int i = 0; i < 2000 && w->ended < n; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_int_equal(w->ended, n);
}

static inline void pass(struct world *w, int64_t ms)
{
    now.ms += ms;
    wall.ms += ms;
    for (int i = 0; i < 3; i++)
        assert_int_equal(loop_turn(w->loop, 0), 0);
}

static inline void first_round(struct world *w)
{
    start(w);
    pass(w, 2000);
    turn_until_ended(w, 1);
}
