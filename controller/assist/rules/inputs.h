/* All that a plan is made from: the request, and what the hub says about the objects that it names. */
#ifndef DS_ASSIST_RULES_INPUTS_H
#define DS_ASSIST_RULES_INPUTS_H

#include "controller/assist/rules/request.h"
#include "controller/assist/rules/score_format.h"

/* Label of the objects that plans become, and annotation with the plan's hash. */
#define GENERATED_LABEL "dynamic-scoring-framework-mcp/generated"
#define PLAN_ANNOTATION "dynamic-scoring.open-cluster-management.io/plan"
#define PLACEMENT_LABEL "cluster.open-cluster-management.io/placement" /* of a PlacementDecision */

/* An AddOnPlacementScore of a cluster. */
struct input_score {
    bool exists, is_expired;
    const struct world_item *items;
    size_t n_items;
};

/* Objects are NULL where the hub has none. They are shared with the loop's thread: nobody changes them. */
struct inputs {
    const struct plan_request *request;
    json_t **clusters;          /* [cluster]: ManagedCluster */
    json_t **policies;          /* [request_cluster.first_policy + policy] */
    json_t **workloads;         /* [workload]: ManifestWorkReplicaSet */
    json_t **placements;        /* [workload]: the Placement that its first placementRef names */
    struct input_score *scores; /* [cluster * n_scores + score] */
    json_t **decisions;         /* PlacementDecisions of the namespace */
    size_t n_decisions;
    json_t **generated; /* Placements and PlacementBindings with the label in the namespace */
    size_t n_generated;
    bool has_cel; /* the hub's Placements know celSelector */
    bool
        lacks_set_binding; /* the namespace has no ManagedClusterSetBinding: Placements there select nobody */
};

/* The name of the Placement that a ManifestWorkReplicaSet refers to first; NULL without. */
const char *input_placement_name(const json_t *workload);

#endif
