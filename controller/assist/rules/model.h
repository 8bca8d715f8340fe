/* From names to numbers: builds the placement problem of a request. */
#ifndef DS_ASSIST_RULES_MODEL_H
#define DS_ASSIST_RULES_MODEL_H

#include "controller/assist/rules/request.h"
#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"
#include "exporter/base/map.h"
#include "exporter/base/str.h"

#include <string.h>

/* Label of the objects that plans become, and annotation with the plan's hash. */
#define GENERATED_LABEL "dynamic-scoring-framework-mcp/generated"
#define PLAN_ANNOTATION "dynamic-scoring.open-cluster-management.io/plan"
#define PLACEMENT_LABEL "cluster.open-cluster-management.io/placement" /* of a PlacementDecision */

/* An AddOnPlacementScore of a cluster. */
struct input_score {
    bool exists, is_expired;
    const struct score_item *items;
    size_t n_items;
};

/* Objects are NULL where the hub has none. They are shared with the loop's thread: nobody changes them. */
struct inputs {
    const struct plan_request *request;
    json_t **clusters;          /* [cluster]: ManagedCluster */
    json_t **policies;          /* [request_cluster.first_policy + policy] */
    json_t **workloads;         /* [workload]: ManifestWorkReplicaSet */
    json_t **placements;        /* [workload]: the Placement that its first placementRef names */
    struct input_score *scores; /* [cluster * n_scores + score] */
    json_t **decisions;         /* PlacementDecisions of the namespace */
    size_t n_decisions;
    json_t **generated; /* Placements and PlacementBindings with the label in the namespace */
    size_t n_generated;
    bool has_cel; /* the hub's Placements know celSelector */
    bool
        lacks_set_binding; /* the namespace has no ManagedClusterSetBinding: Placements there select nobody */
};

/* The name of the Placement that a ManifestWorkReplicaSet refers to first; NULL without. */
const char *input_placement_name(const json_t *workload);

struct model_workload {
    const char *name, *app, *placement;
    size_t request; /* index in the request and in the inputs */
    uint32_t app_id, kind_id;
    bool lost_to_rules; /* a pin or forbid took a possible place from it */
    bool has_kind;      /* a policy supplies its kind */
};

struct model_site {
    size_t
        cluster; /* index in the request; SIZE_MAX for a cluster that is not in it, where a workload runs */
    const char *cluster_name;
    uint32_t kind_id;
};

struct model_setting {
    uint32_t site;
    const char *policy, *device;
    size_t input; /* index of the policy in the inputs */
};

struct model_missing {
    uint32_t workload, setting;
};

enum { MODEL_MISSING_SHOWN = 20, MODEL_MAX_RESOURCES = 16 };

struct model {
    const struct inputs *in;
    struct problem problem;
    struct model_workload *workloads; /* ascending by name, as the problem has them */
    struct model_site *sites; /* ascending by cluster and kind; then those that only have running ones */
    struct model_setting *settings;
    struct map kind_ids, app_ids; /* name → id + 1 */
    const char **kinds, **apps;
    size_t n_kinds, n_apps;
    const char *extra[MODEL_MAX_RESOURCES]; /* resources beside the main one; resource i + 1 of the problem */
    size_t n_extra;
    double per_point; /* multiples of the problem's unit in one point of the score */
    bool is_rounded;
    struct model_missing missing[MODEL_MISSING_SHOWN];
    size_t n_missing, n_expired;
    uint64_t *score_hashes; /* [cluster * n_scores + score]: of the values that count */
    struct arena arena;
};

/* -EINVAL with the objection. The inputs must outlive the model. */
MUST_USE int model_new(struct model **ret, const struct inputs *in, struct objection *ob);
/* Takes NULL, returns NULL. */
struct model *model_free(struct model *m);
DEFINE_CLEANUP(struct model, model_free)

/* For qsort() and bsearch(). */
int model_u32_compare(const void *a, const void *b);

static inline double model_points(const struct model *m, int64_t units)
{
    return (double)units / m->per_point;
}

/* n elements of the arena, zeroed; not for n = 0. */
static inline void *model_alloc(struct model *m, size_t n, size_t size)
{
    return memset(arena_alloc(&m->arena, n * size), 0, n * size);
}

/* ---- model_scores.c: -EINVAL with the objection ---- */

/* The scores of all workloads with all settings. */
MUST_USE int model_read_scores(struct model *m, struct objection *ob);
/* Pins and forbidden places. */
MUST_USE int model_apply_rules(struct model *m, struct objection *ob);
/* Spreading. */
MUST_USE int model_read_limits(struct model *m, struct objection *ob);

/* Larger amounts are refused, so that sums of many do not overflow. */
#define QUANTITY_MAX INT64_C(1000000000000000)

/* Thousandths, rounded up. False for what is no quantity, is negative, or exceeds QUANTITY_MAX. */
bool quantity_parse(struct str text, int64_t *ret);

#endif
