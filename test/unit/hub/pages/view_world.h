/* Hubs in every state, for the tests of what people see of them. What the hub itself does (counting,
 * probing, judging) is stood in for: only what is shown matters here. Included once in a program. */
#ifndef DS_TEST_HUB_VIEW_WORLD_H
#define DS_TEST_HUB_VIEW_WORLD_H

#include "controller/hub/pages/json.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status.h"
#include "controller/kube/lease.h"
#include "controller/kube/watch.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/score/state.h"
#include "exporter/ui/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { OUTPUT_MAX = 64 << 20, MOST_SCORERS = 128, ENTRY_WITHOUT_ROOM = 2 };

static const int64_t NOW = 1795242181123; /* 2026-11-21T06:23:01.123Z */
static int64_t now_mono = 100000000;      /* tests may move it */

/* ---- Stand-ins ---- */

struct probe {
    struct probe_status status;
};

struct kube_watch {
    const char *trouble;
    bool synced;
};

struct kube_lease {
    const char *holder, *trouble;
};

struct plan {
    int unused;
};

static unsigned tallies;

void hub_tally(struct hub *h)
{
    (void)h;
    tallies++;
}

bool hub_synced(const struct hub *h)
{
    return h->watches[HUB_SCORERS].watch->synced && h->watches[HUB_WORKS].watch->synced;
}

const struct probe_status *probe_status(const struct probe *p)
{
    return &p->status;
}

const char *kube_watch_trouble(const struct kube_watch *w)
{
    return w->trouble;
}

bool kube_watch_synced(const struct kube_watch *w)
{
    return w->synced;
}

bool kube_watch_lacks_kind(const struct kube_watch *w)
{
    (void)w;
    return false;
}

const char *kube_lease_holder(const struct kube_lease *l)
{
    return l->holder;
}

const char *kube_lease_trouble(const struct kube_lease *l)
{
    return l->trouble;
}

json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now)
{
    bool well = s->probe && s->probe->status.health == HEALTH_ACTIVE && s->effective.reason == EFFECTIVE_OK &&
                !s->older && !*s->spec_error;
    const char *ready = s->probe && s->probe->status.health == HEALTH_UNKNOWN ? "Unknown"
                        : well                                                ? "True"
                                                                              : "False";

    assert_int_equal(now.ms, NOW);
    return json_pack("{s:s, s:[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}]}", "healthStatus",
                     health_word(hub_scorer_health(s)), "conditions", "type", "Healthy", "status", "True",
                     "reason", "Answers", "message", "HTTP 200", "type", "Ready", "status", ready, "reason",
                     well ? "Ready" : "NotReady", "message", "for a reason");
}

bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i)
{
    (void)p;
    return g->left_out && i == ENTRY_WITHOUT_ROOM;
}

bool hub_masks_counted(const struct hub *h)
{
    return h->mask_counts;
}

void hub_mask_warning(char ret[MASK_WARNING_BYTES], const struct hub *h, size_t i, bool near)
{
    assert_false(near); /* would look at all clusters for each mask */
    (void)snprintf(ret, MASK_WARNING_BYTES, "%s", h->mask_counts[i].clusters ? "" : "no cluster matches");
}

uint64_t report_score(struct str score_name)
{
    uint64_t h = 5381;

    for (size_t i = 0; i < score_name.n; i++)
        h = h * 33 + (unsigned char)score_name.p[i];
    return h;
}

const struct report_cell *report_find(const struct report *r, uint64_t score)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->cells[i].score == score)
            return &r->cells[i];
    return NULL;
}

const char *report_error(const struct report *r, const struct report_cell *c)
{
    return c->error ? r->errors[c->error - 1] : "";
}

bool report_cell_fails(const struct report_cell *c)
{
    return c->state == SCORER_FAILING || c->state == SCORER_STALE || c->placement;
}

bool report_cell_scores(const struct report_cell *c)
{
    return !report_cell_fails(c) && (c->state == SCORER_OK || c->state == SCORER_EMPTY);
}

static inline mono_ms fixed_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){now_mono};
}

static inline unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW};
}

static const struct clock fixed_clock = {fixed_mono, fixed_wall};

