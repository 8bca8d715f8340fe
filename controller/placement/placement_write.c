/* The calls for one object: create, get its owner, claim it, patch its status, delete. */
#include "controller/placement/placement_internal.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/last_write.h"
#include "controller/kube/verdict.h"
#include "controller/placement/name.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>

enum { FOREIGN_RETRY_MS = 300000 }; /* between checks whether a foreign object is gone */

static void write_next(struct slot *s);

/* Logs when a trouble begins and when it ends. */
static void write_set_trouble(struct slot *s, const char *text)
{
    bool was = s->trouble[0] != '\0';

    if (strcmp(s->trouble, text) == 0)
        return;
    (void)snprintf(s->trouble, sizeof(s->trouble), "%s", text);
    if (*text)
        log_warn("AddOnPlacementScore not written", L_STR("object", s->object), L_STR("err", text));
    else if (was)
        log_info("AddOnPlacementScore written again", L_STR("object", s->object));
}

static void write_count_call(const struct slot *s, const char *operation, const struct kube_answer *a)
{
    struct metrics *m = s->placement->o.metrics;

    metric_add(m, METRIC_PLACEMENT_WRITES, LV(operation, kube_verdict_word(a->verdict)), 1);
    metric_observe(m, METRIC_PLACEMENT_DURATION, LV(operation), a->seconds);
}

static void write_done(struct slot *s, bool ok, int64_t retry_after_ms)
{
    placement_update_metrics(s->placement);
    kube_queue_done(s->placement->queue, s->object, ok, retry_after_ms);
}

static void write_failed(struct slot *s, const struct kube_answer *a)
{
    write_set_trouble(s, a->why);
    write_done(s, false, a->retry_after_ms);
}

/* Starts a call. Without memory it counts as failed and is retried. */
static void write_call(struct slot *s, struct kube_request rq, kube_done_fn done)
{
    struct placement *p = s->placement;
    int r;

    rq.resource = &kube_addonplacementscores;
    rq.namespace = p->o.cluster_name;
    r = (rq.method == KUBE_CREATE || rq.method == KUBE_MERGE_PATCH) && !rq.body
            ? -ENOMEM
            : kube_start(&s->call, p->o.hub, &rq, done, s);
    if (r < 0) {
        write_set_trouble(s, strerror(-r));
        write_done(s, false, -1);
    }
}

static void write_leave_alone(struct slot *s, const char *owner)
{
    struct placement *p = s->placement;
    char why[768];

    (void)snprintf(why, sizeof(why),
                   "%s/%s was created by %s and is left alone; delete it%s, or choose another scoreName",
                   p->o.cluster_name, s->object, *owner ? owner : "another program",
                   *owner ? "" : ", adopt it with --adopt-unowned-scores");
    s->foreign = true;
    s->exists = false;
    write_set_trouble(s, why);
    if (kube_queue_add_after(p->queue, s->object, FOREIGN_RETRY_MS) < 0)
        log_debug("AddOnPlacementScore not checked again: out of memory", L_STR("object", s->object));
    write_done(s, true, -1);
}

static void write_on_adopted(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;

    s->call = NULL;
    write_count_call(s, "adopt", a);
    if (a->verdict != KUBE_OK) {
        write_failed(s, a);
        return;
    }
    log_info("AddOnPlacementScore adopted", L_STR("object", s->object));
    s->exists = true;
    s->foreign = false;
    if (s->scorer) /* its last scores are known now */
        placement_refresh(s->placement, s);
    write_next(s);
}

static void write_claim(struct slot *s, const char *version, kube_done_fn done)
{
    json_t *body = slot_claim_body(s, &s->placement->o, version);

    write_call(s,
               (struct kube_request){
                   .method = KUBE_MERGE_PATCH, .name = s->object, .body = body, .metadata_only = true},
               done);
    json_decref(body);
}

/* Its scores count until the first round has succeeded. Those without an end get one. */
static void write_adopt(struct slot *s, const json_t *object)
{
    slot_learn(s, object);
    if (!s->found_until_ms)
        s->found_until_ms = loop_wall(kube_loop(s->placement->o.hub)).ms + s->life_ms;
    write_claim(s, kube_version(object), write_on_adopted);
}

static void write_not_ours(struct slot *s, const json_t *object)
{
    char owner[OWNER_BYTES];
    bool owned = placement_owner(object, owner);

    if (!owned && s->placement->o.adopt_unowned && s->scorer)
        write_adopt(s, object);
    else
        write_leave_alone(s, owner);
}

/* Without the right to do so, its scores are written all the same. */
static void write_on_labelled(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;

    s->call = NULL;
    write_count_call(s, "label", a);
    if (a->verdict == KUBE_NOT_FOUND) {
        s->exists = false;
        write_done(s, false, -1);
    } else if (a->verdict == KUBE_FORBIDDEN) {
        log_warn("label not restored, changes by other writers go unnoticed", L_STR("object", s->object),
                 L_STR("err", a->why));
        write_next(s);
    } else if (a->verdict != KUBE_OK) {
        write_failed(s, a);
    } else {
        log_info("label restored", L_STR("object", s->object));
        write_next(s);
    }
}

