/* Owns the clients of the two API servers and the parts that use them: the ConfigMap, the Secrets, the
 * Lease, and while this agent leads the AddOnPlacementScores and the report. On the loop: called by the
 * command at its beginning and end, by the agent as its sink, and by the Lease. An agent that does not
 * lead writes nothing. */
#include "controller/agent_kube.h"

#include "controller/agent_configmap.h"
#include "controller/agent_report.h"
#include "controller/agent_secrets.h"
#include "controller/kube/client.h"
#include "controller/kube/lease.h"
#include "controller/kube/server_clock.h"
#include "controller/placement/items.h"
#include "controller/placement/placement.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/invariant.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/sink.h"

struct agent_kube {
    struct sink sink; /* AddOnPlacementScores */
    struct agent *agent;
    struct agent_kube_options o;
    struct kube *hub, *cluster;
    char *namespace, *configmap_namespace, *configmap_name;
    char *owner;                       /* of AddOnPlacementScores */
    struct agent_secrets *secrets;     /* NULL if tokens come from files */
    struct agent_configmap *configmap; /* NULL without a cluster */
    /* Of the leader */
    struct placement *placement; /* NULL without a hub, as on a standby */
    struct agent_report *report; /* NULL without a cluster, as on a standby */
    /* The election */
    struct kube_lease *lease; /* NULL without one */
    char identity[KUBE_IDENTITY_BYTES], lease_name[OBJECT_NAME_MAX + 1];
};

/* ---- What only the leader does ---- */

static void leader_on_placement(void *arg)
{
    struct agent_kube *k = arg;

    agent_touch(k->agent);
    agent_report_touch(k->report);
}

static void leader_begin(struct agent_kube *k)
{
    const struct placement_options placement = {.hub = k->hub,
                                                .metrics = agent_state(k->agent)->metrics,
                                                .on_change = leader_on_placement,
                                                .arg = k,
                                                .cluster_name = k->o.cluster_name,
                                                .owner = k->owner,
                                                .adopt_unowned = k->o.adopt_unowned};
    struct agent_report_options report = {
        .agent = k->agent, .cluster = k->cluster, .hub = k->hub, .namespace = k->namespace};

    invariant(!k->placement && !k->report); /* leader_end() comes first */
    if (k->hub) {
        struct adjustments adjustments;

        k->placement = placement_new(&placement);
        agent_configmap_adjustments(k->configmap, &adjustments);
        placement_adjust(k->placement, &adjustments);
    }
    report.placement = k->placement;
    if (k->cluster && !k->o.once)
        k->report = agent_report_new(&report);
}

static void leader_end(struct agent_kube *k)
{
    k->report = agent_report_free(k->report);
    k->placement = placement_free(k->placement);
}

static void leader_on_change(void *arg, bool leading)
{
    struct agent_kube *k = arg;

    leader_end(k);
    if (leading) {
        agent_configmap_catch_up(k->configmap);
        leader_begin(k);
    }
    agent_set_leading(k->agent, leading);
}

/* A standby has no rounds with which its metrics would be rendered. */
static void leader_on_lease_error(void *arg)
{
    struct agent_kube *k = arg;

    agent_touch(k->agent);
}

/* Without an election this agent leads. */
static void leader_start(struct agent_kube *k)
{
    CLEANUP(cleanup_free) char *name = xasprintf("%s-agent", k->o.addon_name);
    const struct kube_lease_options o = {.namespace = k->namespace,
                                         .name = k->lease_name,
                                         .identity = k->identity,
                                         .on_change = leader_on_change,
                                         .on_error_changed = leader_on_lease_error,
                                         .arg = k};

    if (!k->o.leader_elect || k->o.once) {
        leader_begin(k);
        return;
    }
    (void)object_name(str_of(name), k->lease_name);
    kube_lease_make_identity(k->identity);
    agent_set_leading(k->agent, false);
    k->lease = kube_lease_new(k->cluster, &o);
}

void agent_kube_render(const struct agent_kube *k)
{
    struct metrics *m;

    if (!k)
        return;
    m = agent_state(k->agent)->metrics;
    if (k->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "cluster"), !kube_lease_error(k->lease));
    if (k->hub)
        metric_set(m, METRIC_KUBE_CLOCK_OFFSET, LV("hub"), (double)kube_clock_offset_ms(k->hub) / 1000);
}

bool agent_kube_election(const struct agent_kube *k, struct agent_election *ret)
{
    if (k->lease)
        *ret = (struct agent_election){.leading = kube_lease_leading(k->lease),
                                       .identity = k->identity,
                                       .holder = kube_lease_holder(k->lease),
                                       .error = kube_lease_error(k->lease)};
    return k->lease;
}

void agent_kube_stop(struct agent_kube *k, void (*done)(void *arg), void *arg)
{
    if (k && k->lease)
        kube_lease_release(k->lease, done, arg);
    else
        done(arg);
}

/* ---- The sink ---- */

static void sink_round_ended(struct sink *s, const char *score_name, const struct round_outcome *o)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    if (k->placement)
        placement_round_ended(k->placement, score_name, o);
    agent_report_touch(k->report);
}

static void sink_withdrawn(struct sink *s, const char *score_name, unix_ms at)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    (void)at; /* an object's scores end by their validity */
    if (k->placement)
        placement_withdrawn(k->placement, score_name);
    agent_report_touch(k->report);
}

