/* The ManifestWork of each cluster: created, patched and deleted by the queue, one call at a time for a
 * cluster. On the loop. */
#include "controller/hub/state/state.h"

#include "controller/kube/fight.h"
#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"
#include "exporter/base/log.h"

/* ---- Writing ManifestWorks ---- */

enum { BODY_MAX_BYTES = 4 << 20 };

/* Sets the text of the call: the same for all clusters of a group. */
static int cluster_set_text(struct hub_cluster *c)
{
    struct hub *h = c->hub;
    BUF_AUTO(summaries, BODY_MAX_BYTES);
    BUF_AUTO(suspended, BODY_MAX_BYTES);
    BUF_AUTO(text, BODY_MAX_BYTES);
    int r = 0;

    if (h->text_of != c->group) {
        plan_text(h->plan, c->group, false, &summaries);
        plan_text(h->plan, c->group, true, &suspended);
        r = buf_failed(&summaries) ?: buf_failed(&suspended);
        r = r ?: work_text(&text, h->o.agent_namespace, buf_str(&summaries), buf_str(&suspended));
        json_decref(h->text);
        h->text = r == 0 ? json_stringn_nocheck(text.p, text.n) : NULL;
        h->text_of = r == 0 ? c->group : NULL;
    }
    c->text = json_incref(h->text);
    return r;
}

/* ---- One write ---- */

/* Takes it away when nothing is known of it any more. */
static void cluster_remove_if_gone(struct hub *h, struct hub_cluster *c)
{
    if (c->managed || c->work.exists || c->write.call || c->addon_unavailable || c->addon_namespace)
        return;
    (void)map_take(&h->clusters, c->name);
    kube_queue_forget(h->works.queue, c->name);
    c->next_gone = h->gone;
    h->gone = c;
    hub_schedule_recount(h);
}

/* why: NULL for none. */
static void cluster_set_why(struct hub_cluster *c, char **field, const char *why)
{
    if (!why == !*field && strcmp(cstr(why), cstr(*field)) == 0)
        return;
    free(*field);
    *field = why ? xstrdup(why) : NULL;
    hub_schedule_recount(c->hub);
}

static void cluster_set_work(struct hub_cluster *c, struct work_found work, const char *why)
{
    c->work = work;
    cluster_set_why(c, &c->unapplied, why);
}

/* After a short absence of the API server a cluster is merely behind: it has not failed. */
static void work_set_failed(struct hub_cluster *c, const struct kube_answer *a)
{
    if (a->verdict != KUBE_RETRY || kube_absence_ms(c->hub->o.kube) >= KUBE_GRACE_MS)
        kube_object_set_trouble(&c->write, a->why);
}

static void work_finish(struct hub_cluster *c, bool ok, int64_t retry_after_ms)
{
    struct hub *h = c->hub;

    json_decref(TAKE_PTR(c->text));
    hub_count_reconcile(h, "works", ok && c->write.wait_ms < 0);
    kube_object_end(&c->write, ok, retry_after_ms);
    hub_schedule_recount(h);
    hub_cluster_reconcile(h, c);
    cluster_remove_if_gone(h, c);
}

/* The watch shows the very version that our write led to. */
static void work_check_stored(struct hub_cluster *c)
{
    if (!c->work.frame || c->work.hash != c->write.written.hash)
        kube_object_set_trouble(&c->write, "the ManifestWork was changed while it was written: "
                                           "check for a mutating webhook or another controller");
}

static void work_on_written(struct kube_object *o, struct kube_answer *a)
{
    struct hub_cluster *c = CONTAINER_OF(o, struct hub_cluster, write);
    bool ok = a->verdict == KUBE_OK && *o->version;

    if (a->verdict == KUBE_OK && !ok)
        kube_object_set_trouble(o, "the API server's answer has no resourceVersion");
    else if (!ok)
        work_set_failed(c, a);
    else if (strcmp(o->watched, o->version) == 0)
        work_check_stored(c);
    /* The answer is metadata alone: what was sent counts as what exists, until the watch shows it. */
    else if (!kube_object_is_overtaken(o))
        cluster_set_work(
            c, (struct work_found){.exists = true, .ours = true, .frame = true, .hash = o->written.hash},
            NULL);
    if (a->verdict == KUBE_NOT_FOUND)
        cluster_set_work(c, (struct work_found){0}, NULL);
    work_finish(c, ok, a->retry_after_ms);
}

