/* Owns which clusters have the agent's ManagedClusterAddOn, and since when the others lack it. Loop
 * thread. Nothing here schedules or writes; written/sweep.c deletes what an agent that has gone has left
 * on the hub.
 *
 * Where any cluster has such an add-on, agents are installed by add-ons: a ManifestWork for a cluster
 * without one could not be applied. Such a cluster is not selected once its add-on has been absent for ten
 * minutes, or at once if it never had one: Open Cluster Management deletes and recreates the add-ons of
 * clusters that are in no PlacementDecision for a moment.
 *
 * Nothing is withdrawn while add-ons cannot be listed, or where no cluster has one. */
#include "controller/hub/observed/addons.h"

#include "controller/hub/observed/change.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"

enum { ADDON_GRACE_MS = 10 * 60 * 1000 };

unsigned addons_see(struct addons *a, const char *cluster, bool exists, mono_ms now)
{
    char *known = map_get(&a->present, cluster);

    if (exists == (known != NULL))
        return CHANGE_NONE;
    if (!exists) {
        free(map_take(&a->present, cluster));
    } else {
        if (!a->present.n)
            a->since = now;
        known = xstrdup(cluster);
        map_set(&a->present, known, known);
    }
    return CHANGE_PLAN;
}

void addons_note_gap(struct addons *a, mono_ms now)
{
    a->since = now;
}

/* Whether absence means anything. */
static bool addons_are_used(const struct addons *a, const struct kube_watch *watch)
{
    enum kube_verdict refused = kube_watch_refused(watch);

    return kube_watch_synced(watch) && refused != KUBE_NO_KIND && refused != KUBE_FORBIDDEN &&
           a->present.n > 0;
}

static void addons_note_due(struct addons *a, mono_ms at)
{
    if (!a->due.ms || mono_before(at, a->due))
        a->due = at;
}

/* A cluster without an add-on. What has been withdrawn stays so until the add-on is back. */
static void addons_review_absent(struct addons *a, struct hub_cluster *c, const struct configs *configs,
                                 mono_ms now)
{
    mono_ms since;

    if (c->addon == ADDON_GONE)
        return;
    if (c->work.exists && configs_own_work(configs, &c->work))
        c->had_addon = true; /* an earlier process has seen it */
    if (!c->addon_gone_at.ms)
        c->addon_gone_at = now;
    since = mono_before(c->addon_gone_at, a->since) ? a->since : c->addon_gone_at;
    if (mono_diff(since, now) >= ADDON_GRACE_MS) {
        c->addon = ADDON_GONE;
        return;
    }
    c->addon = c->had_addon ? ADDON_PRESENT : ADDON_NEVER;
    addons_note_due(a, mono_add(since, ADDON_GRACE_MS));
}

bool addons_review(struct addons *a, const struct kube_watch *watch, struct clusters *clusters,
                   const struct configs *configs, mono_ms now)
{
    bool is_used = addons_are_used(a, watch);
    struct hub_cluster *c;

    a->due = (mono_ms){0};
    if (is_used && kube_watch_error(watch))
        return false;
    for (size_t at = 0; (c = map_next(&clusters->by_name, &at));) {
        if (!is_used || map_get(&a->present, c->name)) {
            c->addon = ADDON_PRESENT;
            c->had_addon |= is_used;
            c->addon_gone_at = (mono_ms){0};
        } else {
            addons_review_absent(a, c, configs, now);
        }
    }
    return true;
}

int64_t addons_due_ms(const struct addons *a, mono_ms now)
{
    return a->due.ms ? mono_diff(now, a->due) : INT64_MAX;
}

void addons_done(struct addons *a)
{
    char *name;

    for (size_t at = 0; (name = map_next(&a->present, &at));)
        free(name);
    map_done(&a->present);
}
