/* From names to numbers: builds the placement problem of a request from the hub's objects. */
#pragma once

#include "controller/assist/api.h"
#include "controller/assist/snapshot.h"
#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"
#include "exporter/base/strset.h"

/* How labels begin that say what workloads request and Policies supply. */
#define REQUESTED "resource-request"
#define SUPPLIED  "resource-supply"

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

/* -EINVAL with the error. Request and snapshot must outlive the model, and no other thread may use
 * them. */
MUST_USE int model_new(struct fleet_model **ret, const json_t *request, const struct snapshot *hub,
                       struct api_error *error);
/* Takes NULL, returns NULL. */
struct fleet_model *model_free(struct fleet_model *m);
DEFINE_CLEANUP(struct fleet_model, model_free)

/* [{"kind", "name", "what"}]: how the model's basis differs from an earlier one, `what` naming the members.
 * Where workloads run by Placements of the plan with this hash does not count. */
json_t *model_changes(const json_t *before, const struct fleet_model *now, const char *plan);

static inline double model_points(const struct fleet_model *m, int64_t units)
{
    return (double)units / m->per_point;
}

/* The namespace of a request, and the name of its score; NULL for several. */
const char *request_namespace(const json_t *request);
const char *request_score(const json_t *request);
/* The name of the Placement that a ManifestWorkReplicaSet refers to first; NULL without. */
const char *workload_placement(const json_t *workload);
/* The cluster that a Policy says it is for; NULL if it says nothing. The first that applies: its label
 * cluster-name (*ret_by is "label"); the end of its name, if that is "-" and a ManagedCluster's name, the
 * longest of several ("name"). */
const char *policy_cluster(const struct snapshot *hub, const json_t *policy, const char **ret_by);

/* n elements of the arena, zeroed. */
void *model_alloc(struct fleet_model *m, size_t n, size_t size);
/* Notes what the model depends on; the entry is taken. */
void model_note_basis(struct fleet_model *m, const char *kind, const char *name, json_t *entry);

/* ---- preference.c: -EINVAL with the error ---- */

/* One score, or several to be added up, for which the sum's format counts unless they have their own. */
MUST_USE int model_read_preference(struct fleet_model *m, struct api_error *error);
/* *ret: problem.scores. */
MUST_USE int model_read_scores(struct fleet_model *m, int16_t **ret, struct api_error *error);

/* Larger amounts are refused, so that sums of many do not overflow. */
#define QUANTITY_MAX INT64_C(1000000000000000)

/* A quantity of Kubernetes in thousandths, rounded up. False for what is no quantity, is negative, or exceeds
 * QUANTITY_MAX. */
bool quantity_parse(const char *text, int64_t *ret);

/* ---- outcome.c: what a plan says to those who asked, and the objects that it becomes ---- */

/* An object with all but output_yaml, planHash and applied. */
json_t *answer_make(const struct fleet_model *m, const struct solution *s);
/* A copy of at most max_bytes of JSON: output_yaml is left out and lists are cut if need be, with a note that
 * says so. */
json_t *answer_cut(const json_t *answer, size_t max_bytes);

/* A list: Placements of clusters, PlacementBindings, Placements of workloads. `id` are eight digits of names;
 * `hash` is the plan's. -EINVAL with an error if a Placement cannot select one of the clusters. */
MUST_USE int objects_make(json_t **ret, const struct fleet_model *m, const struct solution *s, uint32_t id,
                          const char *hash, struct api_error *error);

/* Appends the objects as YAML, `---` between them. -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);
