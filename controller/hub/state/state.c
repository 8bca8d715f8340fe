#include "controller/hub/state/state.h"

#include "controller/hub/probe/probe.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "exporter/base/def.h"

const struct hub_kind hub_kinds[HUB_KINDS] = {
    [HUB_SCORERS] = {&kube_dynamicscorers, "DynamicScorers"},
    [HUB_CONFIGS] = {&kube_dynamicscoringconfigs, "DynamicScoringConfigs"},
    [HUB_CLUSTERS] = {&kube_managedclusters, "ManagedClusters"},
    [HUB_ADDONS] = {&kube_managedclusteraddons, "ManagedClusterAddOns"},
    [HUB_WORKS] = {&kube_manifestworks, "ManifestWorks"},
};

bool object_is_deleting(const json_t *object)
{
    return kube_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

bool object_has_finalizer(const json_t *object, const char *finalizer)
{
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(object, "metadata", "finalizers", NULL), i, one)
    {
        if (strcmp(cstr(kube_str(one, NULL)), finalizer) == 0)
            return true;
    }
    return false;
}

bool hub_is_distributing(const struct hub *h)
{
    return h->config.object && !object_is_deleting(h->config.object);
}

bool hub_watch_listed(const struct hub *h, size_t kind)
{
    const struct kube_watch *w = h->watches[kind].watch;

    return kube_watch_synced(w) || (kind == HUB_ADDONS && kube_watch_trouble(w));
}

/* A hub without add-ons lacks nothing: agents may be installed by other means. */
const char *hub_watch_trouble(const struct hub *h, size_t kind)
{
    const struct kube_watch *w = h->watches[kind].watch;

    return kind == HUB_ADDONS && kube_watch_lacks_kind(w) ? NULL : kube_watch_trouble(w);
}

bool hub_config_has_finalizer(const struct hub *h)
{
    return object_has_finalizer(h->config.object, HUB_FINALIZER);
}

bool hub_work_is_ours(const struct hub *h, const struct work_found *w)
{
    return w->ours || object_has_finalizer(h->config.object, REFERENCE_FINALIZER);
}

struct hub_config *hub_config_find(struct hub *h, const char *name)
{
    if (strcmp(name, HUB_CONFIG) == 0)
        return h->config.object ? &h->config : NULL;
    return map_get(&h->other_configs, name);
}

struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name)
{
    return map_get(&h->scorers, name);
}

static enum probe_health state_reported_health(const struct tally *t)
{
    if (!t->api_unhealthy.n)
        return t->api_healthy ? HEALTH_ACTIVE : HEALTH_UNKNOWN;
    return t->api_healthy ? HEALTH_DEGRADED : HEALTH_INACTIVE;
}

enum probe_health hub_scorer_health(const struct hub_scorer *s)
{
    switch (s->spec.health_check) {
    case HEALTH_CHECK_HUB:
        return s->probe ? probe_status(s->probe)->health : HEALTH_UNKNOWN;
    case HEALTH_CHECK_AGENTS:
        return state_reported_health(&s->tally);
    default:
        return HEALTH_UNKNOWN;
    }
}

WORD_TABLE(health_word, enum probe_health, HEALTH_STATES,
           {[HEALTH_UNKNOWN] = "Unknown",
            [HEALTH_ACTIVE] = "Active",
            [HEALTH_INACTIVE] = "Inactive",
            [HEALTH_DEGRADED] = "Degraded"});

bool hub_scorer_awaits_config(const struct hub_scorer *s)
{
    const struct probe_status *p = s->probe ? probe_status(s->probe) : NULL;

    return p && s->has_spec && s->spec.mode == SYNC_FULL && !p->synced.owner && !p->config.asked &&
           !kube_str(s->object, "status", "summary", NULL);
}

bool hub_scorer_is_eligible(const struct hub_scorer *s)
{
    if (hub_scorer_awaits_config(s))
        return false;
    return s->hub->o.keep_unhealthy || s->spec.health_check != HEALTH_CHECK_HUB ||
           hub_scorer_health(s) == HEALTH_ACTIVE;
}

bool hub_scorer_shares_object(const struct hub_scorer *s)
{
    return s->older ? s->same_object : s->younger && s->younger->same_object;
}

enum hub_target hub_cluster_target(const struct hub *h, const struct hub_cluster *c)
{
    if (c->leaving)
        return TARGET_NO_WORK;
    /* A config that was never seen may be in another namespace: had it been deleted, its finalizer would
     * have kept it until all works were gone. */
    if (!hub_is_distributing(h))
        return h->config.object || h->config_gone ? TARGET_NO_WORK : TARGET_UNCHANGED;
    return c->managed && h->plan ? TARGET_WORK : TARGET_UNCHANGED;
}

bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c)
{
    const struct work_found *w = &c->work;

    switch (hub_cluster_target(h, c)) {
    case TARGET_WORK:
        /* A new cluster has no group until the next plan. */
        return !c->group || (w->exists && !w->deleting && w->frame && w->hash == c->wanted_hash);
    case TARGET_NO_WORK:
        return !w->exists || !hub_work_is_ours(h, w) || w->deleting;
    default:
        return true;
    }
}
