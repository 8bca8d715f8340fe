/* Questions about one object of the API server, and the names of those that the hub knows. Pure; any
 * thread. */
#pragma once

#include "controller/kube/json.h"

#define HUB_API       "dynamic-scoring.open-cluster-management.io/v1alpha1"
#define HUB_CONFIG    "dynamic-scoring-config" /* the only DynamicScoringConfig that is used */
#define HUB_FINALIZER "dynamic-scoring.open-cluster-management.io/manifestworks"
/* The reference implementation's: it promises that ManifestWorks go before the DynamicScoringConfig does. */
#define REFERENCE_FINALIZER "dynamic-scoring.open-cluster-management.io/dynamic-scoring-config-finalizer"

bool object_is_deleting(const json_t *object);
bool object_has_finalizer(const json_t *object, const char *finalizer);
/* By content, too: after a restore from a backup, another spec may have the same generation. */
bool object_has_same_spec(const json_t *a, const json_t *b);
/* metadata.generation; 0 without. */
int64_t object_generation(const json_t *object);