static void work_on_deleted(struct kube_object *o, struct kube_answer *a)
{
    struct hub_cluster *c = CONTAINER_OF(o, struct hub_cluster, write);
    bool ok = a->verdict == KUBE_OK || a->verdict == KUBE_NOT_FOUND;

    if (a->verdict == KUBE_NOT_FOUND)
        cluster_set_work(c, (struct work_found){0}, NULL);
    else if (ok)
        /* The work agent's finalizer may keep it for a while, or the watch has shown its end. */
        c->work.deleting = c->work.exists;
    else
        work_set_failed(c, a);
    work_finish(c, ok, a->retry_after_ms);
}

static void work_write(struct hub_cluster *c)
{
    bool exists = c->work.exists;
    struct kube_request rq = {
        .method = exists ? KUBE_MERGE_PATCH : KUBE_CREATE,
        .resource = &kube_manifestworks,
        .namespace = c->name,
        .name = exists ? WORK_NAME : NULL,
        .metadata_only = true,
    };
    int r = cluster_set_text(c);

    if (r < 0) {
        kube_object_set_trouble(&c->write, strerror(-r));
        work_finish(c, false, -1);
        return;
    }
    rq.body_text[0] = exists ? WORK_PATCH : WORK_NEW;
    rq.body_text[1] = kube_as_text(c->text);
    kube_object_call(&c->write, exists ? KUBE_WRITE_PATCH : KUBE_WRITE_CREATE, &rq,
                     (struct kube_goal){KUBE_GOAL_STATE, c->group->hash}, work_on_written);
}

void hub_work_write(void *arg, const char *name)
{
    struct hub *h = arg;
    struct hub_cluster *c = map_get(&h->clusters, name);
    const struct kube_request deletion = {
        .method = KUBE_DELETE, .resource = &kube_manifestworks, .namespace = name, .name = WORK_NAME};

    /* A work that someone is deleting is created again once it is gone. */
    if (!c || !h->active || c->write.call || c->work.deleting || hub_cluster_in_sync(h, c)) {
        kube_queue_done(h->works.queue, name, true, -1);
        return;
    }
    if (hub_cluster_target(h, c) == TARGET_WORK) {
        work_write(c);
        return;
    }
    c->write.written = KUBE_NO_GOAL; /* to create it again repeats nothing */
    kube_object_call(&c->write, KUBE_WRITE_DELETE, &deletion, KUBE_NO_GOAL, work_on_deleted);
}

static bool works_are_contested(const struct hub *h)
{
    const struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        if (c->contested)
            return true;
    return false;
}

/* One Event for a whole fleet: the conditions name the clusters. */
void hub_work_on_fight(void *arg, struct kube_object *o)
{
    struct hub *h = arg;
    struct hub_cluster *c = CONTAINER_OF(o, struct hub_cluster, write);
    CLEANUP(cleanup_free) char *object = xasprintf("ManifestWork %s/" WORK_NAME, c->name);
    CLEANUP(cleanup_free) char *text = o->fight.is_on ? kube_fight_text(&o->fight, object) : NULL;

    if (text && !works_are_contested(h))
        hub_event_of_fight(h, h->config.object, &kube_dynamicscoringconfigs, text);
    cluster_set_why(c, &c->contested, text);
}

static void work_forgive(struct hub_cluster *c)
{
    c->write.failures = 0;
    free(TAKE_PTR(c->write.trouble));
}

void hub_works_cancel(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at))) {
        c->behind = false;
        work_forgive(c);
        free(TAKE_PTR(c->contested));
        kube_object_done(&c->write);
        json_decref(TAKE_PTR(c->text));
    }
}

