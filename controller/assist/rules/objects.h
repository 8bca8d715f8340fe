/* The objects that a plan becomes: for each cluster with a policy a Placement and a PlacementBinding, for
 * each workload the Placement that it refers to. */
#ifndef DS_ASSIST_RULES_OBJECTS_H
#define DS_ASSIST_RULES_OBJECTS_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"

#include <jansson.h>

#define POLICY_CLAIM "policy-watcher-claim"

/* What tells the objects of a run from those of others. */
struct objects_run {
    uint32_t id;      /* eight digits of a name */
    const char *hash; /* of the plan */
};

/* A list: Placements of clusters, PlacementBindings, Placements of workloads. -EINVAL with an objection if a
 * Placement cannot select one of the clusters. */
MUST_USE int objects_make(json_t **ret, const struct model *m, const struct solution *s,
                          const struct objects_run *run, struct objection *ob);

/* Appends the objects, `---` between them. Strings that YAML might take for something else are in double
 * quotes. -ENOMEM, -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);

#endif
