/* What the optimiser knows of the hub: objects followed by watches, so that no request costs a list. */
#ifndef DS_ASSIST_STATE_WORLD_H
#define DS_ASSIST_STATE_WORLD_H

#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/metric/metrics.h"

struct world;

enum world_kind {
    WORLD_CLUSTERS,  /* ManagedClusters: metadata, labels, status.clusterClaims, conditions */
    WORLD_POLICIES,  /* those that people write; replicated ones are left out */
    WORLD_WORKLOADS, /* ManifestWorkReplicaSets: metadata, spec.placementRefs, status.summary */
    WORLD_SCORERS,   /* DynamicScorers */
    WORLD_PLACEMENTS,
    WORLD_DECISIONS, /* PlacementDecisions */
    WORLD_BINDINGS,  /* PlacementBindings */
    WORLD_SCORES,    /* AddOnPlacementScores: see struct world_score; world_get() has none of them */
    WORLD_KINDS
};

struct world_options {
    struct loop *loop;
    struct kube *kube;
    struct metrics *metrics;
    void (*synced)(void *arg); /* all kinds have been listed once, or are not installed; may be NULL */
    void *arg;
};

/* Starts the watches. -ENOMEM. */
MUST_USE int world_new(struct world **ret, const struct world_options *o);
struct world *world_free(struct world *w);
DEFINE_CLEANUP(struct world, world_free)

bool world_synced(const struct world *w);
/* Why a kind is not up to date: the trouble of its watch; NULL if it is. */
const char *world_trouble(const struct world *w, enum world_kind kind);
/* The resource of a kind, for requests. */
const struct kube_resource *world_resource(enum world_kind kind);

/* An object, cut to what is named above; borrowed until the loop's next turn. NULL without. `namespace` is ""
 * for ManagedClusters. */
json_t *world_get(const struct world *w, enum world_kind kind, const char *namespace, const char *name);
/* Iterates over the objects of a kind, of a namespace (NULL: all), by namespace and name in ascending order.
 * Start with *at = 0; NULL after the last. */
json_t *world_next(const struct world *w, enum world_kind kind, const char *namespace, size_t *at);

/* ---- Scores, of which there are many ---- */

struct world_item {
    struct str name;
    int32_t value;
};

struct world_score {
    const char *namespace; /* the cluster */
    const char *name;
    unix_ms valid_until;            /* 0: without an end */
    uint64_t hash;                  /* of all that is here */
    json_t *metadata;               /* name, namespace, labels, annotations, resourceVersion */
    json_t *conditions;             /* status.conditions; NULL without */
    const struct world_item *items; /* ascending by name */
    size_t n_items;
};

/* NULL without. */
const struct world_score *world_score(const struct world *w, const char *namespace, const char *name);
/* As world_next(). */
const struct world_score *world_next_score(const struct world *w, const char *namespace, size_t *at);
bool world_score_is_expired(const struct world_score *s, unix_ms now);

#endif
