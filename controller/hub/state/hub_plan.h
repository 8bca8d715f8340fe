/* Owns the plan, and copies of everything that it points into. */
#ifndef DS_HUB_STATE_PLAN_H
#define DS_HUB_STATE_PLAN_H

#include "controller/hub/state/state.h"

/* Finds duplicate score names, makes the plan, and assigns a group to each cluster. -ENOMEM, and no plan
 * then. */
MUST_USE int hub_plan_make(struct hub *h);
void hub_plan_done(struct hub *h);

#endif
