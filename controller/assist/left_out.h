/* What has no place in a plan, and why. Pure. */
#pragma once

#include <jansson.h>

struct fleet_model;
struct solution;

/* Appends {"workload", "replicas", "reason", "message"} for each workload of which a replica is left out. */
void left_out_list(json_t *list, const struct fleet_model *m, const struct solution *s);
