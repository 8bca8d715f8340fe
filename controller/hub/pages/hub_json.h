/* The JSON of the hub's API: exporter/ui/README.md says what its members mean. On the loop. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/hub.h"
#include "exporter/base/buf.h"
#include "exporter/ui/list.h"

/* What one answer is made of. */
struct answer_view {
    struct hub *hub;
    struct fleet f;
    struct hub_self self;
};

/* Each appends the answer to a path of lists, with the items that the query asks for. -EFBIG. */
MUST_USE int hub_json_status(const struct answer_view *v, const struct list_query *q, struct buf *into);
MUST_USE int hub_json_scorers(const struct answer_view *v, const struct list_query *q, struct buf *into);
MUST_USE int hub_json_clusters(const struct answer_view *v, const struct list_query *q, struct buf *into);
/* Clusters by scorers: the state of each pair as its place in a legend. */
MUST_USE int hub_json_pairs(const struct answer_view *v, const struct list_query *q, struct buf *into);

/* One object, and its pairs. -ENOENT: there is none of this name; -EFBIG. */
MUST_USE int hub_json_scorer(const struct answer_view *v, const char *name, const struct list_query *q,
                             struct buf *into);
MUST_USE int hub_json_cluster(const struct answer_view *v, const char *name, const struct list_query *q,
                              struct buf *into);
