/* Owns the clusters: who calls it hands in what the watches show, and is told what to look at again. It
 * schedules nothing, and writes nothing. Loop thread. */
#include "controller/hub/observed/cluster.h"

#include "controller/hub/observed/change.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/rules/adjustments.h"
#include "controller/kube/condition.h"
#include "controller/kube/time.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/score/feature.h"

enum { UNAVAILABLE_BYTES = 256 };

/* ---- ManagedClusters and ManagedClusterAddOns ---- */

unsigned cluster_set_text(char **field, const char *text)
{
    bool is_same = !text == !*field && strcmp(cstr(text), cstr(*field)) == 0;

    if (is_same)
        return CHANGE_NONE;
    free(*field);
    *field = text ? xstrdup(text) : NULL;
    return CHANGE_CLUSTER;
}

/* Of one that has just been created nothing is known yet: it has no such condition. */
static bool object_is_unavailable(const json_t *object, const char *condition, char why[UNAVAILABLE_BYTES])
{
    const json_t *available = kube_condition(kube_get(object, "status", NULL), condition);
    const char *status = kube_str(available, "status", NULL);

    kube_condition_why(available, why, UNAVAILABLE_BYTES);
    return status && strcmp(status, "True") != 0;
}

/* Since when the add-on's condition is as it is. */
static int64_t addon_since(const json_t *object)
{
    const json_t *available = kube_condition(kube_get(object, "status", NULL), "Available");

    return kube_time_parse(kube_str(available, "lastTransitionTime", NULL)).ms;
}

/* Where the add-on is installed, if not where its ConfigMap goes; NULL also while the add-on manager has
 * not said so. */
static const char *addon_other_namespace(const char *agent_namespace, const json_t *object)
{
    const char *namespace = cstr(kube_str(object, "status", "namespace", NULL));

    return *namespace && strcmp(namespace, agent_namespace) != 0 ? namespace : NULL;
}

bool cluster_addon_matters(const char *agent_namespace, const json_t *object)
{
    char why[UNAVAILABLE_BYTES];

    return object_is_unavailable(object, "Available", why) || addon_other_namespace(agent_namespace, object);
}

unsigned cluster_see_addon(struct hub_cluster *c, const char *agent_namespace, const json_t *object)
{
    char why[UNAVAILABLE_BYTES];
    bool is_unavailable = object_is_unavailable(object, "Available", why);

    c->addon_unavailable_ms = is_unavailable ? addon_since(object) : 0;
    return cluster_set_text(&c->addon_unavailable, is_unavailable ? why : NULL) |
           cluster_set_text(&c->addon_namespace, addon_other_namespace(agent_namespace, object));
}

/* Whether its labels or claims have changed. Of one that goes, the last ones stay. */
static bool cluster_see_attributes(struct hub_cluster *c, const json_t *object)
{
    char *now = object ? cluster_attributes(object) : NULL;
    bool is_same = !now || strcmp(now, cstr(c->attributes)) == 0;

    if (is_same) {
        free(now);
        return false;
    }
    free(c->attributes);
    c->attributes = now;
    return true;
}

unsigned cluster_see_managed(struct hub_cluster *c, const json_t *object)
{
    bool leaving = !object || object_is_deleting(object);
    bool managed = kube_bool(object, "spec", "hubAcceptsClient", NULL) && !leaving;
    char why[UNAVAILABLE_BYTES];
    bool is_unavailable = object_is_unavailable(object, "ManagedClusterConditionAvailable", why);
    unsigned changes = cluster_set_text(&c->unavailable, is_unavailable ? why : NULL);

    if (cluster_see_attributes(c, object))
        changes |= CHANGE_ATTRIBUTES;
    if (c->managed == managed && c->leaving == leaving)
        return changes;
    c->managed = managed;
    c->leaving = leaving;
    return changes | CHANGE_PLAN | CHANGE_CLUSTER | CHANGE_TARGET;
}

