/* The hub's objects as one request has read them: lists that nobody changes any more. */
#pragma once

#include "controller/assist/api.h"
#include "controller/kube/client.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/clock.h"

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
    KINDS,
    KIND_WORK = KINDS /* not listed: the ManifestWork that the hub's controller writes for a cluster */
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
    json_t *work;     /* of KIND_WORK, if it was asked for; NULL: there is none, or see below */
    char *work_error; /* why it could not be read; NULL: it could */
};

struct snapshot *snapshot_new(unix_ms now);
struct snapshot *snapshot_free(struct snapshot *s);

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

/* ---- Reading: page by page, when a request comes; nothing is kept ----
 *
 * Between requests one object of each kind is listed every half a minute, so that the page, the gauges,
 * /readyz and the log say what cannot be read before somebody asks for it. */

struct snapshot_reader;

/* The status of a request that failed because the API server answered so. */
unsigned reader_status(enum kube_verdict verdict);

enum { READER_MAX_READS = 16 }; /* at once; further ones end with 503 */

#define KIND_BIT(kind) (1u << (kind))

/* What to read. The strings must live until `done`. */
struct reader_query {
    unsigned kinds;             /* of KIND_BIT() */
    const char *namespace;      /* of all but ManagedClusters and scores; NULL: all */
    const char *cluster;        /* the only one of which ManagedClusters and scores are read; NULL: all */
    const char *score;          /* name of the scores; NULL: all */
    const char *label_selector; /* NULL: that of the kind */
};

/* `s` is owned by the callee; NULL after a failure. May free anything but the reader. */
typedef void (*reader_done_fn)(void *arg, struct snapshot *s, const struct api_error *failure);

struct snapshot_reader *reader_new(struct loop *loop, struct kube *k);
/* Reads under way end with 503. Takes NULL, returns NULL. */
struct snapshot_reader *reader_free(struct snapshot_reader *r);

/* Ends with `done`, now or within a minute. A kind that is not installed is an empty list; whatever else
 * cannot be listed is a failure. */
void reader_read(struct snapshot_reader *r, const struct reader_query *q, reader_done_fn done, void *arg);
/* Fills in the answer of a call that has read the hub, on a worker's thread. */
void snapshot_fill(struct call *c);

/* Whether each kind has been listed once, or is not installed. */
bool reader_is_synced(const struct snapshot_reader *r);
/* Why a kind could not be listed the last time; NULL if it could. */
const char *reader_error(const struct snapshot_reader *r, enum kind kind);
/* Sets the gauges kubernetes_up and kubernetes_last_answer_timestamp_seconds. Before each scrape. */
void reader_set_metrics(const struct snapshot_reader *r, struct metrics *m);
