/* A request for a plan, which keeps the schema plan_request. */
#pragma once

#include "exporter/base/def.h"

#include <jansson.h>

struct api_error;
struct fleet_model;
struct snapshot;

/* Its namespace. */
const char *request_namespace(const json_t *request);
/* Its placement problem, from the hub's objects. -EINVAL with the error. Request and snapshot must outlive
 * the model, and no other thread may use them. */
MUST_USE int request_make_model(struct fleet_model **ret, const json_t *request, const struct snapshot *hub,
                                struct api_error *error);
