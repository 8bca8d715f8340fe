/* What the hub has to look at soon: many changes become one look. */
#ifndef DS_HUB_SCHEDULE_H
#define DS_HUB_SCHEDULE_H

#include "controller/hub/state/state.h"

/* Makes a new plan within 20 ms. */
void hub_schedule_plan(struct hub *h);
/* Counts clusters again, and then looks at all statuses, within a second. */
void hub_schedule_tally(struct hub *h);
/* Looks at the status of one object: kind "scorer" or "config". */
void hub_schedule_status(struct hub *h, const char *kind, const char *name);
/* Like hub_schedule_status(), but ends a back-off, because a user has changed the object. */
void hub_hurry_status(struct hub *h, const char *kind, const char *name);

#endif