/* ---- What there is ---- */

struct world {
    struct hub hub;
    struct kube_watch watches[HUB_KINDS];
    struct kube_lease lease;
    struct plan plan;
    struct hub_scorer *by_age[MOST_SCORERS];
    uint64_t entry_scores[MOST_SCORERS];
};

static inline struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_int_equal(loop_new(&w->hub.o.loop, &fixed_clock), 0);
    w->hub.o.namespace = "open-cluster-management";
    w->hub.o.agent_namespace = "dynamic-scoring";
    w->hub.o.identity = "controller-7f9c-abcde_1234";
    for (size_t i = 0; i < ARRAY_SIZE(w->watches); i++)
        w->watches[i].synced = true;
    for (size_t i = 0; i < HUB_KINDS; i++)
        w->hub.watches[i].watch = &w->watches[i];
    w->lease.holder = w->hub.o.identity;
    w->hub.lease = &w->lease;
    w->hub.leading = true;
    w->hub.by_age = w->by_age;
    w->hub.entry_scores = w->entry_scores;
    w->hub.plan = &w->plan;
    w->hub.started_ms = NOW - 11100000;
    w->hub.config.object = json_pack("{s:{s:s}}", "metadata", "name", HUB_CONFIG);
    return w;
}

static inline void cluster_free(struct hub_cluster *c)
{
    free((void *)(uintptr_t)c->group);
    free(c->report.cells);
    free(c->report.problem);
    for (size_t i = 0; i < REPORT_MAX_ERRORS; i++)
        free(c->report.errors[i]);
    free(c->report.errors);
    free(c->unavailable);
    free(c->name);
    free(c);
}

static inline struct world *world_free(struct world *w)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&w->hub.clusters, &at));)
        cluster_free(c);
    map_done(&w->hub.clusters);
    for (size_t i = 0; i < w->hub.n_scorers; i++) {
        json_decref(w->by_age[i]->object);
        free(w->by_age[i]->name);
        free(w->by_age[i]->effective.score_name);
        buf_done(&w->by_age[i]->effective.text);
        free(w->by_age[i]->probe);
        free(w->by_age[i]);
    }
    map_done(&w->hub.scorers);
    map_done(&w->hub.other_configs);
    json_decref(w->hub.config.object);
    (void)loop_free(w->hub.o.loop);
    free(w);
    return NULL;
}

DEFINE_CLEANUP(struct world, world_free)
#define WORLD(name) CLEANUP(cleanup_world_free) struct world *name = world_new()

static inline void put_summary(struct buf *b, const char *score_name)
{
    CLEANUP(cleanup_free) char *text = NULL;
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:i}", "name", score_name, "scoreName",
                          score_name, "sourceType", "Prometheus", "sourceEndpoint",
                          "http://user:hunter2@prometheus.monitoring:9090/api/v1/query_range", "sourceQuery",
                          "sum by (node) (rate(node_cpu_seconds_total{mode!=\"idle\"}[5m]))", "sourceRange",
                          3600, "sourceStep", 60, "scoringEndpoint", "http://scorer.example:8000/scoring",
                          "scoringEndpointAuthName", "scorer-token", "scoringEndpointAuthKey", "token",
                          "scoringInterval", 60);

    if (o)
        text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    assert_non_null(text);
    assert_int_equal(buf_puts(b, text), 0);
}

/* A healthy scorer in Full mode that has a place in the plan. */
static inline struct hub_scorer *add_scorer(struct world *w, const char *name, const char *score_name)
{
    struct hub_scorer *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->hub = &w->hub;
    s->name = strdup(name);
    s->has_spec = true;
    s->spec.mode = SYNC_FULL;
    s->entry = w->hub.n_entries++;
    s->effective.score_name = strdup(score_name);
    w->entry_scores[s->entry] = report_score(str_of(score_name));
    s->effective.source = CONFIG_FROM_API;
    s->effective.interval_ms = 60000;
    buf_init(&s->effective.text, 1 << 20);
    put_summary(&s->effective.text, "my_score");
    s->probe = calloc(1, sizeof(*s->probe));
    assert_non_null(s->probe);
    s->probe->status = (struct probe_status){
        .health = HEALTH_ACTIVE,
        .probe = {true, true, 0, "Healthy", "HTTP 200", 0.0031, NOW - 12000},
        .config = {true, true, 0, "Synced", "", 0.0042, NOW - 12000},
        .next_ms = NOW + 18000,
    };
    w->by_age[w->hub.n_scorers++] = s;
    map_set(&w->hub.scorers, s->name, s);
    return s;
}

