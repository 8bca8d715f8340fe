/* Owns the watches, one for each kind of object in hub_kinds. */
#ifndef DS_HUB_WATCHES_H
#define DS_HUB_WATCHES_H

#include "controller/hub/state/state.h"

/* synced: called each time that a watch has listed its objects for the first time. -ENOMEM. */
MUST_USE int hub_watches_new(struct hub *h, void (*synced)(struct hub *h));
void hub_watches_free(struct hub *h);
/* Reconnects at once: the API server is known to answer, and what the hub acts on must not be from before
 * it was away. */
void hub_watches_hurry(struct hub *h);

#endif
