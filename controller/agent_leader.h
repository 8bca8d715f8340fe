/* What only one of an agent's replicas does: it scores, writes AddOnPlacementScores, and reports. With an
 * election the leader is the holder of the Lease `<add-on>-agent` in the agent's namespace on its own
 * cluster, and the others stand by. A new leader continues the objects as an agent does after a restart. */
#ifndef DS_CONTROLLER_AGENT_LEADER_H
#define DS_CONTROLLER_AGENT_LEADER_H

#include "controller/kube/client.h"
#include "exporter/agent/agent.h"

struct agent_leader;

struct agent_leader_options {
    struct agent *agent;
    struct kube *hub, *cluster; /* NULL: no AddOnPlacementScores; no report. Not owned, as are all */
    const char *cluster_name, *namespace, *addon_name;
    const char *owner; /* of AddOnPlacementScores */
    bool adopt_unowned;
    bool elect; /* requires `cluster`; without, this agent leads */
};

/* Before the first configuration is applied. -ENOMEM. */
MUST_USE int agent_leader_new(struct agent_leader **ret, const struct agent_leader_options *o);
/* Leaves the Lease as it is. Takes NULL, returns NULL. */
struct agent_leader *agent_leader_free(struct agent_leader *l);
DEFINE_CLEANUP(struct agent_leader, agent_leader_free)

/* The next four do nothing on a standby. The agent has applied scorers that are those of the cluster: */
void agent_leader_sync(struct agent_leader *l);
/* A round has ended, or scores have expired. */
void agent_leader_round(struct agent_leader *l, const struct scorer *s);
/* Something else that the report shows may have changed. */
void agent_leader_touch(struct agent_leader *l);
/* Brings the metric of the Lease up to date. */
void agent_leader_render(const struct agent_leader *l);
/* For the agent's hook. */
bool agent_leader_election(const struct agent_leader *l, struct agent_election *ret);
/* Stops leading and releases the Lease, then calls `done`: at once without an election, else within 5 s. */
void agent_leader_stop(struct agent_leader *l, void (*done)(void *arg), void *arg);

#endif
