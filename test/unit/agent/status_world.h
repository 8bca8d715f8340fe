/* Agents in every state, for the tests of what people see of them. The scorers are stand-ins: their
 * accessors are defined here, so that the library's own are not linked. Included once in a program. */
#ifndef DS_TEST_STATUS_WORLD_H
#define DS_TEST_STATUS_WORLD_H

#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/agent/status.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/source.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- Stand-ins ---- */

enum { MANY = 256, OUTPUT_MAX = 64 << 20 };

static const int64_t NOW = 1795242181123; /* 2026-11-21T06:23:01.123Z */

struct scorer {
    struct summary summary;
    struct scorer_status status;
    enum scorer_state state;
    struct batch *batch;
};

size_t page_memory(const struct page *p)
{
    (void)p;
    return 12345;
}

const struct summary *scorer_summary(const struct scorer *s)
{
    return &s->summary;
}

const struct scorer_status *scorer_status(const struct scorer *s)
{
    return &s->status;
}

struct batch *scorer_batch(const struct scorer *s)
{
    return s->batch;
}

enum scorer_state scorer_state(const struct scorer *s)
{
    return s->state;
}

static inline mono_ms no_time(const struct clock *c)
{
    (void)c;
    return (mono_ms){1000};
}

static inline unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW};
}

static const struct clock fixed_clock = {no_time, fixed_wall};

/* ---- What they hold ---- */

struct world {
    struct agent_state agent;
    struct config config;
    struct scorer scorers[MANY], *list[MANY];
};

static inline struct batch *make_batch(const char *const (*rows)[3], const double *values, size_t n)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    const struct batch_options o = {.cluster_name = "c1", .score_name = "s", .max_series = 1000000};
    struct batch *ret;
    char made[32];

    assert_int_equal(batch_builder_new(&b, &o), 0);
    assert_int_equal(batch_begin(b), 0);
    for (size_t i = 0; i < n; i++) {
        struct batch_labels labels = {.escapes = (1u << DS_LABELS) - 1};
        (void)snprintf(made, sizeof(made), "n%06zu", i);
        labels.value[DS_NODE] = str_of(rows ? rows[i][0] : made);
        labels.value[DS_POD] = str_of(rows ? rows[i][1] : NULL);
        labels.value[DS_META] = str_of(rows ? rows[i][2] : NULL);
        assert_int_equal(batch_add(b, &labels, values[i]), 0);
    }
    assert_int_equal(batch_seal(b, (unix_ms){NOW - 12000}, &ret, NULL), 0);
    return ret;
}

static inline struct batch *two_scores(void)
{
    static const char *const rows[][3] = {{"n1", "web-1", NULL}, {"n2", NULL, "gpu"}};

    return make_batch(rows, (const double[]){0.25, -17}, 2);
}

static inline struct scorer good_scorer(char *score_name)
{
    return (struct scorer){
        .summary = {.name = (char *)"sample",
                    .score_name = score_name,
                    .source.type = SOURCE_PROMETHEUS,
                    .source.endpoint = (char *)"http://user:hunter2@prom:9090/api/v1/query_range",
                    .source.auth = {(char *)"prom-token", (char *)"token"},
                    .source.query = (char *)"sum by (node) (up); rate(x[5m])",
                    .source.range_s = 3600,
                    .source.step_s = 60,
                    .scoring_endpoint = (char *)"http://scorer/scoring",
                    .interval_ms = 60000},
        .status = {.rounds = 15,
                   .started_ms = NOW - 12500,
                   .ended_ms = NOW - 12000,
                   .succeeded_ms = NOW - 12000,
                   .next_ms = NOW + 48000,
                   .fetch_s = 0.0031,
                   .perform_s = 1.25,
                   .received = {1536, 100},
                   .sent = {0, 2048},
                   .source_series = 12,
                   .results = 2},
        .state = SCORER_OK,
        .batch = two_scores(),
    };
}

static inline struct scorer bad_scorer(enum scorer_state state, enum round_stage stage,
                                       enum round_error error, const char *why)
{
    struct scorer s = good_scorer((char *)"bad_score");

    s.state = state;
    s.status.error = error;
    s.status.stage = stage;
    s.status.failures = 3;
    s.status.succeeded_ms = 0;
    (void)snprintf(s.status.reason, sizeof(s.status.reason), "%s", why);
    (void)snprintf(s.status.url, sizeof(s.status.url), "%s",
                   stage == STAGE_SOURCE ? "http://prom:9090/api/v1/query_range" : "http://scorer/scoring");
    s.batch = state == SCORER_STALE ? batch_unref(s.batch) : s.batch;
    return s;
}

static inline struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_int_equal(loop_new(&w->agent.loop, &fixed_clock), 0);
    w->config = (struct config){.cluster_name = (char *)"c1",
                                .listen = {(char *)":8080", (char *)"[::1]:9"},
                                .n_listen = 2,
                                .secrets_dir = (char *)"/run/secrets",
                                .limits = limits_default,
                                .loaded_at_ms = NOW - 3600000};
    w->agent.config = &w->config;
    w->agent.config_origin = "/etc/config.yaml";
    w->agent.started_ms = NOW - 11100000;
    w->agent.scorers = w->list;
    w->agent.reload = (struct reload_status){.ok = true, .at_ms = NOW - 3600000};
    return w;
}

static inline struct world *world_free(struct world *w)
{
    for (size_t i = 0; i < w->agent.n_scorers; i++)
        (void)batch_unref(w->scorers[i].batch);
    (void)loop_free(w->agent.loop);
    free(w);
    return NULL;
}

DEFINE_CLEANUP(struct world, world_free)
#define WORLD(name) CLEANUP(cleanup_world_free) struct world *name = world_new()

static inline void add(struct world *w, struct scorer s)
{
    w->scorers[w->agent.n_scorers] = s;
    w->list[w->agent.n_scorers] = &w->scorers[w->agent.n_scorers];
    w->agent.n_scorers++;
}

/* ---- Looking at what was written ---- */

static inline void terminate(struct buf *b)
{
    assert_int_equal(buf_putc(b, '\0'), 0);
    b->n--;
}

static inline void render_json(const struct world *w, const struct list_query *q, struct buf *into)
{
    const struct list_query all = list_query_all();

    assert_int_equal(status_json(&w->agent, q ? q : &all, into), 0);
    terminate(into);
}

static inline void render_table(const struct world *w, unsigned width, struct buf *into)
{
    assert_int_equal(status_table(&w->agent, width, into), 0);
    terminate(into);
}

static inline void assert_has(const struct buf *b, const char *what)
{
    if (!memmem(b->p, b->n, what, strlen(what)))
        fail_msg("not there: %s\nin:\n%s", what, b->p);
}

static inline void assert_lacks(const struct buf *b, const char *what)
{
    if (memmem(b->p, b->n, what, strlen(what)))
        fail_msg("there, and should not be: %s\nin:\n%s", what, b->p);
}

#endif
