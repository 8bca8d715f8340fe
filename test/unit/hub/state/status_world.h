/* A hub by data alone: one healthy scorer on three clusters, for tests of statuses. */
#ifndef DS_TEST_STATUS_WORLD_H
#define DS_TEST_STATUS_WORLD_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/state.h"
#include "controller/hub/state/status.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORLD_CLUSTERS = 3 };

struct probe {
    struct probe_status status;
};

struct world {
    struct hub hub;
    struct hub_scorer scorer, other; /* the other one is a second scorer, in no list but by_age */
    struct hub_scorer *by_age[2];
    struct probe probe;
    struct hub_cluster clusters[WORLD_CLUSTERS];
    struct plan_group *group;
    struct report_cell cells[WORLD_CLUSTERS];
    char *errors[WORLD_CLUSTERS];
};

static const unix_ms noon = {1795262400123}; /* 2026-11-21T12:00:00.123Z */
#define NOON "2026-11-21T12:00:00Z"

const struct probe_status *probe_status(const struct probe *p)
{
    return &p->status;
}

static inline json_t *json_of(const char *text)
{
    json_t *o = json_loads(text, 0, NULL);

    assert_non_null(o);
    return o;
}

static inline void set_text(char *into, size_t size, const char *text)
{
    (void)snprintf(into, size, "%s", text);
}
#define SET_TEXT(into, text) set_text(into, sizeof(into), text)

/* Resets the totals. */
static inline void world_clusters_well(struct world *w)
{
    w->hub.totals = (struct hub_totals){
        .managed = 3, .up_to_date = 3, .applied = 3, .works = 3, .reporting = 3, .largest = 812};
}

static inline void world_clusters(struct world *w)
{
    static char *const names[WORLD_CLUSTERS] = {"c1", "c2", "c3"};

    w->group = calloc(1, sizeof(*w->group) + sizeof(w->group->set[0]));
    w->group->set[0] = 1;
    for (size_t i = 0; i < WORLD_CLUSTERS; i++) {
        struct hub_cluster *c = &w->clusters[i];
        *c = (struct hub_cluster){
            .name = names[i], .managed = true, .group = w->group, .work = {.exists = true, .applied = true}};
        map_set(&w->hub.clusters, c->name, c);
    }
}

static inline void world_scorer(struct world *w)
{
    struct hub_scorer *s = &w->scorer;

    s->hub = &w->hub;
    s->name = (char *)"energy";
    s->object =
        json_of("{\"metadata\":{\"name\":\"energy\",\"namespace\":\"ocm\",\"uid\":\"u\",\"generation\":7}}");
    s->has_spec = true;
    s->spec.mode = SYNC_FULL;
    s->probe = &w->probe;
    s->effective.score_name = (char *)"energy-score";
    s->effective.source = CONFIG_FROM_API;
    s->effective.interval_ms = 30000;
    s->effective.text = (struct buf){.p = (char *)"{}", .n = 2};
    s->tally = (struct tally){.selected = 3, .up_to_date = 3, .applied = 3, .scoring = 3};
    w->probe.status.health = HEALTH_ACTIVE;
    w->probe.status.probe = (struct probe_part){.asked = true, .ok = true, .reason = "Healthy"};
    w->probe.status.config = (struct probe_part){.asked = true, .ok = true, .reason = "Synced"};
    assert_int_equal(
        api_config_parse(&w->probe.status.synced,
                         STR("{\"name\":\"energy\",\"source\":{\"host\":\"http://p:9090\"},"
                             "\"scoring\":{\"params\":{\"name\":\"energy-score\",\"interval\":30}}}"),
                         (char[SPEC_WHY_BYTES]){0}),
        0);
    w->other = (struct hub_scorer){.hub = &w->hub, .name = (char *)"other", .probe = &w->probe};
    w->by_age[0] = s;
    w->by_age[1] = &w->other;
}

static inline struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    w->hub.o.namespace = "ocm";
    w->hub.o.probe = (struct probe_settings){.unhealthy_after = 3, .healthy_after = 2};
    w->hub.leading = w->hub.active = true;
    w->hub.config.object = json_of("{\"metadata\":{\"name\":\"" HUB_CONFIG "\",\"generation\":2}}");
    w->hub.config.has_masks = true;
    w->hub.by_age = w->by_age;
    w->hub.n_scorers = 2;
    w->hub.n_entries = 1;
    world_clusters(w);
    world_clusters_well(w);
    world_scorer(w);
    return w;
}

static inline void world_free(struct world *w)
{
    map_done(&w->hub.clusters);
    json_decref(w->hub.config.object);
    json_decref(w->hub.config.last_status.sent);
    json_decref(w->scorer.object);
    json_decref(w->scorer.last_status.sent);
    api_config_done(&w->probe.status.synced);
    free(w->group);
    free(w);
}

/* RFC 7386. */
static inline void merge(json_t *into, json_t *patch)
{
    const char *name;
    json_t *value;

    json_object_foreach(patch, name, value)
    {
        json_t *there = json_object_get(into, name);

        if (json_is_null(value)) {
            (void)json_object_del(into, name);
            continue;
        }
        if (!json_is_object(value)) {
            assert_int_equal(json_object_set_new(into, name, json_deep_copy(value)), 0);
            continue;
        }
        if (!json_is_object(there))
            assert_int_equal(json_object_set_new(into, name, there = json_object()), 0);
        merge(there, value);
    }
}

/* As the API server merges it. */
static inline void merge_status(json_t *object, json_t *status)
{
    json_t *patch = json_pack("{s:O}", "status", status);

    merge(object, patch);
    json_decref(patch);
}

static inline void assert_json_equal(const json_t *a, const json_t *b)
{
    char *x = json_dumps(a, JSON_SORT_KEYS | JSON_ENCODE_ANY),
         *y = json_dumps(b, JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(cstr(x), cstr(y));
    free(x);
    free(y);
}

/* A condition as "True Healthy: the scoring API responds". */
static inline const char *condition_text(const json_t *status, const char *type)
{
    static char text[2048];
    const json_t *c = kube_condition(status, type);

    (void)snprintf(text, sizeof(text), "%s %s: %s", cstr(kube_str(c, "status", NULL)),
                   cstr(kube_str(c, "reason", NULL)), cstr(kube_str(c, "message", NULL)));
    return text;
}

static inline void assert_condition(const json_t *status, const char *type, const char *beginning,
                                    const char *piece)
{
    const char *text = condition_text(status, type);

    if (strncmp(text, beginning, strlen(beginning)) != 0 || !strstr(text, piece))
        fail_msg("%s is \"%s\", not \"%s ... %s\"", type, text, beginning, piece);
}

/* ---- jansson's allocations, which oom.h does not see ---- */

static long json_fails_in;

static inline void *json_malloc_or_not(size_t n)
{
    return --json_fails_in == 0 ? NULL : malloc(n);
}

/* Makes each allocation fail in turn: there is no status then, and nothing leaks. */
static inline void assert_survives_json_failures(json_t *(*make)(struct world *w), struct world *w)
{
    json_t *status;
    long n = 0;

    do {
        json_fails_in = ++n;
        json_set_alloc_funcs(json_malloc_or_not, free);
        status = make(w);
        json_set_alloc_funcs(malloc, free);
        if (json_fails_in <= 0)
            assert_null(status);
    } while (json_fails_in <= 0);
    assert_non_null(status);
    json_decref(status);
    assert_true(n > 20);
}

#endif
