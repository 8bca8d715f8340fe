/* The agent's Kubernetes side: scorers from a ConfigMap and tokens from Secrets of its own cluster,
 * placement scores to the hub, and a ConfigMap that says how it goes. Each API server fails on its own,
 * and scoring goes on without either. */
#ifndef DS_CONTROLLER_AGENT_KUBE_H
#define DS_CONTROLLER_AGENT_KUBE_H

#include "exporter/agent/agent.h"

struct agent_kube;

/* NULL where flags and environment say nothing. Not copied. */
struct agent_kube_options {
    const char *hub_kubeconfig;     /* no placement scores without */
    const char *managed_kubeconfig; /* of the own cluster; NULL: as a pod in it */
    const char *cluster_name;
    const char *addon_namespace; /* where the agent runs: its Secrets and its ConfigMaps */
    const char *addon_name;
    const char *configmap; /* "name" or "namespace/name" of the summaries */
};

/* Fills in what the environment says: HUB_KUBECONFIG, CLUSTER_NAME, INSTALL_NAMESPACE. True when the agent
 * is one on Kubernetes: by a kubeconfig, a namespace or a ConfigMap. */
bool agent_kube_options_complete(struct agent_kube_options *o);
/* Whether there is a cluster to read the summaries from; otherwise they are the file's. */
bool agent_kube_has_cluster(const struct agent_kube_options *o);

/* Before the first configuration is applied. secrets: whether tokens come from Secrets, not from files.
 * -ENOMEM. */
MUST_USE int agent_kube_new(struct agent_kube **ret, struct agent *a, const struct agent_kube_options *o,
                            bool secrets);
/* Before the agent is freed. Takes NULL, returns NULL. */
struct agent_kube *agent_kube_free(struct agent_kube *k);
DEFINE_CLEANUP(struct agent_kube, agent_kube_free)
/* For the agent's hooks. agent_kube_secrets(): NULL when tokens come from files. */
void agent_kube_applied(struct agent_kube *k);
void agent_kube_round(struct agent_kube *k, const struct scorer *s);
struct secrets *agent_kube_secrets(struct agent_kube *k);
/* Applies the first configuration: no scorers until the ConfigMap has been read, or the file. */
MUST_USE int agent_kube_start(struct agent_kube *k);

#endif
