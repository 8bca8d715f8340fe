/* Writes ManifestWorks by a queue of clusters, so that each waits for its own back-off only.
 * hub_clusters.c decides what to write. */
#ifndef DS_HUB_WORKS_H
#define DS_HUB_WORKS_H

#include "controller/hub/state/state.h"

/* written: called after each write, successful or not; may free the cluster. -ENOMEM. */
MUST_USE int hub_works_new(struct hub *h, void (*written)(struct hub *h, struct hub_cluster *c));
/* Cancels the writes under way. */
void hub_works_cancel(struct hub *h);
void hub_works_free(struct hub *h);
/* Takes a work from the watch into c->work, unless it is older than our last write. */
void hub_work_observe(struct hub *h, struct hub_cluster *c, const json_t *object);
/* Schedules a write of the cluster's ManifestWork. */
void hub_work_enqueue(struct hub *h, struct hub_cluster *c);
struct hub_body *hub_body_unref(struct hub_body *b);

#endif
