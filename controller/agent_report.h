/* The ConfigMap `dynamic-scoring-status` in the agent's namespace: the state of each scorer, for the hub
 * and for people without access to the agent. Its key `status` holds one JSON object, small enough for a
 * ManifestWork's feedback rule. */
#ifndef DS_CONTROLLER_AGENT_REPORT_H
#define DS_CONTROLLER_AGENT_REPORT_H

#include "controller/placement/placement.h"
#include "exporter/agent/agent.h"

#define REPORT_CONFIGMAP "dynamic-scoring-status"

struct agent_report;

struct agent_report_options {
    const struct agent_state *agent;
    struct kube *cluster;
    const struct placement *placement; /* NULL: none. Not owned, as are all */
    const struct kube *hub;            /* of the placement; NULL without one */
    const char *namespace;
};

/* -ENOMEM. */
struct agent_report *agent_report_new(const struct agent_report_options *o);
struct agent_report *agent_report_free(struct agent_report *r);
/* Something may have changed. A new state or error is written soon, mere times within five minutes: a work
 * agent copies each write into its ManifestWork on the hub, which is then sent as a whole to all who watch
 * it. */
void agent_report_touch(struct agent_report *r);

#endif
