/* What a plan depends on, to tell later whether that has changed: {"<Kind>/<name>": {...}}. Pure. */
#pragma once

#include <jansson.h>

struct fleet_model;

/* Notes what the model depends on; the entry is taken. */
void basis_note(struct fleet_model *m, const char *kind, const char *name, json_t *entry);
/* [{"kind", "name", "what"}]: how the model's basis differs from an earlier one, `what` naming the members.
 * Where workloads run by Placements of the plan with this hash does not count. */
json_t *basis_changes(const json_t *before, const struct fleet_model *now, const char *plan);
