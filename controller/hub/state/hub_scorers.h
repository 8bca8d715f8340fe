/* Owns the DynamicScorers, their probes and effective configurations. */
#ifndef DS_HUB_SCORERS_H
#define DS_HUB_SCORERS_H

#include "controller/hub/state/state.h"

void hub_scorer_set(struct hub *h, json_t *object);
void hub_scorer_delete(struct hub *h, const char *namespace, const char *name);
struct hub_scorer *hub_scorer_free(struct hub_scorer *s);
/* Starts all probes, or stops them, by h->active. */
void hub_update_probes(struct hub *h);

#endif
