/* The sink for Open Cluster Management's Placement: one AddOnPlacementScore a scorer, in the cluster's namespace on the hub.
 *
 * It is told of rounds rather than of batches, for scores, how long they are valid and why a round failed are written in one
 * patch. What an object should say is compared with what was written last: nothing is sent while both are the same and less
 * than half of validUntil is used up. At most one write of an object is under way; what changes meanwhile is written after it.
 *
 * Objects carry a label and the agent's name. Those that another made are left alone and reported. Those of this agent that no scorer
 * asks for, as the first list shows them, are deleted. Belongs to the loop. */
#ifndef DS_PLACEMENT_SINK_H
#define DS_PLACEMENT_SINK_H

#include "controller/kube/client.h"
#include "exporter/agent/agent.h"

struct placement;

struct placement_options {
    struct kube *hub;
    struct agent *agent; /* whose own metrics are to be rendered anew; NULL: none */
    struct metrics *metrics;
    const char *cluster_name; /* the namespace, and ${cluster}; not owned, as are the other strings */
    const char *owner; /* the same after a restart, another for another agent: "<namespace>/<add-on>" */
};

/* -ENOMEM. */
MUST_USE int placement_new(struct placement **ret, const struct placement_options *o);
/* Objects stay as they are. */
struct placement *placement_free(struct placement *p);
DEFINE_CLEANUP(struct placement, placement_free)

/* A round of the scorer has ended, or its scores have grown too old. */
void placement_round(struct placement *p, const struct scorer *s);
/* These are all scorers there are, in the order of the configuration; they must live until the next call. Of two with one object
 * name the first gets it. -ENOMEM: some have none for now. */
MUST_USE int placement_sync(struct placement *p, const struct scorer *const *scorers, size_t n);

/* What a person should know about this scorer's object; "" when all is well. */
const char *placement_trouble(const struct placement *p, const struct scorer *s);
/* Why nothing can be read from the hub; NULL when all is well or nothing is known yet. */
const char *placement_hub_trouble(const struct placement *p);
/* Objects that are not written as they should be, for now. */
size_t placement_behind(const struct placement *p);

#endif
