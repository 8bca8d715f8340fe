/* Owns the writer of ManifestWorks and its queue; each write belongs to its cluster. Called by the
 * conductor with what the watch shows and after each plan, and by the queue when it is a cluster's turn.
 * On the loop; never waits. */
#include "controller/hub/written/works.h"

#include "controller/hub/follows/target.h"
#include "controller/hub/observed/change.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/written/account.h"
#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/base/trim.h"
#include "exporter/metric/metrics.h"

/* ---- One write ---- */

static struct hub_cluster *work_cluster(struct kube_object *o)
{
    return CONTAINER_OF(o, struct hub_cluster, write.object);
}

/* After a short absence of the API server a cluster is merely behind: it has not failed. */
static void work_set_failed(const struct works *w, struct hub_cluster *c, const struct kube_answer *a)
{
    if (a->verdict != KUBE_RETRY || kube_absence_ms(w->o->kube) >= KUBE_GRACE_MS)
        kube_object_set_error(&c->write.object, a->why);
}

static void work_finish(struct works *w, struct hub_cluster *c, bool ok, int64_t retry_after_ms)
{
    json_decref(TAKE_PTR(c->write.text));
    if (ok && c->write.object.wait_ms < 0)
        account_success(w->o, "works");
    else
        account_failure(w->o, "works");
    kube_object_end(&c->write.object, ok, retry_after_ms);
    w->note(w->arg, CHANGE_CLUSTER);
    works_reconcile(w, c);
    w->on_idle(w->arg, c);
}

/* The watch shows the very version that our write led to. */
static void work_check_stored(struct hub_cluster *c)
{
    if (!c->work.frame || c->work.hash != c->write.object.written.hash)
        kube_object_set_error(&c->write.object, "the ManifestWork was changed while it was written: "
                                                "check for a mutating webhook or another controller");
}

static void work_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct works *w = o->writer->arg;
    struct hub_cluster *c = work_cluster(o);
    bool ok = a->verdict == KUBE_OK && *o->version;

    if (a->verdict == KUBE_OK && !ok)
        kube_object_set_error(o, "the API server's answer has no resourceVersion");
    else if (!ok)
        work_set_failed(w, c, a);
    else if (strcmp(o->watched, o->version) == 0)
        work_check_stored(c);
    /* The answer is metadata alone: what was sent counts as what exists, until the watch shows it. */
    else if (!kube_object_is_overtaken(o))
        (void)cluster_take_work(
            c, (struct work_found){.exists = true, .ours = true, .frame = true, .hash = o->written.hash},
            kube_uid(a->object));
    if (a->verdict == KUBE_NOT_FOUND)
        (void)cluster_take_work(c, (struct work_found){0}, NULL);
    work_finish(w, c, ok, a->retry_after_ms);
}

static void work_on_deleted(struct kube_object *o, struct kube_answer *a)
{
    struct works *w = o->writer->arg;
    struct hub_cluster *c = work_cluster(o);
    bool ok = a->verdict == KUBE_OK || a->verdict == KUBE_NOT_FOUND;

    if (a->verdict == KUBE_NOT_FOUND)
        (void)cluster_take_work(c, (struct work_found){0}, NULL);
    else if (ok)
        /* The work agent's finalizer may keep it for a while, or the watch has shown its end. */
        c->work.deleting = c->work.exists;
    else
        work_set_failed(w, c, a);
    work_finish(w, c, ok, a->retry_after_ms);
}

static void work_write(struct works *w, struct hub_cluster *c)
{
    bool exists = c->work.exists;
    struct kube_request rq = {
        .method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
        .resource = &kube_manifestworks,
        .namespace = c->name,
        .name = exists ? WORK_NAME : NULL,
        .metadata_only = true,
    };
    int r;

    invariant(c->group && !c->write.text);
    r = desired_text(w->desired, c->group, w->o->agent_namespace, &c->write.text);
    if (r < 0) {
        kube_object_set_error(&c->write.object, strerror(-r));
        work_finish(w, c, false, -1);
        return;
    }
    rq.body_text[0] = exists ? WORK_PATCH : WORK_NEW;
    rq.body_text[1] = kube_as_text(c->write.text);
    kube_object_call(&c->write.object, exists ? KUBE_WRITE_PATCH : KUBE_WRITE_CREATE, &rq,
                     (struct kube_goal){KUBE_GOAL_STATE, c->group->hash}, work_on_written);
}

/* Only the one that is known to be ours: another program may have deleted it and made its own of that name.
 * By its uid alone, as the work agent keeps changing its status. */
