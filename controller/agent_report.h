/* The report: the ConfigMap `dynamic-scoring-status` in the agent's namespace, with the state of each
 * scorer, for the hub and for people without access to the agent. Its key `status` holds one JSON object,
 * small enough for a ManifestWork's feedback rule. Written by the leader alone. On the loop. */
#pragma once

struct agent;
struct agent_report;
struct kube;
struct placement;

struct agent_report_options {
    struct agent *agent;
    struct kube *cluster;
    struct kube *hub;                  /* whose clock the times are by; NULL: the agent's own */
    const struct placement *placement; /* what became of the scores there; NULL: none */
    const char *namespace;             /* not copied */
};

/* Writes the report, too. */
struct agent_report *agent_report_new(const struct agent_report_options *o);
/* Leaves the ConfigMap as it is. Takes NULL, returns NULL. */
struct agent_report *agent_report_free(struct agent_report *r);
/* Something may have changed. A new state or error is written soon, mere times later: a work agent copies
 * each write into its ManifestWork on the hub, which is then sent as a whole to all who watch it. Takes
 * NULL. */
void agent_report_touch(struct agent_report *r);
