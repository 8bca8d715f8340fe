/* The hub's objects as one request has read them: lists that nobody changes any more. */
#pragma once

#include "controller/assist/kind.h"
#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define GENERATED_LABEL "dynamic-scoring-framework-mcp/generated" /* of the objects that plans become */
#define PLAN_ANNOTATION "dynamic-scoring.open-cluster-management.io/plan" /* the plan's hash */
#define PLACEMENT_LABEL "cluster.open-cluster-management.io/placement"    /* of a PlacementDecision */

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
