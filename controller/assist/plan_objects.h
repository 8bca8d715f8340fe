/* The objects that a plan becomes: Placements and PlacementBindings. Pure. */
#pragma once

#include "exporter/base/def.h"

#include <jansson.h>
#include <stdint.h>

struct api_error;
struct fleet_model;
struct solution;

#define POLICY_CLAIM "policy-watcher-claim" /* without which workloads wait */

/* A list: Placements of clusters, PlacementBindings, Placements of workloads. `id` are eight digits of
 * names; `hash` is the plan's. -EINVAL with an error if a Placement cannot select one of the clusters. */
MUST_USE int objects_make(json_t **ret, const struct fleet_model *m, const struct solution *s, uint32_t id,
                          const char *hash, struct api_error *error);
