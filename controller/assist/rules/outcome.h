/* What a plan says to those who asked, and the objects that it becomes: for each cluster with a policy a
 * Placement and a PlacementBinding, for each workload the Placement that it refers to. */
#ifndef DS_ASSIST_RULES_OUTCOME_H
#define DS_ASSIST_RULES_OUTCOME_H

#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"

/* An object with all but output_yaml, planHash and applied. */
json_t *answer_make(const struct model *m, const struct solution *s);
/* A copy of at most max_bytes of JSON: output_yaml is left out and lists are cut if need be, with a note that
 * says so. */
json_t *answer_cut(const json_t *answer, size_t max_bytes);

/* A list: Placements of clusters, PlacementBindings, Placements of workloads. `id` are eight digits of names;
 * `hash` is the plan's. -EINVAL with an objection if a Placement cannot select one of the clusters. */
MUST_USE int objects_make(json_t **ret, const struct model *m, const struct solution *s, uint32_t id,
                          const char *hash, struct objection *ob);

/* Appends the objects as YAML, `---` between them. -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);

#endif