static json_t *work_delete_options(const struct hub_cluster *c)
{
    json_t *body = json_object();

    kube_set_str(body, "apiVersion", "v1");
    kube_set_str(body, "kind", "DeleteOptions");
    if (c->work_uid)
        kube_set_str(kube_set_object(body, "preconditions"), "uid", c->work_uid);
    return body;
}

static void work_delete(struct hub_cluster *c)
{
    json_auto_t *body = work_delete_options(c);
    const struct kube_request rq = {.method = KUBE_DELETE,
                                    .resource = &kube_manifestworks,
                                    .namespace = c->name,
                                    .name = WORK_NAME,
                                    .body = body};

    c->write.object.written = KUBE_NO_GOAL; /* to create it again repeats nothing */
    kube_object_call(&c->write.object, KUBE_WRITE_DELETE, &rq, KUBE_NO_GOAL, work_on_deleted);
}

/* The queue's work. */
static void work_on_turn(void *arg, const char *name)
{
    struct works *w = arg;
    struct hub_cluster *c = clusters_find(&w->seen->clusters, name);

    /* A work that someone is deleting is created again once it is gone. */
    if (!c || !w->is_active || c->write.object.call || c->work.deleting ||
        cluster_is_in_sync(w->seen, w->desired->plan, c)) {
        kube_queue_done(w->writer.queue, name, true, -1);
        return;
    }
    if (cluster_target(w->seen, w->desired->plan, c) == TARGET_WORK)
        work_write(w, c);
    else
        work_delete(c);
}

/* ---- Fights ---- */

static bool works_are_contested(const struct works *w)
{
    const struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&w->seen->clusters.by_name, &at));)
        if (c->write.contested)
            return true;
    return false;
}

/* One Event for a whole fleet: the conditions name the clusters. */
static void work_on_fight(void *arg, struct kube_object *o)
{
    struct works *w = arg;
    struct hub_cluster *c = work_cluster(o);
    CLEANUP(cleanup_free) char *object = xasprintf("ManifestWork %s/" WORK_NAME, c->name);
    CLEANUP(cleanup_free) char *text = o->fight.is_on ? kube_fight_text(&o->fight, object) : NULL;

    if (text && !works_are_contested(w))
        account_fight(w->events, w->seen->configs.used.object, &kube_dynamicscoringconfigs, text);
    w->note(w->arg, cluster_set_text(&c->write.contested, text));
}

/* ---- Which works are written ---- */

enum { TRIM_MS = 2000 };

static void work_forgive(struct hub_cluster *c)
{
    c->write.object.failures = 0;
    free(TAKE_PTR(c->write.object.last_error));
}

/* It has become as it should be. */
static void work_end_lag(struct works *w, struct hub_cluster *c)
{
    int64_t lag_ms = mono_diff(c->write.late_since, loop_now(w->o->loop));

    if (cluster_target(w->seen, w->desired->plan, c) == TARGET_WORK)
        metric_observe(w->o->metrics, METRIC_HUB_DISTRIBUTION, LV_NONE, (double)lag_ms / 1000);
    /* Bodies and connections of a roll-out are free until the next one. */
    if (w->o->trim)
        trim_in(w->o->trim, w->o->loop, TRIM_MS);
    c->write.is_late = false;
}

void works_reconcile(struct works *w, struct hub_cluster *c)
{
    if (!w->is_active)
        return;
    if (cluster_is_in_sync(w->seen, w->desired->plan, c)) {
        if (c->write.is_late)
            work_end_lag(w, c);
        work_forgive(c);
        return;
    }
    if (!c->write.is_late)
        c->write.late_since = loop_now(w->o->loop);
    c->write.is_late = true;
    if (c->write.object.call) /* after it the cluster is reconciled anyway */
        return;
    if (c->work.exists)
        kube_queue_add(w->writer.queue, c->name);
    else /* a roll-out does not delay new clusters */
        kube_queue_add_urgent(w->writer.queue, c->name);
}

void works_reconcile_all(struct works *w)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&w->seen->clusters.by_name, &at));) {
        const struct kube_object *o = &c->write.object;

        /* Another writer undid other summaries: these need not wait. */
        if (o->undone && (!c->group || c->group->hash != o->written.hash))
            kube_queue_forget(w->writer.queue, c->name);
        works_reconcile(w, c);
    }
}

/* ---- What the watch shows ---- */

/* What counts of a write, to see whether an event has changed it. */
struct work_mark {
    struct work_found work;
    bool leaving, is_late, has_failed, has_error;
};

static struct work_mark work_mark(const struct hub_cluster *c)
{
    return (struct work_mark){.work = c->work,
                              .leaving = c->leaving,
                              .is_late = c->write.is_late,
                              .has_failed = c->write.object.failures > 0,
                              .has_error = c->write.object.last_error != NULL};
}

