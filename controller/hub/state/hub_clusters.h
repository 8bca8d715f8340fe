/* Owns the clusters: the managed ones, and those that still have a ManifestWork of ours. */
#ifndef DS_HUB_CLUSTERS_H
#define DS_HUB_CLUSTERS_H

#include "controller/hub/state/state.h"

/* Has the ManifestWork written if it is not as it should be. */
void hub_cluster_reconcile(struct hub *h, struct hub_cluster *c);
/* After a write of the ManifestWork: reconciles, since the target may have changed, and frees a cluster
 * that is gone. */
void hub_cluster_written(struct hub *h, struct hub_cluster *c);
/* Before a plan: a cluster without a ManagedCluster has left. */
void hub_clusters_mark_left(struct hub *h);
struct hub_cluster *hub_cluster_free(struct hub_cluster *c);

void hub_managed_set(struct hub *h, json_t *object);
void hub_managed_delete(struct hub *h, const char *namespace, const char *name);
void hub_addon_set(struct hub *h, json_t *object);
void hub_addon_delete(struct hub *h, const char *namespace, const char *name);
void hub_work_set(struct hub *h, json_t *object);
void hub_work_delete(struct hub *h, const char *namespace, const char *name);

#endif