bool cluster_has_left(const struct hub_cluster *c, const struct kube_watch *managed)
{
    return !c->managed && kube_watch_synced(managed) && !kube_watch_error(managed) &&
           !kube_watch_has(managed, "", c->name);
}

/* ---- Its ManifestWork, and its agent's report in it ---- */

static void cluster_set_uid(struct hub_cluster *c, const char *uid)
{
    (void)cluster_set_text(&c->work_uid, *uid ? uid : NULL);
}

unsigned cluster_see_work(struct hub_cluster *c, const json_t *object, const json_t *frame)
{
    char why[WORK_WHY_BYTES];

    work_look(&c->work, object, frame, why);
    cluster_set_uid(c, kube_uid(object));
    return cluster_set_text(&c->unapplied, *why ? why : NULL);
}

unsigned cluster_take_work(struct hub_cluster *c, struct work_found work, const char *uid)
{
    c->work = work;
    cluster_set_uid(c, cstr(uid));
    return cluster_set_text(&c->unapplied, NULL);
}

unsigned cluster_lacks(const struct hub_cluster *c)
{
    return c->report.exists ? feature_refused() & ~c->report.features : 0;
}

enum report_news cluster_see_report(struct hub_cluster *c, const json_t *object)
{
    struct str text = work_feedback(object);
    uint64_t hash = text.n ? hash_bytes(text) : 0;
    struct report report;
    enum report_news news;
    unsigned lacked;
    int r;

    if (c->report.hash == hash)
        return REPORT_UNCHANGED;
    r = report_parse(&report, text);
    if (r < 0) {
        log_warn("agent's report not read, the last one stays active", L_STR("cluster", c->name), L_ERR(r));
        c->report.hash = hash; /* not to be read again */
        return REPORT_UNCHANGED;
    }
    report_carry_over(&report, &c->report);
    news = report_same(&c->report, &report) ? REPORT_TIMES : REPORT_CHANGED;
    lacked = cluster_lacks(c);
    report_done(&c->report);
    c->report = report;
    return cluster_lacks(c) == lacked ? news : REPORT_OF_OTHER_VERSION;
}

void cluster_forget_report(struct hub_cluster *c)
{
    report_done(&c->report);
}

/* ---- All clusters ---- */

struct hub_cluster *clusters_find(const struct clusters *all, const char *name)
{
    return map_get(&all->by_name, name);
}

struct hub_cluster *clusters_find_or_new(struct clusters *all, const char *name, struct kube_writer *works)
{
    struct hub_cluster *c = map_get(&all->by_name, name);

    if (c)
        return c;
    c = xcalloc(1, sizeof(*c));
    c->name = xstrdup(name);
    map_set(&all->by_name, c->name, c);
    kube_object_init(&c->write.object, works, c->name);
    return c;
}

bool cluster_is_forgotten(const struct hub_cluster *c)
{
    return !c->managed && !c->work.exists && !c->write.object.call && !c->addon_unavailable &&
           !c->addon_namespace;
}

void clusters_remove(struct clusters *all, struct hub_cluster *c)
{
    invariant(cluster_is_forgotten(c));
    invariant(clusters_find(all, c->name) == c);
    (void)map_take(&all->by_name, c->name);
    c->next_removed = all->removed;
    all->removed = c;
}

void clusters_free_removed(struct clusters *all)
{
    while (all->removed) {
        struct hub_cluster *c = all->removed;

        all->removed = c->next_removed;
        kube_object_done(&c->write.object);
        json_decref(c->write.text);
        report_done(&c->report);
        free(c->unavailable);
        free(c->attributes);
        free(c->addon_unavailable);
        free(c->addon_namespace);
        free(c->unapplied);
        free(c->work_uid);
        free(c->write.contested);
        free(c->name);
        free(c);
    }
}

void clusters_done(struct clusters *all)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&all->by_name, &at)); all->removed = c)
        c->next_removed = all->removed;
    map_done(&all->by_name);
    clusters_free_removed(all);
}