static bool work_mark_same(const struct work_mark *a, const struct work_mark *b)
{
    return work_found_same(&a->work, &b->work) && a->leaving == b->leaving && a->is_late == b->is_late &&
           a->has_failed == b->has_failed && a->has_error == b->has_error;
}

static unsigned work_shown(struct works *w, struct hub_cluster *c, const json_t *object,
                           enum report_news *ret_news)
{
    struct work_mark before = work_mark(c), after;
    enum kube_seen seen = kube_object_see(&c->write.object, object);
    unsigned changes = CHANGE_NONE;

    kube_object_watched(&c->write.object, object);
    if (seen != KUBE_SEEN_OLD)
        changes |= cluster_see_work(c, object, w->frame);
    if (seen == KUBE_SEEN_OWN)
        work_check_stored(c);
    *ret_news = cluster_see_report(c, object);
    c->leaving |= cluster_has_left(c, w->seen->watches[HUB_CLUSTERS]);
    works_reconcile(w, c);
    after = work_mark(c);
    return work_mark_same(&before, &after) ? changes : changes | CHANGE_CLUSTER;
}

static unsigned work_gone(struct works *w, struct hub_cluster *c)
{
    (void)cluster_take_work(c, (struct work_found){0}, NULL);
    kube_object_watched(&c->write.object, NULL); /* the answer to an earlier write does not bring it back */
    cluster_forget_report(c);
    works_reconcile(w, c);
    /* Without an add-on, its scores go next. */
    return c->addon == ADDON_PRESENT ? CHANGE_CLUSTER : CHANGE_CLUSTER | CHANGE_PLAN;
}

unsigned works_see(struct works *w, struct hub_cluster *c, const json_t *object, enum report_news *ret_news)
{
    *ret_news = REPORT_UNCHANGED;
    return object ? work_shown(w, c, object, ret_news) : work_gone(w, c);
}

void works_review(struct works *w)
{
    const struct kube_watch *watch = w->seen->watches[HUB_WORKS];
    const struct map *clusters = &w->seen->clusters.by_name;
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(clusters, &at));)
        c->leaving |= cluster_has_left(c, w->seen->watches[HUB_CLUSTERS]);
    /* If the watch lists anew after a work's creation and deletion, nobody tells of its end. */
    for (size_t at = 0; (c = map_next(clusters, &at));)
        if (c->work.exists && !c->write.object.call && kube_object_is_reported(&c->write.object, watch) &&
            !kube_watch_has(watch, c->name, WORK_NAME)) {
            w->note(w->arg, work_gone(w, c));
            w->on_idle(w->arg, c);
            at = 0; /* the map may have changed */
        }
}

/* ---- The beginning and the end ---- */

static void work_on_count(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    const struct works *w = arg;

    account_write(w->o, operation, a);
}

void works_begin(struct works *w)
{
    /* A quarter of the rate is on top, for clusters without a work. */
    const struct kube_queue_options queue = {.work = work_on_turn,
                                             .arg = w,
                                             .kube = w->o->kube,
                                             .max_active = 20,
                                             .min_retry_ms = 500,
                                             .max_retry_ms = 60 * 1000,
                                             .per_second = w->o->api_qps + w->o->api_qps / 4 + 1,
                                             .burst = w->o->api_burst + w->o->api_burst / 4 + 1};

    w->frame = work_frame(w->o->agent_namespace);
    w->writer = (struct kube_writer){.kube = w->o->kube,
                                     .queue = kube_queue_new(w->o->loop, &queue),
                                     .manager = "dynamic-scoring-controller",
                                     .kind = "ManifestWork",
                                     .detail = "cluster",
                                     .on_fight = work_on_fight,
                                     .count = work_on_count,
                                     .arg = w};
}

void works_start(struct works *w)
{
    w->is_active = true;
}

void works_stop(struct works *w)
{
    struct hub_cluster *c;
    size_t at = 0;

    w->is_active = false;
    while ((c = map_next(&w->seen->clusters.by_name, &at))) {
        c->write.is_late = false;
        work_forgive(c);
        free(TAKE_PTR(c->write.contested));
        kube_object_done(&c->write.object);
        json_decref(TAKE_PTR(c->write.text));
    }
}

void works_forget(struct works *w, const struct hub_cluster *c)
{
    kube_queue_forget(w->writer.queue, c->name);
}

void works_done(struct works *w)
{
    works_stop(w);
    w->writer.queue = kube_queue_free(w->writer.queue);
    json_decref(w->frame);
}
