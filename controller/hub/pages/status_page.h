/* The hub's page for people and the same as JSON. */
#ifndef DS_HUB_STATUS_PAGE_H
#define DS_HUB_STATUS_PAGE_H

#include "controller/hub/state/hub.h"

/* HTML without script, in the agent's style: totals, scorers, scorers × clusters, clusters that need attention. -ENOMEM, -EFBIG. */
MUST_USE int hub_html(struct hub *h, struct buf *into);
MUST_USE int hub_json(struct hub *h, struct buf *into);

/* Of one scorer, with all clusters; of one cluster, with all scorers. -ENOENT when there is none of that name. */
MUST_USE int hub_html_scorer(struct hub *h, const char *name, struct buf *into);
MUST_USE int hub_html_cluster(struct hub *h, const char *name, struct buf *into);
MUST_USE int hub_json_scorer(struct hub *h, const char *name, struct buf *into);
MUST_USE int hub_json_cluster(struct hub *h, const char *name, struct buf *into);

#endif
