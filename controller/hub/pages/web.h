/* The controller's HTTP endpoints: /metrics, the pages and their JSON on one address, /healthz and /readyz
 * on another. */
#ifndef DS_HUB_WEB_H
#define DS_HUB_WEB_H

#include "controller/hub/state/state.h"
#include "exporter/base/buf.h"
#include "exporter/ui/site.h"

/* Sets the role's part of *o. Call site_stop() before the hub is freed. On failure *ret_why (from malloc)
 * says what is wrong. */
MUST_USE int hub_web_start(struct site **ret, struct hub *h, struct site_options *o, char **ret_why);

/* ---- json.c: the JSON of the API, as exporter/ui/README.md documents it. -EFBIG ---- */

/* The overview, with the first scorers and clusters. Counts are at most a second old. */
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
