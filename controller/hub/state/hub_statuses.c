#include "controller/hub/state/hub_statuses.h"

#include "controller/hub/state/hub_configs.h"
#include "controller/hub/state/hub_counters.h"
#include "controller/hub/state/hub_tally.h"
#include "controller/hub/state/status.h"
#include "controller/hub/state/writes.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/last_write.h"
#include "controller/kube/queue.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

enum {
    KEY_BYTES = 300,
    ACTIVE = 16,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 60 * 1000,
    COUNTS_MS_PER_CLUSTER = 10,
    COUNTS_MAX_MS = 10000,
    UNSEEN_MS = 10 * 1000,
    ERROR_BYTES = 768,
};

/* The parts of a scorer or a config that are needed here. */
struct subject {
    const struct kube_resource *resource;
    json_t *object;
    struct hub_config *config; /* NULL: a scorer */
    const struct hub_scorer *scorer;
    struct last_status *last;
    char *write_error; /* of ERROR_BYTES */
};

static bool subject_find(struct hub *h, const char *key, struct subject *ret)
{
    const char *name = strchr(key, '/') + 1;
    bool is_scorer = strncmp(key, "scorer/", 7) == 0;
    struct hub_scorer *s = is_scorer ? hub_scorer_find(h, name) : NULL;
    struct hub_config *c = is_scorer ? NULL : hub_config_find(h, name);

    if (s)
        *ret = (struct subject){&kube_dynamicscorers, s->object, NULL, s, &s->last_status, s->write_error};
    else if (c)
        *ret = (struct subject){
            &kube_dynamicscoringconfigs, c->object, c, NULL, &c->last_status, c->write_error};
    return s || c;
}

static json_t *subject_status(struct hub *h, const struct subject *s)
{
    unix_ms now = loop_wall(h->o.loop);

    hub_tally(h);
    return s->scorer ? status_of_scorer(s->scorer, now) : status_of_config(h, s->config, now);
}

/* ---- Whether there is anything to write ---- */

/* Milliseconds before new counts alone are written: during a roll-out to a large fleet they change every
 * second. */
static int64_t status_counts_wait(const struct hub *h, const struct subject *s, const json_t *wanted)
{
    int64_t pause = (int64_t)h->totals.managed * COUNTS_MS_PER_CLUSTER, since;

    if (!s->last->sent)
        return 0;
    since = mono_diff(s->last->status.at, loop_now(h->o.loop));
    pause = pause < COUNTS_MAX_MS ? pause : COUNTS_MAX_MS;
    return since < pause && status_equal_but_counts(wanted, s->last->sent) ? pause - since : 0;
}

/* Whether the watch has yet to show our last write, so that the object's state is unknown. Only for a
 * while: after a restore from a backup versions go back. */
static bool status_is_unseen(const struct hub *h, const struct subject *s)
{
    const struct last_status *l = s->last;
    mono_ms at = mono_before(l->status.at, l->finalizer.at) ? l->finalizer.at : l->status.at;

    return *l->version && mono_diff(at, loop_now(h->o.loop)) < UNSEEN_MS &&
           kube_version_newer(l->version, kube_version(s->object));
}

/* Times do not count: where a CRD has no conditions, they would start anew each time. */
static bool status_was_sent(const struct subject *s, const json_t *wanted)
{
    return s->last->sent && status_equal_but_times(wanted, s->last->sent);
}

/* Whether it was sent, and the object still has what the server stored of it. */
static bool status_is_stored(const struct subject *s, const json_t *wanted)
{
    return json_equal(s->last->result, json_object_get(s->object, "status")) && status_was_sent(s, wanted);
}

/* ---- Writing ---- */

/* One under way. It may outlive its object. */
struct hub_write {
    struct hub *hub;
    struct hub_write *next;
    struct kube_call *call;
    char key[KEY_BYTES];
    json_t *status; /* sent; NULL: finalizers */
    json_t *before; /* the object's status until then */
};

static void status_write_free(struct hub_write *w)
{
    struct hub_write **at = &w->hub->writes;

    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    (void)kube_cancel(w->call);
    json_decref(w->status);
    json_decref(w->before);
    free(w);
}

static void status_write_failed(const struct subject *s, const struct kube_answer *a)
{
    if (strcmp(s->write_error, a->why) != 0)
        log_warn("status not written", L_STR("kind", s->resource->kind), L_STR("name", kube_name(s->object)),
                 L_STR("err", a->why));
    (void)snprintf(s->write_error, ERROR_BYTES, "%s", a->why);
}

/* Returns how long to wait when another writer keeps undoing our writes, -1 otherwise. */
static int64_t status_write_succeeded(const struct subject *s, struct hub_write *w, json_t *answer)
{
    struct last_status *l = s->last;
    mono_ms now = loop_now(w->hub->o.loop);
    const char *kind = s->resource->kind, *name = kube_name(s->object);
    bool same;

    s->write_error[0] = '\0';
    (void)snprintf(l->version, sizeof(l->version), "%s", kube_version(answer));
    if (!w->status)
        return last_write_note(&l->finalizer, !object_is_deleting(s->object), now, kind, name);
    same = status_was_sent(s, w->status);
    json_decref(l->sent);
    json_decref(l->result);
    l->sent = json_incref(w->status);
    l->result = json_incref(json_object_get(answer, "status"));
    status_events(w->hub->events, s->object, kind, w->before, w->status);
    return last_write_note(&l->status, same, now, kind, name);
}