static inline void fail_probe(struct hub_scorer *s, enum probe_health health, const char *reason,
                              const char *message)
{
    struct probe_part *p = &s->probe->status.probe;

    s->probe->status.health = health;
    p->ok = false;
    p->failures = 4;
    (void)snprintf(p->reason, sizeof(p->reason), "%s", reason);
    (void)snprintf(p->message, sizeof(p->message), "%s", message);
}

/* A cluster that has the first `n` entries, all applied, none reported on. Add the scorers first. */
static inline struct hub_cluster *add_cluster(struct world *w, const char *name, size_t n)
{
    struct hub_cluster *c = calloc(1, sizeof(*c));
    struct plan_group *g = calloc(1, sizeof(*g) + 4 * sizeof(uint64_t));

    assert_non_null(c);
    assert_non_null(g);
    g->bytes = 900 * n + 2;
    g->scorers = n;
    for (size_t i = 0; i < n; i++)
        g->set[i / 64] |= (uint64_t)1 << (i % 64);
    c->hub = &w->hub;
    c->group = g;
    c->name = strdup(name);
    c->managed = true;
    c->work =
        (struct work_found){.exists = true, .ours = true, .frame = true, .applied = true, .available = true};
    c->report.cells = calloc(MOST_SCORERS, sizeof(struct report_cell));
    c->report.errors = calloc(REPORT_MAX_ERRORS, sizeof(char *));
    assert_non_null(c->report.cells);
    assert_non_null(c->report.errors);
    map_set(&w->hub.clusters, c->name, c);
    w->hub.totals.managed++;
    w->hub.totals.up_to_date++;
    w->hub.totals.works++;
    return c;
}

/* What the cluster's agent says of the scorer. */
static inline void add_report(struct hub_cluster *c, const struct hub_scorer *s, enum scorer_state state,
                              const char *error)
{
    struct report_cell *cell = &c->report.cells[c->report.n++];

    *cell =
        (struct report_cell){.score = report_score(str_of(s->effective.score_name)), .state = (uint8_t)state};
    c->report.exists = c->report.config_ok = true;
    for (uint16_t i = 0; error && cell->error == 0 && i < REPORT_MAX_ERRORS; i++)
        if (!c->report.errors[i]) {
            c->report.errors[i] = strdup(error);
            cell->error = (uint16_t)(i + 1);
        }
}

static inline void put_behind(struct hub_cluster *c, int64_t ms, unsigned failures, const char *why)
{
    c->behind = true;
    c->behind_since = (mono_ms){now_mono - ms};
    c->write.failures = failures;
    (void)snprintf(c->write.trouble, sizeof(c->write.trouble), "%s", why);
}

static inline void not_applied(struct hub_cluster *c, const char *why)
{
    c->work.applied = false;
    (void)snprintf(c->work.why, sizeof(c->work.why), "%s", why);
}

/* ---- Looking at what was written ---- */

static inline void render(struct world *w, int (*fn)(struct hub *, const struct list_query *, struct buf *),
                          const struct list_query *q, struct buf *into)
{
    const struct list_query all = list_query_all();

    buf_truncate(into, 0);
    assert_int_equal(fn(&w->hub, q ? q : &all, into), 0);
    assert_int_equal(buf_putc(into, '\0'), 0);
    into->n--;
}

static inline void render_one(struct world *w,
                              int (*fn)(struct hub *, const char *, const struct list_query *, struct buf *),
                              const char *name, const struct list_query *q, struct buf *into)
{
    const struct list_query all = list_query_all();

    buf_truncate(into, 0);
    assert_int_equal(fn(&w->hub, name, q ? q : &all, into), 0);
    assert_int_equal(buf_putc(into, '\0'), 0);
    into->n--;
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
