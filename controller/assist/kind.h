/* The kinds of objects that the optimizer reads on the hub. */
#pragma once

#include "controller/kube/resource.h"

#include <stdbool.h>

enum kind {
    KIND_CLUSTERS,
    KIND_POLICIES, /* those that people write, without replicated ones */
    KIND_WORKLOADS,
    KIND_SCORERS,
    KIND_PLACEMENTS,
    KIND_DECISIONS,
    KIND_BINDINGS,
    KIND_SET_BINDINGS,
    KIND_SCORES, /* see struct score */
    KINDS,
    KIND_WORK = KINDS /* not listed: the ManifestWork that the hub's controller writes for a cluster */
};

struct kind_info {
    const struct kube_resource *resource;
    const char *plural, *label_selector;
    bool is_optional; /* hubs without the kind are common */
};
extern const struct kind_info kind_info[KINDS];

#define KIND_BIT(kind) (1u << (kind))
