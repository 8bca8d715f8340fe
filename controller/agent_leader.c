/* Owns the Lease, and while this agent leads the AddOnPlacementScores and the report. */
#include "controller/agent_leader.h"

#include "controller/agent_report.h"
#include "controller/kube/lease.h"
#include "controller/placement/name.h"
#include "controller/placement/placement.h"
#include "exporter/base/log.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>

struct agent_leader {
    struct agent_leader_options o;
    struct placement *placement; /* NULL without a hub, as on a standby */
    struct agent_report *report; /* NULL without a cluster, as on a standby */
    struct kube_lease *lease;    /* NULL without an election */
    char identity[KUBE_IDENTITY_BYTES], lease_name[OBJECT_NAME_MAX + 1];
};

static int leader_begin(struct agent_leader *l)
{
    const struct agent_state *a = agent_state(l->o.agent);
    const struct placement_options placement = {.hub = l->o.hub,
                                                .agent = l->o.agent,
                                                .metrics = a->metrics,
                                                .cluster_name = l->o.cluster_name,
                                                .owner = l->o.owner,
                                                .adopt_unowned = l->o.adopt_unowned};
    struct agent_report_options report = {
        .agent = a, .cluster = l->o.cluster, .hub = l->o.hub, .namespace = l->o.namespace};
    int r = l->o.hub ? placement_new(&l->placement, &placement) : 0;

    report.placement = l->placement;
    return r == 0 && l->o.cluster ? agent_report_new(&l->report, &report) : r;
}

static void leader_end(struct agent_leader *l)
{
    l->report = agent_report_free(l->report);
    l->placement = placement_free(l->placement);
}

static void leader_on_change(void *arg, bool leading)
{
    struct agent_leader *l = arg;

    leader_end(l);
    if (leading && leader_begin(l) < 0)
        log_error("scores and report not written: out of memory");
    agent_set_leading(l->o.agent, leading);
}

static int leader_start_election(struct agent_leader *l)
{
    CLEANUP(cleanup_free) char *name = NULL;
    const struct kube_lease_options o = {.namespace = l->o.namespace,
                                         .name = l->lease_name,
                                         .identity = l->identity,
                                         .on_change = leader_on_change,
                                         .arg = l};

    if (asprintf(&name, "%s-agent", l->o.addon_name) < 0)
        return name = NULL, -ENOMEM;
    (void)object_name(str_of(name), l->lease_name);
    kube_lease_make_identity(l->identity);
    agent_set_leading(l->o.agent, false);
    return kube_lease_new(&l->lease, l->o.cluster, &o);
}

int agent_leader_new(struct agent_leader **ret, const struct agent_leader_options *o)
{
    CLEANUP(cleanup_agent_leader_free) struct agent_leader *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return -ENOMEM;
    l->o = *o;
    r = o->elect ? leader_start_election(l) : leader_begin(l);
    if (r == 0)
        *ret = TAKE_PTR(l);
    return r;
}

struct agent_leader *agent_leader_free(struct agent_leader *l)
{
    if (!l)
        return NULL;
    l->lease = kube_lease_free(l->lease);
    leader_end(l);
    free(l);
    return NULL;
}

void agent_leader_sync(struct agent_leader *l)
{
    const struct agent_state *a = agent_state(l->o.agent);

    if (l->placement && placement_sync(l->placement, a->scorers, a->n_scorers) < 0)
        log_error("not all AddOnPlacementScores written: out of memory");
}

void agent_leader_round(struct agent_leader *l, const struct scorer *s)
{
    if (l->placement)
        placement_round(l->placement, s);
    agent_leader_touch(l);
}

void agent_leader_touch(struct agent_leader *l)
{
    if (l->report)
        agent_report_touch(l->report);
}

void agent_leader_render(const struct agent_leader *l)
{
    if (l->lease)
        metric_set(agent_state(l->o.agent)->metrics, METRIC_KUBE_UP, LV("leases", "cluster"),
                   !kube_lease_trouble(l->lease));
}

bool agent_leader_election(const struct agent_leader *l, struct agent_election *ret)
{
    if (l->lease)
        *ret = (struct agent_election){.leading = kube_lease_leading(l->lease),
                                       .identity = l->identity,
                                       .holder = kube_lease_holder(l->lease),
                                       .error = kube_lease_trouble(l->lease)};
    return l->lease;
}

void agent_leader_stop(struct agent_leader *l, void (*done)(void *arg), void *arg)
{
    if (l->lease)
        kube_lease_release(l->lease, done, arg);
    else
        done(arg);
}
