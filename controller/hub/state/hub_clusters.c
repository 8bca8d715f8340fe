#include "controller/hub/state/hub_clusters.h"

#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/hub_counters.h"
#include "controller/hub/state/hub_schedule.h"
#include "controller/hub/state/hub_tally.h"
#include "controller/hub/state/hub_works.h"
#include "controller/kube/client.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>

enum { UNAVAILABLE_BYTES = 256 };

struct hub_cluster *hub_cluster_free(struct hub_cluster *c)
{
    if (!c)
        return NULL;
    (void)kube_cancel(c->call);
    c->body = hub_body_unref(c->body);
    report_done(&c->report);
    free(c->unavailable);
    free(c->addon_unavailable);
    free(c->name);
    free(c);
    return NULL;
}

/* Frees it when nothing is known of it any more. */
static void cluster_free_if_gone(struct hub *h, struct hub_cluster *c)
{
    if (c->managed || c->work.exists || c->call || c->addon_unavailable)
        return;
    (void)map_take(&h->clusters, c->name);
    kube_queue_forget(h->works, c->name);
    hub_tally_forget(h, c);
    hub_schedule_tally(h);
    (void)hub_cluster_free(c);
}

/* A cluster with a work only has left: its ManagedCluster would have been listed. While ManagedClusters
 * cannot be watched it may also be new, with a work created by another controller. */
static bool cluster_has_left(const struct hub *h, const struct hub_cluster *c)
{
    const struct kube_watch *w = h->watches[HUB_CLUSTERS].watch;

    return !c->managed && kube_watch_synced(w) && !kube_watch_trouble(w) && !kube_watch_has(w, "", c->name);
}

void hub_clusters_mark_left(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        c->leaving |= cluster_has_left(h, c);
}

void hub_cluster_reconcile(struct hub *h, struct hub_cluster *c)
{
    mono_ms now = loop_now(h->o.loop);

    if (!h->active)
        return;
    if (hub_cluster_in_sync(h, c)) {
        if (c->behind && hub_cluster_target(h, c) == TARGET_WORK)
            hub_count_distributed(h, (double)mono_diff(c->behind_since, now) / 1000);
        c->behind = false;
        c->failures = 0;
        c->write_error[0] = '\0';
        return;
    }
    if (!c->behind)
        c->behind_since = now;
    c->behind = true;
    hub_work_enqueue(h, c);
}

void hub_cluster_written(struct hub *h, struct hub_cluster *c)
{
    hub_cluster_reconcile(h, c);
    cluster_free_if_gone(h, c);
}

static struct hub_cluster *cluster_find_or_new(struct hub *h, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, name);

    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c || !(c->name = strdup(name)) || map_set(&h->clusters, c->name, c) < 0) {
        log_error("cluster not tracked: out of memory", L_STR("cluster", name));
        return hub_cluster_free(c);
    }
    c->hub = h;
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

/* why: NULL when available. */
static void cluster_set_unavailable(struct hub_cluster *c, char **field, const char *why)
{
    if (!why == !*field && strcmp(cstr(why), cstr(*field)) == 0)
        return;
    free(*field);
    *field = why ? strdup(why) : NULL;
    if (why && !*field)
        log_error("cluster treated as available: out of memory", L_STR("cluster", c->name));
    hub_schedule_tally(c->hub);
}

void hub_addon_set(struct hub *h, json_t *object)
{
    char why[UNAVAILABLE_BYTES];
    bool unavailable = object_is_unavailable(object, "Available", why);
    struct hub_cluster *c = unavailable ? cluster_find_or_new(h, kube_namespace(object))
                                        : map_get(&h->clusters, kube_namespace(object));

    if (!c)
        return;
    cluster_set_unavailable(c, &c->addon_unavailable, unavailable ? why : NULL);
    cluster_free_if_gone(h, c);
}

void hub_addon_delete(struct hub *h, const char *namespace, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, namespace);

    (void)name;
    if (!c)
        return;
    cluster_set_unavailable(c, &c->addon_unavailable, NULL);
    cluster_free_if_gone(h, c);
}

void hub_managed_set(struct hub *h, json_t *object)
{
    struct hub_cluster *c = cluster_find_or_new(h, kube_name(object));
    bool accepted = false, leaving = kube_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
    bool managed = kube_bool(object, &accepted, "spec", "hubAcceptsClient", NULL) && accepted && !leaving;
    char why[UNAVAILABLE_BYTES];
    bool unavailable;

    if (!c)
        return;
    unavailable = object_is_unavailable(object, "ManagedClusterConditionAvailable", why);
    cluster_set_unavailable(c, &c->unavailable, unavailable ? why : NULL);
    if (c->managed != managed || c->leaving != leaving) {
        c->managed = managed;
        c->leaving = leaving;
        hub_schedule_plan(h);
        hub_schedule_tally(h);
        hub_cluster_reconcile(h, c);
    }
    cluster_free_if_gone(h, c);
}

void hub_managed_delete(struct hub *h, const char *namespace, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, name);

    (void)namespace;
    if (!c)
        return;
    c->managed = false;
    c->leaving = true;
    c->group = NULL;
    hub_schedule_tally(h);
    hub_cluster_reconcile(h, c);
    cluster_free_if_gone(h, c);
}

/* ---- ManifestWorks ---- */

/* Whether anything but times has changed. */
static bool cluster_read_report(struct hub_cluster *c, const json_t *object)
{
    struct str text = work_feedback(object);
    struct report report;
    bool changed;
    int r;

    if (c->report.exists == (text.n > 0) && (text.n == 0 || c->report.hash == report_hash(text)))
        return false;
    r = report_parse(&report, text);
    if (r < 0) {
        if (c->bad_report_hash != report_hash(text))
            log_warn("agent's report not read, the last one stays active", L_STR("cluster", c->name),
                     L_ERR(r));
        c->bad_report_hash = report_hash(text);
        return false;
    }
    changed = c->has_expired_score || !report_same(&c->report, &report);
    report_done(&c->report);
    c->report = report;
    hub_tally_renew(c->hub, c);
    return changed;
}

void hub_work_set(struct hub *h, json_t *object)
{
    struct hub_cluster *c = cluster_find_or_new(h, kube_namespace(object));
    struct hub_cluster before;
    bool changed;

    if (!c)
        return;
    before = *c;
    hub_work_observe(h, c, object);
    changed = cluster_read_report(c, object);
    c->leaving |= cluster_has_left(h, c);
    hub_cluster_reconcile(h, c);
    /* In a large fleet there is always an agent that reports new times only: counting for each would never
     * end. */
    if (changed || !work_found_same(&before.work, &c->work) || before.leaving != c->leaving ||
        before.behind != c->behind || !before.failures != !c->failures ||
        !*before.write_error != !*c->write_error)
        hub_schedule_tally(h);
}

void hub_work_delete(struct hub *h, const char *namespace, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, namespace);

    (void)name;
    if (!c)
        return;
    c->work = (struct work_found){0};
    c->watched_version = UINT64_MAX; /* the answer to an earlier write does not bring it back */
    report_done(&c->report);
    hub_schedule_tally(h);
    hub_cluster_reconcile(h, c);
    cluster_free_if_gone(h, c);
}
