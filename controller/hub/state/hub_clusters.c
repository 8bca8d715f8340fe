/* Owns the clusters: those that are managed, and those that still have a ManifestWork of ours. */
#include "controller/hub/state/status_conditions.h"

#include "controller/kube/condition.h"
#include "exporter/base/log.h"
#include "exporter/base/text.h"

#include <errno.h>

enum { AWAY_BYTES = 256 };

struct hub_cluster *hub_cluster_free(struct hub_cluster *c)
{
    if (!c)
        return NULL;
    (void)kube_cancel(c->call);
    c->body = hub_body_unref(c->body);
    report_done(&c->report);
    free(c->away);
    free(c->name);
    free(c);
    return NULL;
}

enum hub_want hub_cluster_wants(const struct hub *h, const struct hub_cluster *c)
{
    if (c->leaving)
        return HUB_WANT_NO_WORK;
    /* One that is not there, and was not seen to go, may be in another namespace: its finalizer would have held it until all works were
     * gone. */
    if (!hub_wanted(h))
        return h->config.object || h->config_gone ? HUB_WANT_NO_WORK : HUB_WANT_NOTHING;
    return c->managed && h->plan ? HUB_WANT_WORK : HUB_WANT_NOTHING;
}

bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c)
{
    switch (hub_cluster_wants(h, c)) {
    case HUB_WANT_WORK:
        /* One that has just joined is in no group yet: the plan that comes next sees to it. */
        return !c->group ||
               (c->found.exists && !c->found.deleting && c->found.frame && c->found.hash == c->wanted);
    case HUB_WANT_NO_WORK:
        return !c->found.exists || !c->found.ours || c->found.deleting;
    default:
        return true;
    }
}

void hub_cluster_forget(struct hub *h, struct hub_cluster *c)
{
    if (c->managed || c->found.exists || c->call)
        return;
    (void)map_take(&h->clusters, c->name);
    kube_queue_forget(h->works, c->name);
    kube_queue_forget(h->joins, c->name);
    hub_tally_forget(h, c);
    (void)hub_cluster_free(c);
}

/* A cluster of which only the work is known has left: its ManagedCluster would have been listed. While those cannot be followed it may also
 * be one that has just joined, whose work another controller made. */
static bool has_left(const struct hub *h, const struct hub_cluster *c)
{
    return !c->managed && kube_watch_synced(h->clusters_watch) && !kube_watch_trouble(h->clusters_watch) &&
           !kube_watch_has(h->clusters_watch, "", c->name);
}

void hub_clusters_sweep(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    while ((c = map_next(&h->clusters, &at)))
        c->leaving |= has_left(h, c);
}

void hub_cluster_settle(struct hub *h, struct hub_cluster *c)
{
    mono_ms now = loop_now(h->o.loop);

    if (!h->active)
        return;
    if (hub_cluster_in_sync(h, c)) {
        if (c->behind && hub_cluster_wants(h, c) == HUB_WANT_WORK)
            hub_count_distributed(h, (double)mono_diff(c->behind_since, now) / 1000);
        c->behind = false;
        c->failures = 0;
        c->why[0] = '\0';
        return;
    }
    if (!c->behind)
        c->behind_since = now;
    c->behind = true;
    hub_work_wanted(h, c);
}

static struct hub_cluster *find_or_new(struct hub *h, const char *name)
{
    struct hub_cluster *c = map_get(&h->clusters, name);

    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c || !(c->name = strdup(name)) || map_set(&h->clusters, c->name, c) < 0) {
        log_error("cluster not followed: out of memory", L_STR("cluster", name));
        return hub_cluster_free(c);
    }
    c->hub = h;
    return c;
}

/* ---- ManagedClusters ---- */

/* Whether the cluster is heard of, by the hub's registration controller. One that has just joined has no such condition yet. */
static void read_availability(struct hub_cluster *c, const json_t *object)
{
    const json_t *available =
        kube_condition(kube_get(object, "status", NULL), "ManagedClusterConditionAvailable");
    const char *status = kube_str(available, "status", NULL);
    bool away = status && strcmp(status, "True") != 0;
    char why[AWAY_BYTES] = "";

    if (away)
        text_line(why, sizeof(why), kube_text(available, "message", NULL));
    if (away && !*why)
        text_line(why, sizeof(why), kube_text(available, "reason", NULL));
    if (away == (c->away != NULL) && strcmp(why, cstr(c->away)) == 0)
        return;
    free(c->away);
    c->away = away ? strdup(why) : NULL;
    if (away && !c->away)
        log_error("cluster counts as available: out of memory", L_STR("cluster", c->name));
    hub_touch(c->hub);
}

void hub_managed_set(void *hub, json_t *object)
{
    struct hub *h = hub;
    struct hub_cluster *c = find_or_new(h, kube_name(object));
    bool accepted = false, leaving = kube_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
    bool managed = kube_bool(object, &accepted, "spec", "hubAcceptsClient", NULL) && accepted && !leaving;

    if (!c)
        return;
    read_availability(c, object);
    if (c->managed != managed || c->leaving != leaving) {
        c->managed = managed;
        c->leaving = leaving;
        hub_replan(h);
        hub_touch(h);
        hub_cluster_settle(h, c);
    }
    hub_cluster_forget(h, c);
}

void hub_managed_delete(void *hub, const char *namespace, const char *name)
{
    struct hub *h = hub;
    struct hub_cluster *c = map_get(&h->clusters, name);

    (void)namespace;
    if (!c)
        return;
    c->managed = false;
    c->leaving = true;
    c->group = NULL;
    hub_touch(h);
    hub_cluster_settle(h, c);
    hub_cluster_forget(h, c);
}

/* ---- ManifestWorks ---- */

/* Whether it tells anything new. */
static bool read_report(struct hub_cluster *c, const json_t *object)
{
    struct str text = work_feedback(object);
    struct report report;
    bool news;
    int r;

    if (c->report.there == (text.n > 0) && (text.n == 0 || c->report.hash == report_hash(text)))
        return false;
    r = report_parse(&report, text);
    if (r < 0) {
        if (c->unread != report_hash(text))
            log_warn("the agent's report cannot be read, the one before stays", L_STR("cluster", c->name),
                     L_ERR(r));
        c->unread = report_hash(text);
        return false;
    }
    news = c->old || !report_same(&c->report, &report);
    c->hub->tallied = false; /* what was counted points into it; whoever looks next counts anew */
    report_done(&c->report);
    c->report = report;
    return news;
}

void hub_work_set(void *hub, json_t *object)
{
    struct hub *h = hub;
    struct hub_cluster *c = find_or_new(h, kube_namespace(object));
    struct hub_cluster before;
    bool news;

    if (!c)
        return;
    before = *c;
    hub_work_seen(h, c, object);
    news = read_report(c, object);
    c->leaving |= has_left(h, c);
    hub_cluster_settle(h, c);
    /* In a large fleet there is always an agent that reports nothing but new times: counting for each would never end. */
    if (news || memcmp(&before.found, &c->found, sizeof(c->found)) != 0 || before.leaving != c->leaving ||
        before.behind != c->behind || before.failures != c->failures)
        hub_touch(h);
}

void hub_work_delete(void *hub, const char *namespace, const char *name)
{
    struct hub *h = hub;
    struct hub_cluster *c = map_get(&h->clusters, namespace);

    (void)name;
    if (!c)
        return;
    c->found = (struct work_found){0};
    c->seen = UINT64_MAX; /* the answer to an older write does not bring it back */
    report_done(&c->report);
    hub_touch(h);
    hub_cluster_settle(h, c);
    hub_cluster_forget(h, c);
}