/* Which scorers have AddOnPlacementScores; those of all others are deleted. Not before that is known. */
static void kube_sync_placement(struct agent_kube *k, const struct summaries *list, int64_t stale_intervals)
{
    enum configmap_state state = agent_configmap_state(k->configmap);

    if (!k->placement)
        return;
    if (state == CONFIGMAP_MISSING)
        placement_sync_none(k->placement);
    else if (state == CONFIGMAP_READ || !k->cluster)
        placement_sync(k->placement, list, stale_intervals);
}

static void sink_applied(struct sink *s, const struct summaries *list, int64_t stale_intervals)
{
    struct agent_kube *k = CONTAINER_OF(s, struct agent_kube, sink);

    agent_secrets_sync(k->secrets, &agent_state(k->agent)->config->summaries);
    kube_sync_placement(k, list, stale_intervals);
}

static const struct sink_ops sink_ops = {
    .applied = sink_applied, .round_ended = sink_round_ended, .withdrawn = sink_withdrawn};

/* ---- Beginning and end ---- */

bool agent_kube_has_cluster(const struct agent_kube_options *o)
{
    return o->managed_kubeconfig || *cstr(getenv("KUBERNETES_SERVICE_HOST"));
}

static void kube_on_secret(void *arg)
{
    struct agent_kube *k = arg;

    agent_configmap_check_secrets(k->configmap);
}

static void kube_on_adjustments(void *arg, struct adjustments *list)
{
    struct agent_kube *k = arg;

    if (k->placement)
        placement_adjust(k->placement, list);
}

static void kube_on_current(void *arg)
{
    struct agent_kube *k = arg;
    const struct config *c = agent_state(k->agent)->config;

    kube_sync_placement(k, &c->summaries, c->limits.stale_intervals);
}

static void kube_on_configmap(void *arg)
{
    struct agent_kube *k = arg;

    agent_report_touch(k->report);
}

/* "namespace/name" or "name", in the agent's own namespace. */
static void kube_set_names(struct agent_kube *k)
{
    const struct agent_kube_options *o = &k->o;
    const char *configmap = o->configmap ?: "dynamic-scoring-config", *slash = strchr(configmap, '/');
    const char *own = k->cluster ? kube_default_namespace(k->cluster) : NULL;

    k->namespace = xstrdup(o->addon_namespace ?: own ?: "dynamic-scoring");
    k->configmap_namespace =
        slash ? str_dup((struct str){configmap, (size_t)(slash - configmap)}) : xstrdup(k->namespace);
    k->configmap_name = xstrdup(slash ? slash + 1 : configmap);
    k->owner = xasprintf("%s/%s", k->namespace, k->o.addon_name);
}

static void kube_start_secrets(struct agent_kube *k)
{
    const struct agent_secrets_options o = {.agent = k->agent,
                                            .cluster = k->cluster,
                                            .namespace = k->namespace,
                                            .on_read = kube_on_secret,
                                            .arg = k};

    k->secrets = agent_secrets_new(&o);
}

static void kube_start_configmap(struct agent_kube *k)
{
    const struct agent_configmap_options o = {.agent = k->agent,
                                              .cluster = k->cluster,
                                              .namespace = k->configmap_namespace,
                                              .name = k->configmap_name,
                                              .secrets = k->secrets,
                                              .once = k->o.once,
                                              .on_adjustments = kube_on_adjustments,
                                              .on_change = kube_on_configmap,
                                              .on_current = kube_on_current,
                                              .arg = k};

    k->configmap = agent_configmap_new(&o);
}

struct agent_kube *agent_kube_new(struct agent *a, const struct agent_kube_options *o, bool secrets)
{
    struct agent_kube *k = xcalloc(1, sizeof(*k));
    const struct agent_state *state = agent_state(a);

    k->sink.ops = &sink_ops;
    k->agent = a;
    k->o = *o;
    k->o.addon_name = o->addon_name ?: "dynamic-scoring";
    if (agent_kube_has_cluster(o))
        k->cluster = kube_new(state->loop, state->http, "cluster", o->managed_kubeconfig);
    kube_set_names(k);
    if (o->hub_kubeconfig && !o->once)
        k->hub = kube_new(state->loop, state->http, "hub", o->hub_kubeconfig);
    if (k->cluster && secrets)
        kube_start_secrets(k);
    if (k->cluster)
        kube_start_configmap(k);
    leader_start(k);
    agent_add_sink(a, &k->sink);
    return k;
}

struct agent_kube *agent_kube_free(struct agent_kube *k)
{
    if (!k)
        return NULL;
    k->lease = kube_lease_free(k->lease);
    leader_end(k);
    k->configmap = agent_configmap_free(k->configmap);
    k->secrets = agent_secrets_free(k->secrets);
    k->hub = kube_free(k->hub);
    k->cluster = kube_free(k->cluster);
    free(k->namespace);
    free(k->configmap_namespace);
    free(k->configmap_name);
    free(k->owner);
    free(k);
    return NULL;
}

struct kube *agent_kube_cluster(struct agent_kube *k)
{
    return k ? k->cluster : NULL;
}

struct secrets *agent_kube_secrets(struct agent_kube *k)
{
    return agent_secrets_reader(k->secrets);
}

int agent_kube_start(struct agent_kube *k)
{
    if (k->o.once && k->cluster)
        return 0;
    /* Not yet in the ConfigMap's name: nobody should take its absence for an empty list. */
    return k->cluster ? agent_apply_no_summaries(k->agent) : agent_reload(k->agent, NULL);
}
