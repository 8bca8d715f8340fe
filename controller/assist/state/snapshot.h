/* The hub's objects as one request has read them: lists that nobody changes any more. */
#ifndef DS_ASSIST_STATE_SNAPSHOT_H
#define DS_ASSIST_STATE_SNAPSHOT_H

#include "controller/assist/rules/request.h"
#include "controller/kube/client.h"
#include "exporter/base/clock.h"

/* Objects have apart from name, namespace, labels and annotations only what is named here. */
enum kind {
    KIND_CLUSTERS,     /* ManagedClusters: hubAcceptsClient; clusterClaims, conditions */
    KIND_POLICIES,     /* those that people write, without replicated ones: disabled; compliance */
    KIND_WORKLOADS,    /* ManifestWorkReplicaSets: placementRefs */
    KIND_SCORERS,      /* DynamicScorers: spec, most of the status */
    KIND_PLACEMENTS,   /* no more */
    KIND_DECISIONS,    /* PlacementDecisions: status.decisions */
    KIND_BINDINGS,     /* PlacementBindings: placementRef, subjects */
    KIND_SET_BINDINGS, /* ManagedClusterSetBindings: no more */
    KIND_SCORES,       /* AddOnPlacementScores: see struct score */
    KINDS
};

struct kind_info {
    const struct kube_resource *resource;
    const char *plural, *label_selector;
    bool is_optional; /* hubs without the kind are common */
};
extern const struct kind_info kind_info[KINDS];

/* An AddOnPlacementScore in few bytes: 1,000 clusters with 20 scores of 100 items have two million items. */
struct score {
    const char *cluster, *name;
    unix_ms valid_until;            /* 0: without an end */
    bool is_expired;                /* when it was read */
    json_t *object;                 /* metadata, and status.conditions */
    const struct score_item *items; /* ascending by name */
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
    unsigned refs; /* beside the first */
    unix_ms now;   /* when it was read */
    struct snapshot_list lists[KINDS];
    bool has_cel;       /* the hub's Placements know celSelector; set if that was asked for */
    json_t *work;       /* the ManifestWork asked for; NULL: there is none, or see below */
    char *work_trouble; /* why it could not be read; NULL: it could */
};

struct snapshot *snapshot_new(unix_ms now);
/* Loop's thread, as snapshot_free(). */
struct snapshot *snapshot_ref(const struct snapshot *s);
struct snapshot *snapshot_free(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot, snapshot_free)

/* Adds an object of a list. */
void snapshot_add(struct snapshot *s, enum kind kind, json_t *object);
/* Sorts a list, once it is complete. */
void snapshot_sort(struct snapshot *s, enum kind kind);

/* `namespace` is "" for ManagedClusters. NULL without. Not for scores. */
json_t *snapshot_get(const struct snapshot *s, enum kind kind, const char *namespace, const char *name);
/* The objects in order: start with *at = 0; NULL after the last. Not for scores. */
json_t *snapshot_next(const struct snapshot *s, enum kind kind, size_t *at);
/* The same for scores. */
const struct score *snapshot_score(const struct snapshot *s, const char *cluster, const char *name);
const struct score *snapshot_next_score(const struct snapshot *s, size_t *at);
/* Adds a sentence for each kind that is not installed. */
void snapshot_note_missing_kinds(const struct snapshot *s, json_t *notes);

#endif
