/* What the optimiser knows of the hub: objects followed by watches, so that no request costs a list. While
 * the API server is away, the last known objects stay, and world_trouble() says so.
 *
 * Rights: list and watch on managedclusters, managedclustersets, managedclustersetbindings, placements,
 * placementdecisions and addonplacementscores (cluster.open-cluster-management.io), policies and
 * placementbindings (policy.open-cluster-management.io), manifestworkreplicasets
 * (work.open-cluster-management.io) and dynamicscorers (dynamic-scoring.open-cluster-management.io), in all
 * namespaces. For world_fetch.h: get on the manifestwork dynamic-scoring-config-manifestwork. */
#ifndef DS_ASSIST_STATE_WORLD_H
#define DS_ASSIST_STATE_WORLD_H

#include "controller/assist/rules/score_format.h"
#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/metric/metrics.h"

struct world;

enum world_kind {
    WORLD_CLUSTERS,     /* ManagedClusters: taints, hubAcceptsClient; clusterClaims, conditions, resources */
    WORLD_POLICIES,     /* those that people write, replicated ones are left out: disabled; compliance */
    WORLD_WORKLOADS,    /* ManifestWorkReplicaSets: spec.placementRefs; status */
    WORLD_SCORERS,      /* DynamicScorers */
    WORLD_PLACEMENTS,   /* whole */
    WORLD_DECISIONS,    /* PlacementDecisions: status.decisions */
    WORLD_BINDINGS,     /* PlacementBindings: placementRef, subjects */
    WORLD_SETS,         /* ManagedClusterSets: spec */
    WORLD_SET_BINDINGS, /* ManagedClusterSetBindings: spec, conditions */
    WORLD_SCORES,       /* AddOnPlacementScores: see struct world_score; world_get() has none of them */
    WORLD_KINDS
};

struct world_options {
    struct loop *loop;
    struct kube *kube;
    void (*synced)(void *arg); /* all kinds have been listed once, or are not installed; may be NULL */
    void *arg;
};

/* Starts the watches. -ENOMEM. */
MUST_USE int world_new(struct world **ret, const struct world_options *o);
struct world *world_free(struct world *w);
DEFINE_CLEANUP(struct world, world_free)

bool world_synced(const struct world *w);
/* The wall clock, by which scores expire. */
unix_ms world_now(const struct world *w);
/* Why a kind is not up to date, or not known at all; NULL if it is up to date. */
const char *world_trouble(const struct world *w, enum world_kind kind);
/* Whether the API server does not know the kind: its CRD is not installed. */
bool world_lacks_kind(const struct world *w, enum world_kind kind);
/* Whether the kind was listed at least once, or is not installed: an empty answer is then right. */
bool world_knows_kind(const struct world *w, enum world_kind kind);
/* Adds a sentence to an array of notes unless the kind is up to date: why, and how old its objects are.
 * -ENOMEM. */
MUST_USE int world_note(const struct world *w, enum world_kind kind, json_t *notes);
/* The resource of a kind, for requests. */
const struct kube_resource *world_resource(enum world_kind kind);
/* Sets the gauges kubernetes_up and kubernetes_last_answer_timestamp_seconds. Before each scrape. */
void world_set_metrics(const struct world *w, struct metrics *m);

/* An object with metadata (without managedFields) and what is named above; borrowed until the loop's next
 * turn. NULL without. `namespace` is "" for ManagedClusters and ManagedClusterSets. */
json_t *world_get(const struct world *w, enum world_kind kind, const char *namespace, const char *name);
/* Iterates over the objects of a kind, of a namespace (NULL: all), by namespace and name in ascending order.
 * Start with *at = 0; NULL after the last. */
json_t *world_next(const struct world *w, enum world_kind kind, const char *namespace, size_t *at);

/* ---- Scores, of which there are many ---- */

struct world_score {
    const char *namespace; /* the cluster */
    const char *name;
    unix_ms valid_until; /* 0: without an end */
    /* Of the items alone: scores written again with the same values keep it. The same in every process. */
    uint64_t hash;
    json_t *labels, *annotations;   /* equal ones are shared; NULL without */
    json_t *conditions;             /* those that say that something is wrong; NULL without */
    const struct world_item *items; /* ascending by name */
    size_t n_items;
    unsigned refs; /* beside the world's own */
};

/* Items by name, for qsort() and bsearch(). */
int world_item_compare(const void *a, const void *b);
/* NULL without. Borrowed until the loop's next turn. */
const struct world_score *world_score(const struct world *w, const char *namespace, const char *name);
/* Keeps a score, which nobody changes, longer: until world_score_release(). Loop's thread. */
const struct world_score *world_score_keep(const struct world_score *s);
/* Takes NULL. */
void world_score_release(const struct world_score *s);
/* As world_next(). */
const struct world_score *world_next_score(const struct world *w, const char *namespace, size_t *at);
bool world_score_is_expired(const struct world_score *s, unix_ms now);

#endif