/* ---- Clusters ---- */

enum { UNAVAILABLE_BYTES = 256, TRIM_MS = 2000 };

/* A cluster with a work only has left: its ManagedCluster would have been listed. While ManagedClusters
 * cannot be watched it may also be new, with a work created by another controller. */
static bool cluster_has_left(const struct hub *h, const struct hub_cluster *c)
{
    const struct kube_watch *w = h->watches[HUB_CLUSTERS].watch;

    return !c->managed && kube_watch_synced(w) && !kube_watch_trouble(w) && !kube_watch_has(w, "", c->name);
}

void hub_cluster_reconcile(struct hub *h, struct hub_cluster *c)
{
    mono_ms now = loop_now(h->o.loop);

    if (!h->active)
        return;
    if (hub_cluster_in_sync(h, c)) {
        if (c->behind && hub_cluster_target(h, c) == TARGET_WORK)
            metric_observe(h->o.metrics, METRIC_HUB_DISTRIBUTION, LV_NONE,
                           (double)mono_diff(c->behind_since, now) / 1000);
        if (c->behind) /* bodies and connections of a roll-out are free until the next one */
            loop_trim_memory(h->o.loop, TRIM_MS);
        c->behind = false;
        work_forgive(c);
        return;
    }
    if (!c->behind)
        c->behind_since = now;
    c->behind = true;
    /* After a call under way the cluster is reconciled anyway. A roll-out does not delay new clusters. */
    if (!c->write.call && c->work.exists)
        kube_queue_add(h->works.queue, c->name);
    else if (!c->write.call)
        kube_queue_add_urgent(h->works.queue, c->name);
}

static struct hub_cluster *cluster_find_or_new(struct hub *h, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, name);

    if (c)
        return c;
    c = xcalloc(1, sizeof(*c));
    c->name = xstrdup(name);
    map_set(&h->clusters, c->name, c);
    c->hub = h;
    kube_object_init(&c->write, &h->works, c->name);
    return c;
}

/* ---- ManagedClusters and ManagedClusterAddOns ---- */

/* Of one that has just been created nothing is known yet: it has no such condition. */
static bool object_is_unavailable(const json_t *object, const char *condition, char why[UNAVAILABLE_BYTES])
{
    const json_t *available = kube_condition(kube_get(object, "status", NULL), condition);
    const char *status = kube_str(available, "status", NULL);

    kube_condition_why(available, why, UNAVAILABLE_BYTES);
    return status && strcmp(status, "True") != 0;
}

/* Where the add-on is installed, if not where its ConfigMap goes; NULL also while the add-on manager has not
 * said so. */
static const char *addon_other_namespace(const struct hub *h, const json_t *object)
{
    const char *namespace = cstr(kube_str(object, "status", "namespace", NULL));

    return *namespace && strcmp(namespace, h->o.agent_namespace) != 0 ? namespace : NULL;
}

void hub_addon_seen(struct hub *h, const char *cluster, json_t *object)
{
    char why[UNAVAILABLE_BYTES];
    bool unavailable = object_is_unavailable(object, "Available", why);
    const char *other_namespace = addon_other_namespace(h, object);
    struct hub_cluster *c =
        unavailable || other_namespace ? cluster_find_or_new(h, cluster) : map_get(&h->clusters, cluster);

    hub_addons_note(h, cluster, object != NULL);
    if (!c)
        return;
    cluster_set_why(c, &c->addon_unavailable, unavailable ? why : NULL);
    cluster_set_why(c, &c->addon_namespace, other_namespace);
    cluster_remove_if_gone(h, c);
}

