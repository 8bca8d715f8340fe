/* An active hub with a fake API server; objects are handed in as the watches would. */
#pragma once

#include "controller/hub/hub.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/observed.h"
#include "controller/kube/json.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/metric/metrics.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define HELD  ",\"finalizers\":[\"" HUB_FINALIZER "\"]"
#define OURS  "/apis/dynamic-scoring.open-cluster-management.io/v1alpha1/namespaces/hub-ns/"
#define WORKS "/apis/work.open-cluster-management.io/v1/namespaces/"

struct world {
    struct fake_kube *f;
    struct metrics *metrics;
    struct hub *hub;
};

static inline void push_empty_list(struct world *w, const char *path)
{
    static const char list[] = "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
    static const char stays[] = "                                        ";

    fake_push(w->f->server, (struct fake_answer){.body = list, .only_path = path});
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG_LATE, .body = stays, .only_path = path});
}

/* Of all kinds that the hub watches. */
static inline void push_empty_lists(struct world *w)
{
    push_empty_list(w, "/apis/dynamic-scoring.open-cluster-management.io/v1alpha1/dynamicscorers");
    push_empty_list(w, "/apis/dynamic-scoring.open-cluster-management.io/v1alpha1/dynamicscoringconfigs");
    push_empty_list(w, OURS "dynamicscorers?"); /* not their status */
    push_empty_list(w, OURS "dynamicscoringconfigs?");
    push_empty_list(w, "/apis/cluster.open-cluster-management.io/v1/managedclusters");
    push_empty_list(w, "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons");
    push_empty_list(w, "/apis/work.open-cluster-management.io/v1/manifestworks");
    push_empty_list(w, "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/hub-ns/placements");
    push_empty_list(w,
                    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/hub-ns/placementdecisions");
}

static inline void turn_until(struct world *w, bool (*ready)(struct world *w))
{
    for (unsigned i = 0; i < 4000 && !ready(w); i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    assert_true(ready(w));
}

/* All nine kinds are listed and watched: also those of other namespaces, which the hub does not wait for,
 * and whose requests would come in the middle of a test. */
static inline bool is_settled(struct world *w)
{
    return hub_self(w->hub).is_active && fake_requests(w->f->server) >= 2 * 9;
}

static inline int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct hub_options o = {
        .namespace = "hub-ns",
        .agent_namespace = "agents",
        .addon_name = "addon",
        .identity = "me",
        .probe = {.interval_ms = 600000, .timeout_ms = 5000, .unhealthy_after = 3, .healthy_after = 1},
        .api_qps = 100,
        .api_burst = 100,
    };

    assert_non_null(w);
    w->f = fake_kube_new();
    fake_default(w->f->server, (struct fake_answer){.body = "{}"});
    push_empty_lists(w);
    w->metrics = metrics_new(METRIC_OWNER_LOOP);
    o.loop = w->f->loop;
    o.http = w->f->http;
    o.kube = w->f->kube;
    o.metrics = w->metrics;
    w->hub = hub_new(&o);
    turn_until(w, is_settled);
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;

    w->hub = hub_free(w->hub);
    w->metrics = metrics_free(w->metrics);
    w->f = fake_kube_free(w->f);
    free(w);
    return 0;
}

/* What the hub has observed, of which a test may play a part. */
static inline struct observed *seen(struct world *w)
{
    return (struct observed *)(uintptr_t)hub_fleet(w->hub).seen;
}

/* ---- Objects as the watches would show them ---- */

static inline void show(struct world *w, enum hub_kind kind, const char *text)
{
    json_t *o = json_loads(text, 0, NULL);

    assert_non_null(o);
    hub_see(w->hub, kind, kube_name(o), o);
    json_decref(o);
}

static inline void show_cluster(struct world *w, const char *name)
{
    show(w, HUB_CLUSTERS,
         fake_kube_text(w->f, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"hubAcceptsClient\":true}}", name));
}

static inline void show_config(struct world *w, const char *more)
{
    show(w, HUB_CONFIGS,
         fake_kube_text(w->f, "{\"metadata\":{\"name\":\"" HUB_CONFIG "\",\"uid\":\"u\"%s},\"spec\":{}}",
                        more));
}

static inline void show_scorer(struct world *w)
{
    show(w, HUB_SCORERS,
         fake_kube_text(
             w->f,
             "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"generation\":1,\"creationTimestamp\":"
             "\"2026-01-01T00:00:00Z\"},\"spec\":{\"configURL\":\"%s\",\"source\":{\"type\":\"None\"},"
             "\"scoring\":{\"params\":{\"name\":\"score\",\"interval\":60}}}}",
             fake_url(w->f->server, "/config")));
}

/* The last write of a cluster's work; NULL when there is none. */
static inline const struct fake_request *written(struct world *w, const char *method, const char *cluster)
{
    const char *path = fake_kube_text(w->f, WORKS "%s/manifestworks", cluster);

    for (size_t i = fake_requests(w->f->server); i-- > 0;) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        if (strcmp(rq->method, method) == 0 && strncmp(rq->target, path, strlen(path)) == 0)
            return rq;
    }
    return NULL;
}

/* Advances the fake clock until the work is written. */
static inline const struct fake_request *wait_written(struct world *w, const char *method,
                                                      const char *cluster)
{
    for (unsigned i = 0; i < 4000 && !written(w, method, cluster); i++) {
        fake_kube_advance(w->f, 20);
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    }
    assert_non_null(written(w, method, cluster));
    return written(w, method, cluster);
}

/* The write's answer has been processed: on a busy machine it comes later than any number of turns. */
static inline void wait_answered(struct world *w, const char *cluster)
{
    const struct hub_cluster *c = clusters_find(&seen(w)->clusters, cluster);

    assert_non_null(c);
    for (unsigned i = 0; i < 4000 && c->write.object.call; i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    assert_null(c->write.object.call);
}

static inline void pass_time(struct world *w, int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 100) {
        fake_kube_settle(w->f);
        fake_kube_advance(w->f, 100);
        assert_int_equal(loop_turn(w->f->loop, 2), 0);
    }
}

static inline struct hub_cluster *cluster(struct world *w, const char *name)
{
    struct hub_cluster *c = clusters_find(&seen(w)->clusters, name);

    assert_non_null(c);
    return c;
}

/* What was written, as the watch would show it. */
static inline void show_work(struct world *w, const char *body, const char *name)
{
    json_t *o = json_loads(body, 0, NULL);

    assert_non_null(o);
    assert_int_equal(json_object_set_new(json_object_get(o, "metadata"), "namespace", json_string(name)), 0);
    hub_see(w->hub, HUB_WORKS, name, o);
    json_decref(o);
}
