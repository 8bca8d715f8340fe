/* The hub's objects as one request has read them: lists that nobody changes any more. */
#ifndef DS_ASSIST_RULES_SNAPSHOT_H
#define DS_ASSIST_RULES_SNAPSHOT_H

#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/base/str.h"

#define GENERATED_LABEL "dynamic-scoring-framework-mcp/generated" /* of the objects that plans become */
#define PLAN_ANNOTATION "dynamic-scoring.open-cluster-management.io/plan" /* the plan's hash */
#define PLACEMENT_LABEL "cluster.open-cluster-management.io/placement"    /* of a PlacementDecision */

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
    KINDS
};

struct kind_info {
    const struct kube_resource *resource;
    const char *plural, *label_selector;
    bool is_optional; /* hubs without the kind are common */
};
extern const struct kind_info kind_info[KINDS];

/* An item of an AddOnPlacementScore. */
struct score_item {
    struct str name;
    int32_t value;
};

/* An AddOnPlacementScore in few bytes: 1,000 clusters with 20 scores of 100 items have two million items. */
struct score {
    const char *cluster, *name;
    unix_ms valid_until;      /* 0: without an end */
    bool is_expired;          /* when it was read */
    json_t *object;           /* without status.scores */
    struct score_item *items; /* ascending by name */
    size_t n_items;
};

struct snapshot_slot {
    const char *namespace, *name; /* of the value */
    void *value;                  /* json_t, or struct score */
};

struct snapshot_list {
    struct snapshot_slot *slots; /* ascending by namespace and name */
    size_t n, cap;
    bool lacks_kind; /* the API server does not know the kind: its CRD is not installed */
};

struct snapshot {
    unix_ms now; /* when it was read */
    struct snapshot_list lists[KINDS];
    json_t *work;       /* the ManifestWork asked for; NULL: there is none, or see below */
    char *work_trouble; /* why it could not be read; NULL: it could */
};

struct snapshot *snapshot_new(unix_ms now);
struct snapshot *snapshot_free(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot, snapshot_free)

/* Adds an object of a list, whose large members that no request needs are removed. */
void snapshot_add(struct snapshot *s, enum kind kind, json_t *object);
/* Sorts a list, once it is complete. */
void snapshot_sort(struct snapshot *s, enum kind kind);

/* The json_t, or struct score of KIND_SCORES; NULL without. `namespace` is "" for ManagedClusters. */
void *snapshot_get(const struct snapshot *s, enum kind kind, const char *namespace, const char *name);
/* The same, in order: start with *at = 0; NULL after the last. */
void *snapshot_next(const struct snapshot *s, enum kind kind, size_t *at);
/* Adds a sentence for each kind that is not installed. */
void snapshot_note_missing_kinds(const struct snapshot *s, json_t *notes);

#endif