static void status_write_answered(void *arg, struct kube_answer *a)
{
    struct hub_write *w = arg;
    struct hub *h = w->hub;
    struct subject s;
    bool ok = a->verdict == KUBE_OK, found = subject_find(h, w->key, &s);
    int64_t wait_ms = a->retry_after_ms;

    w->call = NULL;
    hub_count_write(h, w->status ? "status" : "finalizer", a);
    if (found && ok) {
        wait_ms = status_write_succeeded(&s, w, a->object);
        ok = wait_ms < 0;
    } else if (found) {
        status_write_failed(&s, a);
    }
    hub_count_reconcile(h, "status", ok);
    /* After a finalizer comes the status, once the watch has shown the version that it led to. */
    kube_queue_done(h->status, w->key, ok || a->verdict == KUBE_NOT_FOUND, wait_ms);
    status_write_free(w);
}

static int status_write_start(struct hub *h, const char *key, const struct subject *s, json_t *patch,
                              json_t *status)
{
    struct hub_write *w = calloc(1, sizeof(*w));
    struct kube_request rq = {
        .method = KUBE_MERGE_PATCH,
        .resource = s->resource,
        .namespace = h->o.namespace,
        .name = kube_name(s->object),
        .subresource = status ? "status" : NULL,
        .body = patch,
        .query = "fieldManager=dynamic-scoring-controller",
    };
    int r;

    if (!w)
        return -ENOMEM;
    w->hub = h;
    (void)snprintf(w->key, sizeof(w->key), "%s", key);
    w->status = json_incref(status);
    w->before = json_incref(json_object_get(s->object, "status"));
    /* Where a CRD has no conditions, each of them would cause an Event each time. */
    if (!kube_get(w->before, "conditions", NULL) && s->last->sent) {
        json_decref(w->before);
        w->before = json_incref(s->last->sent);
    }
    r = kube_start(&w->call, h->o.kube, &rq, status_write_answered, w);
    if (r < 0) {
        status_write_free(w);
        return r;
    }
    w->next = h->writes;
    h->writes = w;
    return 1;
}

/* 1 when a write is under way, 0 when there is nothing to write. */
static int status_reconcile_finalizers(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *patch = NULL;
    int r = 0;

    if (s->config)
        patch = hub_config_finalizer_patch(h, s->config, &r);
    return patch ? status_write_start(h, key, s, patch, NULL) : r;
}

static int status_reconcile_status(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *status = subject_status(h, s), *patch = NULL;
    int64_t wait_ms;

    if (!status)
        return -ENOMEM;
    if (!status_would_change(json_object_get(s->object, "status"), status) || status_is_stored(s, status))
        return 0;
    wait_ms = status_was_sent(s, status) ? 0 : status_counts_wait(h, s, status);
    if (wait_ms)
        return kube_queue_add_after(h->status, key, wait_ms);
    patch = json_pack("{s:O}", "status", status);
    return patch ? status_write_start(h, key, s, patch, status) : -ENOMEM;
}

static void status_work_on_key(void *arg, const char *key)
{
    struct hub *h = arg;
    struct subject s;
    int r;

    /* An unseen write is reconciled again when the watch shows it. */
    if (!h->active || !subject_find(h, key, &s) || status_is_unseen(h, &s)) {
        kube_queue_done(h->status, key, true, -1);
        return;
    }
    r = status_reconcile_finalizers(h, key, &s);
    if (r == 0)
        r = status_reconcile_status(h, key, &s);
    if (r < 0)
        log_error("status not written", L_STR("object", key), L_ERR(r));
    if (r <= 0)
        kube_queue_done(h->status, key, r == 0, -1);
}

int hub_statuses_new(struct hub *h)
{
    const struct kube_queue_options o = {.work = status_work_on_key,
                                         .arg = h,
                                         .kube = h->o.kube,
                                         .max_active = ACTIVE,
                                         .min_retry_ms = MIN_RETRY_MS,
                                         .max_retry_ms = MAX_RETRY_MS,
                                         .per_second = 10 * (h->o.api_qps / 4 + 1),
                                         .burst = 10 * (h->o.api_burst / 4 + 1)};

    return kube_queue_new(&h->status, h->o.loop, &o);
}

void hub_statuses_cancel(struct hub *h)
{
    struct hub_config *c;
    size_t at = 0;

    while (h->writes) {
        kube_queue_done(h->status, h->writes->key, true, -1);
        status_write_free(h->writes);
    }
    /* Another controller writes them from now on. */
    for (size_t i = 0; i < h->n_scorers; i++)
        last_status_done(&h->by_age[i]->last_status);
    last_status_done(&h->config.last_status);
    while ((c = map_next(&h->other_configs, &at)))
        last_status_done(&c->last_status);
}

void hub_statuses_free(struct hub *h)
{
    hub_statuses_cancel(h);
    h->status = kube_queue_free(h->status);
}
