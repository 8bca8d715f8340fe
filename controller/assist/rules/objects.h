/* The objects that a plan becomes: for each cluster with a policy a Placement and a PlacementBinding, for
 * each workload the Placement that it refers to. */
#ifndef DS_ASSIST_RULES_OBJECTS_H
#define DS_ASSIST_RULES_OBJECTS_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"

#define POLICY_CLAIM "policy-watcher-claim"

/* A list: Placements of clusters, PlacementBindings, Placements of workloads. `id` are eight digits of names;
 * `hash` is the plan's. -EINVAL with an objection if a Placement cannot select one of the clusters. */
MUST_USE int objects_make(json_t **ret, const struct model *m, const struct solution *s, uint32_t id,
                          const char *hash, struct objection *ob);

/* Appends the objects as YAML, `---` between them. -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);

#endif
