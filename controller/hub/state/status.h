/* Statuses of DynamicScorers and DynamicScoringConfigs, computed from the state. Pure. */
#ifndef DS_HUB_STATUS_H
#define DS_HUB_STATUS_H

#include "controller/hub/state/state.h"
#include "exporter/base/clock.h"

/* The complete status as a merge patch: null for members to remove. now: for conditions that change. A new
 * reference; NULL when out of memory. */
json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now);
json_t *status_of_config(const struct hub *h, const struct hub_config *c, unix_ms now);
/* Sends Events for conditions that differ between two statuses. before may be NULL: then only for what is
 * wrong. */
void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                   const json_t *after);
/* Whether condition Ready is true. */
bool status_scorer_ready(const struct hub_scorer *s);

#endif
