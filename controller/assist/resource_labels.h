/* What the labels of ManifestWorkReplicaSets and Policies say: what is requested and supplied, and for which
 * cluster a Policy is. Pure. */
#pragma once

#include <jansson.h>

struct api_error;
struct snapshot;

/* How labels begin that say what workloads request and Policies supply. */
#define REQUESTED "resource-request"
#define SUPPLIED  "resource-supply"

/* The name of the Placement that a ManifestWorkReplicaSet refers to first; NULL without. */
const char *workload_placement(const json_t *workload);
/* The cluster that a Policy says it is for; NULL if it says nothing. The first that applies: its label
 * cluster-name (*ret_by is "label"); the end of its name, if that is "-" and a ManagedCluster's name, the
 * longest of several ("name"). */
const char *policy_cluster(const struct snapshot *hub, const json_t *policy, const char **ret_by);

/* The label's value; NULL after the error. kind: of the object, for the error. */
const char *label_read(const json_t *object, const char *kind, const char *label, struct api_error *error);
/* Those that a plan depends on. A new reference. */
json_t *labels_that_count(const json_t *object);
