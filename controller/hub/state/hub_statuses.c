#include "controller/hub/state/state.h"

#include "controller/hub/state/status.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/writer.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

enum {
    ACTIVE = 16,
    MIN_RETRY_MS = 1000,
    MAX_RETRY_MS = 60 * 1000,
    COUNTS_MS_PER_CLUSTER = 10,
    COUNTS_MAX_MS = 10000,
};

/* The parts of a scorer or a config that are needed here. */
struct subject {
    const struct kube_resource *resource;
    json_t *object;
    struct hub_config *config; /* NULL: a scorer */
    const struct hub_scorer *scorer;
    struct last_status *last;
};

static bool subject_find(struct hub *h, const char *key, struct subject *ret)
{
    const char *name = strchr(key, '/') + 1;
    bool is_scorer = strncmp(key, "scorer/", 7) == 0;
    struct hub_scorer *s = is_scorer ? hub_scorer_find(h, name) : NULL;
    struct hub_config *c = is_scorer ? NULL : hub_config_find(h, name);

    if (s)
        *ret = (struct subject){&kube_dynamicscorers, s->object, NULL, s, &s->last_status};
    else if (c)
        *ret = (struct subject){&kube_dynamicscoringconfigs, c->object, c, NULL, &c->last_status};
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
    since = mono_diff(s->last->status.written_at, loop_now(h->o.loop));
    pause = pause < COUNTS_MAX_MS ? pause : COUNTS_MAX_MS;
    return since < pause && status_equal_but_counts(wanted, s->last->sent) ? pause - since : 0;
}

/* Whether the watch has yet to show our last write, so that the object's state is unknown. */
static bool status_is_unseen(const struct subject *s)
{
    const struct last_status *l = s->last;

    return l->key && (kube_object_see(&l->status, s->object) == KUBE_SEEN_OLD ||
                      kube_object_see(&l->finalizer, s->object) == KUBE_SEEN_OLD);
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

static void status_take_answer(struct hub *h, const struct subject *s, const json_t *answer)
{
    struct last_status *l = s->last;

    json_decref(l->sent);
    json_decref(l->result);
    l->sent = TAKE_PTR(l->sending);
    l->result = json_incref(json_object_get(answer, "status"));
    status_events(h->events, s->object, s->resource->kind, l->before, l->sent);
}

static void status_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct hub *h = o->writer->arg;
    struct subject s;
    bool ok = a->verdict == KUBE_OK;

    if (!subject_find(h, o->key, &s))
        return;
    if (ok && o == &s.last->status)
        status_take_answer(h, &s, a->object);
    hub_count_reconcile(h, "status", ok && o->wait_ms < 0);
    kube_object_set_trouble(&s.last->status, ok ? "" : a->why);
    /* After a finalizer comes the status, once the watch has shown the version that it led to. */
    kube_object_end(o, ok || a->verdict == KUBE_NOT_FOUND, a->retry_after_ms);
}

static void status_prepare(struct hub *h, const char *key, const struct subject *s, json_t *status)
{
    struct last_status *l = s->last;

    if (!l->key) {
        l->key = xstrdup(key);
        kube_object_init(&l->status, &h->status, l->key);
        kube_object_init(&l->finalizer, &h->status, l->key);
    }
    json_decref(l->sending);
    l->sending = json_incref(status);
    json_decref(l->before);
    l->before = json_object_get(s->object, "status");
    /* Where a CRD has no conditions, each of them would cause an Event each time. */
    if (!kube_get(l->before, "conditions", NULL) && l->sent)
        l->before = l->sent;
    (void)json_incref(l->before);
}

/* status: NULL for finalizers. */
static int status_write(struct hub *h, const char *key, const struct subject *s, json_t *patch,
                        json_t *status)
{
    struct last_status *l = s->last;
    const struct kube_request rq = {
        .method = KUBE_MERGE_PATCH,
        .resource = s->resource,
        .namespace = h->o.namespace,
        .name = kube_name(s->object),
        .subresource = status ? "status" : NULL,
        .body = patch,
    };

    status_prepare(h, key, s, status);
    if (status)
        kube_object_call(&l->status, "status", &rq, l->status.written + !status_was_sent(s, status),
                         status_on_written);
    else
        kube_object_call(&l->finalizer, "finalizer", &rq,
                         object_is_deleting(s->object) ? l->finalizer.written + 2 : 1, status_on_written);
    return 1;
}

/* 1 when a write has been started, 0 when there is nothing to write. */
static int status_reconcile_finalizers(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *patch = NULL;
    int r = 0;

    if (s->config)
        patch = hub_config_finalizer_patch(h, s->config, &r);
    return patch ? status_write(h, key, s, patch, NULL) : r;
}

static int status_reconcile_status(struct hub *h, const char *key, const struct subject *s)
{
    json_auto_t *status = subject_status(h, s), *patch = NULL;
    int64_t wait_ms;

    if (!status_would_change(json_object_get(s->object, "status"), status) || status_is_stored(s, status))
        return 0;
    wait_ms = status_was_sent(s, status) ? 0 : status_counts_wait(h, s, status);
    if (wait_ms) {
        kube_queue_add_after(h->status.queue, key, wait_ms);
        return 0;
    }
    patch = json_pack("{s:O}", "status", status);
    return patch ? status_write(h, key, s, patch, status) : -ENOMEM;
}

static void status_work_on_key(void *arg, const char *key)
{
    struct hub *h = arg;
    struct subject s;
    int r;

    /* An unseen write is reconciled again when the watch shows it. */
    if (!h->active || !subject_find(h, key, &s) || status_is_unseen(&s)) {
        kube_queue_done(h->status.queue, key, true, -1);
        return;
    }
    r = status_reconcile_finalizers(h, key, &s);
    if (r == 0)
        r = status_reconcile_status(h, key, &s);
    if (r < 0)
        log_error("status not written", L_STR("object", key), L_ERR(r));
    if (r <= 0)
        kube_queue_done(h->status.queue, key, r == 0, -1);
}

void hub_statuses_new(struct hub *h)
{
    const struct kube_queue_options o = {.work = status_work_on_key,
                                         .arg = h,
                                         .kube = h->o.kube,
                                         .max_active = ACTIVE,
                                         .min_retry_ms = MIN_RETRY_MS,
                                         .max_retry_ms = MAX_RETRY_MS,
                                         .per_second = 10 * (h->o.api_qps / 4 + 1),
                                         .burst = 10 * (h->o.api_burst / 4 + 1)};

    h->status = (struct kube_writer){.kube = h->o.kube,
                                     .query = "fieldManager=dynamic-scoring-controller",
                                     .kind = "status",
                                     .detail = "object",
                                     .count = hub_count_write,
                                     .arg = h};
    h->status.queue = kube_queue_new(h->o.loop, &o);
}

void hub_statuses_cancel(struct hub *h)
{
    struct hub_config *c;
    size_t at = 0;

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
    h->status.queue = kube_queue_free(h->status.queue);
}
