/* The agent's Kubernetes side: summaries from a ConfigMap and tokens from Secrets of its own cluster,
 * AddOnPlacementScores on the hub, and a ConfigMap with its report. Scoring goes on without an API server.
 *
 * Of several replicas only the holder of the Lease `<add-on>-agent` scores, writes and reports. */
#pragma once

#include "exporter/agent/agent.h"

struct agent_kube;
struct kube;

/* NULL where neither a flag nor the environment sets a value. Not copied. */
struct agent_kube_options {
    const char *hub_kubeconfig;     /* NULL: no AddOnPlacementScores */
    const char *managed_kubeconfig; /* of the agent's own cluster; NULL: the pod's service account */
    const char *cluster_name;
    const char *addon_namespace; /* of the agent, its Secrets and its ConfigMaps */
    const char *addon_name;
    bool adopt_unowned;    /* see struct placement_options */
    const char *configmap; /* with the summaries: "name" or "namespace/name" */
    bool leader_elect;     /* among replicas, by a Lease on the agent's own cluster; ignored with `once` */
    /* Reads the ConfigMap and the Secrets once, applies them, and writes nothing. The loop stops if that is
     * not possible, without a configuration, or if there are no scorers. */
    bool once;
};

/* Whether the summaries come from a cluster, not from the file. */
bool agent_kube_has_cluster(const struct agent_kube_options *o);

/* Before the first configuration is applied; adds a sink to the agent. secrets: whether tokens come from
 * Secrets, not from files. */
struct agent_kube *agent_kube_new(struct agent *a, const struct agent_kube_options *o, bool secrets);
/* Before the agent is freed. Takes NULL, returns NULL. */
struct agent_kube *agent_kube_free(struct agent_kube *k);
/* For the agent's hooks; NULL when tokens come from files. */
struct secrets *agent_kube_secrets(struct agent_kube *k);
/* For the agent's hooks: the metrics of the Lease and of the hub's clock, and how the leader is elected. The
 * first takes NULL. */
void agent_kube_render(const struct agent_kube *k);
bool agent_kube_election(const struct agent_kube *k, struct agent_election *ret);
/* Stops leading, releases the Lease within 5 s and calls `done`; at once without an election. Takes NULL. */
void agent_kube_stop(struct agent_kube *k, void (*done)(void *arg), void *arg);
/* The client of the agent's own cluster; NULL without one. Takes NULL. */
struct kube *agent_kube_cluster(struct agent_kube *k);
/* Applies the first configuration: no scorers until the ConfigMap has been read, or the file. */
MUST_USE int agent_kube_start(struct agent_kube *k);