/* Without this check a new scorer would take over, and later delete, another program's object. */
static void write_on_owner(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;

    s->call = NULL;
    if (a->verdict == KUBE_NOT_FOUND) { /* gone meanwhile */
        s->exists = false;
        write_done(s, false, -1);
    } else if (a->verdict != KUBE_OK) {
        write_failed(s, a);
    } else if (!placement_is_ours(s->placement, a->object)) {
        write_not_ours(s, a->object);
    } else {
        slot_learn(s, a->object);
        s->exists = true;
        s->foreign = false;
        if (placement_is_labelled(a->object))
            write_next(s);
        else
            write_claim(s, NULL, write_on_labelled);
    }
}

static void write_on_created(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;

    s->call = NULL;
    write_count_call(s, "create", a);
    if (a->verdict == KUBE_EXISTS) {
        write_call(s, (struct kube_request){.method = KUBE_GET, .name = s->object}, write_on_owner);
    } else if (a->verdict != KUBE_OK) {
        write_failed(s, a);
    } else {
        s->exists = true;
        s->foreign = s->written = false;
        write_next(s);
    }
}

static void write_create(struct slot *s)
{
    json_t *body = slot_create_body(s, &s->placement->o);

    write_call(s, (struct kube_request){.method = KUBE_CREATE, .body = body}, write_on_created);
    json_decref(body);
}

/* Returns how long to wait when another writer keeps undoing our writes, -1 otherwise. */
static int64_t write_status_succeeded(struct slot *s, const json_t *answer)
{
    struct placement *p = s->placement;
    int64_t wait_ms = -1;

    s->written = true;
    s->written_hash = s->sent_hash;
    s->written_until_ms = s->sent_until_ms;
    (void)snprintf(s->written_version, sizeof(s->written_version), "%s", kube_version(answer));
    if (s->scorer)
        metric_set(p->o.metrics, METRIC_PLACEMENT_LAST_WRITE, LV(s->score_name),
                   (double)loop_wall(kube_loop(p->o.hub)).ms / 1000);
    write_set_trouble(s, "");
    if (s->overwritten)
        wait_ms = last_write_note(&s->last_repair, true, loop_now(kube_loop(p->o.hub)), "AddOnPlacementScore",
                                  s->object);
    s->overwritten = s->vanished || slot_is_overtaken(s);
    s->exists = !s->vanished;
    s->written = !s->overwritten;
    s->vanished = false;
    return wait_ms;
}

static void write_on_status(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;
    int64_t wait_ms;

    s->call = NULL;
    write_count_call(s, "status", a);
    if (a->verdict == KUBE_NOT_FOUND) {
        s->exists = s->written = s->vanished = false;
        write_done(s, false, -1);
        return;
    }
    if (a->verdict != KUBE_OK) {
        write_failed(s, a);
        return;
    }
    wait_ms = write_status_succeeded(s, a->object);
    if (wait_ms >= 0)
        write_done(s, false, wait_ms);
    else
        write_next(s); /* what has changed meanwhile */
}

static void write_status(struct slot *s)
{
    json_t *body = slot_status_body(s, &s->placement->o);

    s->sent_hash = s->hash;
    s->sent_until_ms = s->valid_until_ms;
    write_call(s,
               (struct kube_request){.method = KUBE_MERGE_PATCH,
                                     .name = s->object,
                                     .subresource = "status",
                                     .body = body,
                                     .metadata_only = true},
               write_on_status);
    json_decref(body);
}

static void write_on_deleted(void *arg, struct kube_answer *a)
{
    struct slot *s = arg;

    s->call = NULL;
    write_count_call(s, "delete", a);
    if (a->verdict != KUBE_OK && a->verdict != KUBE_NOT_FOUND) {
        write_failed(s, a);
        return;
    }
    log_info("AddOnPlacementScore deleted", L_STR("object", s->object));
    s->exists = s->written = s->vanished = false;
    write_next(s); /* its scorer may be back */
}

static void write_next(struct slot *s)
{
    struct placement *p = s->placement;

    if (!s->scorer && s->exists && !s->foreign) {
        write_call(s, (struct kube_request){.method = KUBE_DELETE, .name = s->object}, write_on_deleted);
    } else if (!s->scorer) {
        char object[OBJECT_NAME_MAX + 1];
        memcpy(object, s->object, sizeof(object));
        placement_remove(p, s);
        kube_queue_done(p->queue, object, true, -1);
    } else if (!slot_is_due(s, loop_wall(kube_loop(p->o.hub)))) {
        write_done(s, true, -1);
    } else if (!s->exists) {
        write_create(s);
    } else {
        write_status(s);
    }
}

void placement_work(void *arg, const char *object)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, object);

    if (!s || !p->may_write)
        kube_queue_done(p->queue, object, true, -1);
    else
        write_next(s);
}
