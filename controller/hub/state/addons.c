/* Owns which clusters have the agent's ManagedClusterAddOn, and since when the others lack it; and deletes
 * what an agent that has gone has left on the hub. On the loop.
 *
 * Where any cluster has such an add-on, agents are installed by add-ons: a ManifestWork for a cluster without
 * one could not be applied. Such a cluster is not selected once its add-on has been absent for ten minutes,
 * or at once if it never had one: Open Cluster Management deletes and recreates the add-ons of clusters that
 * are in no PlacementDecision for a moment. When the ManifestWork is gone, the AddOnPlacementScores of this
 * add-on's agent are deleted, too, also those that were there at the start.
 *
 * Nothing is withdrawn while add-ons cannot be listed, or where no cluster has one. */
#include "controller/hub/state/state.h"

#include "controller/placement/slot.h"
#include "exporter/base/alloc.h"
#include "exporter/base/log.h"

enum { ADDON_GRACE_MS = 10 * 60 * 1000 };

/* ---- Who has an add-on ---- */

void hub_addons_note(struct hub *h, const char *cluster, bool exists)
{
    struct hub_addons *a = &h->addons;
    char *known = map_get(&a->present, cluster);

    if (exists == (known != NULL))
        return;
    if (!exists) {
        free(map_take(&a->present, cluster));
    } else {
        if (!a->present.n)
            a->since = loop_now(h->o.loop);
        known = xstrdup(cluster);
        map_set(&a->present, known, known);
    }
    hub_schedule_plan(h);
}

void hub_addons_note_gap(struct hub *h)
{
    h->addons.since = loop_now(h->o.loop);
    hub_schedule_plan(h);
}

/* Whether absence means anything. */
static bool addons_are_used(const struct hub *h)
{
    const struct kube_watch *w = h->watches[HUB_ADDONS].watch;
    enum kube_verdict refused = kube_watch_refused(w);

    return kube_watch_synced(w) && refused != KUBE_NO_KIND && refused != KUBE_FORBIDDEN &&
           h->addons.present.n > 0;
}

static void addons_note_due(struct hub *h, mono_ms at)
{
    if (!h->addons.due.ms || mono_before(at, h->addons.due))
        h->addons.due = at;
}

static void addons_sweep(struct hub *h, struct hub_cluster *c);

/* A cluster without an add-on. What has been withdrawn stays so until the add-on is back. */
static void addons_review_absent(struct hub *h, struct hub_cluster *c)
{
    mono_ms now = loop_now(h->o.loop), since;

    if (c->addon == ADDON_GONE) {
        addons_sweep(h, c);
        return;
    }
    if (c->work.exists && hub_work_is_ours(h, &c->work))
        c->had_addon = true; /* an earlier process has seen it */
    if (!c->addon_gone_at.ms)
        c->addon_gone_at = now;
    since = mono_before(c->addon_gone_at, h->addons.since) ? h->addons.since : c->addon_gone_at;
    if (mono_diff(since, now) < ADDON_GRACE_MS) {
        c->addon = c->had_addon ? ADDON_PRESENT : ADDON_NEVER;
        addons_note_due(h, mono_add(since, ADDON_GRACE_MS));
        return;
    }
    c->addon = ADDON_GONE;
    addons_sweep(h, c);
}

void hub_addons_review(struct hub *h)
{
    bool used = addons_are_used(h), blind = kube_watch_trouble(h->watches[HUB_ADDONS].watch);
    struct hub_cluster *c;

    h->addons.due = (mono_ms){0};
    for (size_t at = 0; (c = map_next(&h->clusters, &at));) {
        if (used && blind) /* nothing changes until there is news */
            continue;
        if (!used || map_get(&h->addons.present, c->name)) {
            c->addon = ADDON_PRESENT;
            c->is_swept = false;
            c->had_addon |= used;
            c->addon_gone_at = (mono_ms){0};
        } else {
            addons_review_absent(h, c);
        }
    }
}

int64_t hub_addons_due_ms(const struct hub *h)
{
    return h->addons.due.ms ? mono_diff(loop_now(h->o.loop), h->addons.due) : INT64_MAX;
}

/* ---- What is left of an agent ----
 *
 * One cluster at a time: a list of its scores, then one delete after the other. */

/* After the ManifestWork: while that is there, a running agent would write them again. */
static bool sweep_is_wanted(const struct hub *h, const struct hub_cluster *c)
{
    return h->active && c && c->managed && c->addon == ADDON_GONE && !c->work.exists && !c->write.call;
}

static void addons_sweep(struct hub *h, struct hub_cluster *c)
{
    if (c->is_swept || !sweep_is_wanted(h, c))
        return;
    c->is_swept = true;
    kube_queue_add(h->addons.queue, c->name);
}

