/* The adjustments of a DynamicScoringConfig, spec.adjustments: which clusters each is for, and what it
 * does to which scores (controller/placement/adjust.h). Pure; any thread. */
#pragma once

#include "controller/placement/adjust.h"

struct fleet_adjustment {
    struct adjustment what;
    const char *cluster;    /* names of clusters: `*` matches any characters, `?` one; NULL: by selector */
    const json_t *selector; /* labelSelector and claimSelector, as in a Placement's predicate */
};

struct fleet_adjustments {
    json_t *owner; /* a reference: strings and selectors are its */
    struct fleet_adjustment *list;
    size_t n;
    bool has_selectors;
};

/* Parses spec.adjustments. object: the whole DynamicScoringConfig, of which a reference is kept. -EINVAL
 * with the first error in `why`: "spec.adjustments[2]: expected exactly one of add and set". */
MUST_USE int fleet_adjustments_read(struct fleet_adjustments *ret, json_t *object, struct buf *why);
struct fleet_adjustments fleet_adjustments_copy(const struct fleet_adjustments *a);
void fleet_adjustments_done(struct fleet_adjustments *a);

/* What selectors look at of a ManagedCluster, as text that is the same for the same labels and claims; on
 * the heap: {"claims":{"region.open-cluster-management.io":"eu"},"labels":{"environment":"prod"}} */
char *cluster_attributes(const json_t *managed_cluster);
/* Whether the adjustment is for that cluster. attributes: of cluster_attributes(), parsed; NULL: none. */
bool fleet_adjustment_selects(const struct fleet_adjustment *a, const char *cluster,
                              const json_t *attributes);
/* Appends the list that a cluster's ConfigMap has: entries whose bit is set, in their order; nothing if
 * none is. */
void fleet_adjustments_text(const struct fleet_adjustments *a, const uint64_t *set, struct buf *into);
