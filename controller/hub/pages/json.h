/* The JSON of the hub's API. exporter/ui/README.md documents parameters and members. */
#ifndef DS_HUB_JSON_H
#define DS_HUB_JSON_H

#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/ui/list.h"

/* The overview, with the first scorers and clusters. Counts are at most a second old. -ENOMEM, -EFBIG. */
MUST_USE int hub_json_status(struct hub *h, const struct list_query *q, struct buf *into);
MUST_USE int hub_json_scorers(struct hub *h, const struct list_query *q, struct buf *into);
MUST_USE int hub_json_clusters(struct hub *h, const struct list_query *q, struct buf *into);
/* Clusters × scorers; the query selects clusters. */
MUST_USE int hub_json_pairs(struct hub *h, const struct list_query *q, struct buf *into);

/* One scorer with its clusters, one cluster with its scorers; the query selects these. -ENOENT when there is
 * none of the name. */
MUST_USE int hub_json_scorer(struct hub *h, const char *name, const struct list_query *q, struct buf *into);
MUST_USE int hub_json_cluster(struct hub *h, const char *name, const struct list_query *q, struct buf *into);

#endif
