/* Which clusters a Policy is for. Policies do not say so themselves, so the first of these that applies
 * decides:
 *   1. the label cluster-name of the Policy, as ManagedClusters carry it;
 *   2. its name, if it ends in "-" and the name of a ManagedCluster: the longest such name;
 *   3. a PlacementBinding of another hand: the clusters that its Placement has selected;
 *   4. else it is for any cluster. */
#ifndef DS_ASSIST_OPERATIONS_POLICY_CLUSTERS_H
#define DS_ASSIST_OPERATIONS_POLICY_CLUSTERS_H

#include <jansson.h>

struct world;

/* A new array of names; empty: any cluster. *ret_by is "label", "name", "binding" or "any". decisions: of
 * decisions_index(). NULL when out of memory. */
json_t *policy_clusters(const struct world *w, const json_t *policy, const json_t *decisions,
                        const char **ret_by);

#endif
