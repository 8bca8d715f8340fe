/* From names to numbers: builds the placement problem of a request. */
#ifndef DS_ASSIST_RULES_MODEL_H
#define DS_ASSIST_RULES_MODEL_H

#include "controller/assist/rules/inputs.h"
#include "controller/assist/rules/objection.h"
#include "controller/optimize/problem.h"
#include "exporter/base/arena.h"
#include "exporter/base/map.h"

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

/* -EINVAL with the objection; -ENOMEM. The inputs must outlive the model. */
MUST_USE int model_new(struct model **ret, const struct inputs *in, struct objection *ob);
/* Takes NULL, returns NULL. */
struct model *model_free(struct model *m);
DEFINE_CLEANUP(struct model, model_free)

/* For qsort() and bsearch(): pairs by workload, then site; and numbers. */
int model_pair_compare(const void *a, const void *b);
int model_u32_compare(const void *a, const void *b);

static inline double model_points(const struct model *m, int64_t units)
{
    return (double)units / m->per_point;
}

#endif
