/* The placement problem of a request: from names to numbers, and back. */
#pragma once

#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"
#include "exporter/base/strset.h"

#include <jansson.h>
#include <stdbool.h>

struct snapshot;

struct model_workload {
    const char *name, *app, *placement, *kind;
    const json_t *object; /* ManifestWorkReplicaSet */
    size_t at;            /* in the request */
    uint32_t app_id, kind_id;
    bool lost_to_rules; /* a pin or forbid took a possible place from it */
};

struct model_site {
    size_t cluster; /* SIZE_MAX for a cluster that is not in the request, where a workload runs */
    const char *cluster_name, *kind;
    uint32_t kind_id;
};

struct model_setting {
    const json_t *object; /* Policy */
    const char *cluster_name, *policy, *kind, *device;
    size_t cluster, at; /* in the request */
    uint32_t site;
};

enum { MODEL_MAX_RESOURCES = 16, MODEL_MAX_SCORES = 8, MODEL_MISSING_SHOWN = 20 };

struct model_score {
    const char *name;
    /* How its items are named: `scoreDimensionFormat`, such as "${app};${device}". A placeholder matches at
     * least one byte, others than these two any text; the text around placeholders is literal.
     * Placeholders that no DynamicScorer's format can have are refused. */
    const char *format;
    double weight;
};

struct fleet_model {
    const json_t *request; /* keeps the schema plan_request; has the strings, as the hub's objects do */
    const struct snapshot *hub;
    const char *namespace;
    struct opt_problem problem;
    const json_t **clusters; /* ManagedClusters, as in the request */
    size_t n_clusters;
    struct model_workload *workloads; /* ascending by name, as the problem has them */
    struct model_site *sites; /* ascending by cluster and kind; then those that only have running ones */
    struct model_setting *settings;
    struct model_score scores[MODEL_MAX_SCORES];
    size_t n_scores;
    const char *extra[MODEL_MAX_RESOURCES]; /* resources beside the main one; resource i + 1 of the problem */
    size_t n_extra;
    double per_point; /* scale from the request's scores to the problem's whole numbers */
    bool is_rounded;
    json_t *missing; /* [{"workload", "cluster", "device"}]: the first combinations without a score */
    size_t n_missing, n_expired;
    json_t *basis;             /* {"<Kind>/<name>": {...}}: what the model depends on */
    struct strset apps, kinds; /* by app_id, kind_id */
    struct strset cluster_names, workload_names, placements; /* by index */
    struct arena arena;
};

/* Empty: what request_make_model() begins with. Request and snapshot must outlive the model, and no other
 * thread may use them. */
struct fleet_model *model_new(const json_t *request, const char *namespace, const struct snapshot *hub);
/* Takes NULL, returns NULL. */
struct fleet_model *model_free(struct fleet_model *m);
DEFINE_CLEANUP(struct fleet_model, model_free)

static inline double model_points(const struct fleet_model *m, int64_t units)
{
    return (double)units / m->per_point;
}

/* n elements of the arena, zeroed. */
void *model_alloc(struct fleet_model *m, size_t n, size_t size);