void hub_managed_seen(struct hub *h, const char *cluster, json_t *object)
{
    struct hub_cluster *c = object ? cluster_find_or_new(h, cluster) : map_get(&h->clusters, cluster);
    bool leaving = !object || object_is_deleting(object);
    bool managed = kube_bool(object, "spec", "hubAcceptsClient", NULL) && !leaving;
    char why[UNAVAILABLE_BYTES];
    bool unavailable = object_is_unavailable(object, "ManagedClusterConditionAvailable", why);

    if (!c)
        return;
    cluster_set_why(c, &c->unavailable, unavailable ? why : NULL);
    if (c->managed != managed || c->leaving != leaving) {
        c->managed = managed;
        c->leaving = leaving;
        hub_schedule_plan(h);
        hub_schedule_recount(h);
        hub_cluster_reconcile(h, c);
    }
    cluster_remove_if_gone(h, c);
}

/* ---- ManifestWorks ---- */

/* Whether anything but times has changed. */
static bool cluster_read_report(struct hub_cluster *c, const json_t *object)
{
    struct str text = work_feedback(object);
    uint64_t hash = text.n ? hash_bytes(text) : 0;
    struct report report;
    bool changed;
    int r;

    if (c->report.hash == hash)
        return false;
    r = report_parse(&report, text);
    if (r < 0) {
        log_warn("agent's report not read, the last one stays active", L_STR("cluster", c->name), L_ERR(r));
        c->report.hash = hash; /* not to be read again */
        return false;
    }
    changed = c->has_expired_score || !report_same(&c->report, &report);
    report_done(&c->report);
    c->report = report;
    return changed;
}

static void work_shown(struct hub *h, struct hub_cluster *c, const json_t *object)
{
    const struct hub_cluster before = *c;
    char why[WORK_WHY_BYTES];
    struct work_found work;
    enum kube_seen seen = kube_object_see(&c->write, object);
    bool changed;

    kube_object_watched(&c->write, object);
    hub_decisions_note_work(h, c, object);
    if (seen != KUBE_SEEN_OLD) {
        work_look(&work, object, h->frame, why);
        cluster_set_work(c, work, *why ? why : NULL);
    }
    if (seen == KUBE_SEEN_OWN)
        work_check_stored(c);
    changed = cluster_read_report(c, object);
    c->leaving |= cluster_has_left(h, c);
    hub_cluster_reconcile(h, c);
    /* Some agent of a large fleet always reports new times only: counting for each would never end. */
    if (changed || !work_found_same(&before.work, &c->work) || before.leaving != c->leaving ||
        before.behind != c->behind || !before.write.failures != !c->write.failures ||
        !before.write.trouble != !c->write.trouble)
        hub_schedule_recount(h);
}

static void work_gone(struct hub *h, struct hub_cluster *c)
{
    cluster_set_work(c, (struct work_found){0}, NULL);
    kube_object_watched(&c->write, NULL); /* the answer to an earlier write does not bring it back */
    report_done(&c->report);
    hub_schedule_recount(h);
    hub_cluster_reconcile(h, c);
    if (c->addon != ADDON_PRESENT) /* its scores go next */
        hub_schedule_plan(h);
    cluster_remove_if_gone(h, c);
}

void hub_work_seen(struct hub *h, const char *cluster, json_t *object)
{
    struct hub_cluster *c = object ? cluster_find_or_new(h, cluster) : map_get(&h->clusters, cluster);

    if (object)
        work_shown(h, c, object);
    else if (c)
        work_gone(h, c);
}

void hub_clusters_review(struct hub *h)
{
    const struct kube_watch *w = h->watches[HUB_WORKS].watch;
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        c->leaving |= cluster_has_left(h, c);
    /* If the watch lists anew after a work's creation and deletion, nobody tells of its end. */
    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        if (c->work.exists && !c->write.call && kube_watch_passed(w, &c->write) &&
            !kube_watch_has(w, c->name, WORK_NAME)) {
            work_gone(h, c);
            at = 0; /* the map may have changed */
        }
}

void hub_clusters_free(struct hub *h)
{
    struct hub_cluster *c;

    hub_works_cancel(h);
    h->works.queue = kube_queue_free(h->works.queue);
    for (size_t at = 0; (c = map_next(&h->clusters, &at)); h->gone = c)
        c->next_gone = h->gone;
    hub_clusters_free_gone(h);
    map_done(&h->clusters);
}
