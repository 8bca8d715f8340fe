/* In which order a Placement prefers clusters: the prioritizers of Open Cluster Management's placement
 * controller (v1.0), their weights, and the sums by which it sorts. */
#ifndef DS_ASSIST_OPERATIONS_PLACEMENT_RANK_H
#define DS_ASSIST_OPERATIONS_PLACEMENT_RANK_H

#include "exporter/base/def.h"

#include <jansson.h>
#include <stdbool.h>

struct world;

enum { RANK_PRIORITIZERS = 64 };

struct rank_prioritizer {
    const char *built_in;        /* NULL: a score of an add-on */
    const char *resource, *item; /* AddOnPlacementScore and the name of its value */
    int32_t weight;
};

struct rank_value {
    int64_t value;
    const char *missing; /* why it counts as 0: "missing", "expired"; NULL: it is there */
};

struct rank_cluster {
    const json_t *cluster;
    bool is_selected; /* by the Placement's decisions */
    int64_t total;
    struct rank_value *values; /* of each prioritizer */
};

struct rank {
    struct rank_prioritizer prioritizers[RANK_PRIORITIZERS];
    size_t n_prioritizers, n_left_out; /* left_out: configurations beyond RANK_PRIORITIZERS */
    const char *unknown_built_in;      /* of a newer placement controller; NULL: none */
    struct rank_cluster *clusters;     /* after rank_sort(): the preferred first */
    size_t n_clusters;
    struct rank_value *values;
};

/* Reads the prioritizers. */
void rank_init(struct rank *r, const json_t *placement);
/* Ranks clusters, whose array is copied; those that the decisions name are selected. -ENOMEM. */
MUST_USE int rank_clusters(struct rank *r, const struct world *w, const json_t *placement,
                           const json_t *const *clusters, size_t n, const json_t *decisions);
void rank_done(struct rank *r);

#endif