static void sweep_end(struct hub *h, const struct kube_answer *failed)
{
    struct hub_addons *a = &h->addons;
    CLEANUP(cleanup_free) char *cluster = TAKE_PTR(a->cluster);

    if (failed)
        log_warn("AddOnPlacementScores of a cluster without the add-on not deleted",
                 L_STR("cluster", cluster), L_STR("err", failed->why));
    json_decref(TAKE_PTR(a->left));
    kube_queue_done(a->queue, cluster, !failed, failed ? failed->retry_after_ms : -1);
}

/* Whether it was written by an agent of our add-on, in whatever namespace of its cluster. */
static bool sweep_is_ours(const struct hub *h, const json_t *score)
{
    const char *owner = cstr(kube_annotation(score, PLACEMENT_OWNER)), *slash = strrchr(owner, '/');

    return slash && strcmp(slash + 1, h->o.addon_name) == 0 &&
           strcmp(cstr(kube_label(score, PLACEMENT_LABEL)), PLACEMENT_LABEL_VALUE) == 0;
}

static void sweep_next(struct hub *h);

static void sweep_on_deleted(void *arg, struct kube_answer *answer)
{
    struct hub *h = arg;
    json_t *list = kube_list(h->addons.left, "items", NULL);
    size_t last = json_array_size(list) - 1;

    h->addons.call = NULL;
    if (answer->verdict != KUBE_OK && answer->verdict != KUBE_NOT_FOUND) {
        sweep_end(h, answer);
        return;
    }
    log_info("AddOnPlacementScore deleted, as the cluster has no add-on", L_STR("cluster", h->addons.cluster),
             L_STR("object", kube_name(json_array_get(list, last))));
    (void)json_array_remove(list, last);
    sweep_next(h);
}

/* Only as it was listed: whoever has written it meanwhile is alive. */
static void sweep_delete(struct hub *h, const json_t *score)
{
    json_auto_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "kind", "DeleteOptions", "apiVersion", "v1", "preconditions",
                  "uid", kube_uid(score), "resourceVersion", kube_version(score));
    const struct kube_request rq = {.method = KUBE_DELETE,
                                    .resource = &kube_addonplacementscores,
                                    .namespace = h->addons.cluster,
                                    .name = kube_name(score),
                                    .body = body};

    h->addons.call = kube_start(h->o.kube, &rq, sweep_on_deleted, h);
}

/* Goes on from the end of the list, which loses what has been dealt with. */
static void sweep_next(struct hub *h)
{
    json_t *list = kube_list(h->addons.left, "items", NULL);

    while (json_array_size(list) && sweep_is_wanted(h, map_get(&h->clusters, h->addons.cluster))) {
        size_t last = json_array_size(list) - 1;
        const json_t *score = json_array_get(list, last);

        if (sweep_is_ours(h, score)) {
            sweep_delete(h, score);
            return;
        }
        (void)json_array_remove(list, last);
    }
    sweep_end(h, NULL);
}

static void sweep_on_listed(void *arg, struct kube_answer *answer)
{
    struct hub *h = arg;

    h->addons.call = NULL;
    if (answer->verdict == KUBE_OK) {
        h->addons.left = json_incref(answer->object);
        sweep_next(h);
    } else {
        sweep_end(h, answer->verdict == KUBE_NOT_FOUND || answer->verdict == KUBE_NO_KIND ? NULL : answer);
    }
}

/* The queue's work. */
static void sweep_work(void *arg, const char *cluster)
{
    struct hub *h = arg;
    const struct kube_request rq = {.method = KUBE_LIST,
                                    .resource = &kube_addonplacementscores,
                                    .namespace = cluster,
                                    .label_selector = PLACEMENT_LABEL "=" PLACEMENT_LABEL_VALUE,
                                    .metadata_only = true};

    if (!sweep_is_wanted(h, map_get(&h->clusters, cluster))) {
        kube_queue_done(h->addons.queue, cluster, true, -1);
        return;
    }
    h->addons.cluster = xstrdup(cluster);
    h->addons.call = kube_start(h->o.kube, &rq, sweep_on_listed, h);
}

void hub_addons_begin(struct hub *h)
{
    const struct kube_queue_options o = {.work = sweep_work, .arg = h, .kube = h->o.kube, .max_active = 1};

    h->addons.queue = kube_queue_new(h->o.loop, &o);
}

void hub_addons_cancel(struct hub *h)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        c->is_swept = false;
    if (!h->addons.call)
        return;
    h->addons.call = kube_cancel(h->addons.call);
    sweep_end(h, NULL);
}

void hub_addons_free(struct hub *h)
{
    char *name;

    hub_addons_cancel(h);
    h->addons.queue = kube_queue_free(h->addons.queue);
    for (size_t at = 0; (name = map_next(&h->addons.present, &at));)
        free(name);
    map_done(&h->addons.present);
}
