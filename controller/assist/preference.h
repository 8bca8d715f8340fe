/* What a request wants to be maximised: the scores of all workloads with all settings, as whole numbers. */
#pragma once

#include "exporter/base/def.h"

#include <jansson.h>
#include <stdint.h>

struct api_error;
struct fleet_model;

/* The name of the request's score; NULL for several. */
const char *request_score(const json_t *request);
/* One score, or several to be added up, for which the sum's format counts unless they have their own.
 * -EINVAL with the error. */
MUST_USE int preference_read(struct fleet_model *m, struct api_error *error);
/* Once workloads and clusters are known. *ret: problem.scores. -EINVAL with the error. */
MUST_USE int preference_read_scores(struct fleet_model *m, int16_t **ret, struct api_error *error);
