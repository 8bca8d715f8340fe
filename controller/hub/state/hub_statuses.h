/* Writes statuses and finalizers by a queue of objects, and nothing that is already so. */
#ifndef DS_HUB_STATUSES_H
#define DS_HUB_STATUSES_H

#include "controller/hub/state/state.h"

MUST_USE int hub_statuses_new(struct hub *h);
/* Cancels the writes under way. */
void hub_statuses_cancel(struct hub *h);
void hub_statuses_free(struct hub *h);

#endif
