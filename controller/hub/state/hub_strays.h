/* DynamicScorers and DynamicScoringConfigs in namespaces that nobody watches: an Event and a line in the log
 * say where to put them. What another controller attends to is not among them. Without the permission to
 * watch all namespaces, they go unnoticed. */
#ifndef DS_HUB_STRAYS_H
#define DS_HUB_STRAYS_H

#include "controller/hub/state/state.h"

/* -ENOMEM. */
MUST_USE int hub_strays_new(struct hub_strays **ret, struct hub *h);
struct hub_strays *hub_strays_free(struct hub_strays *s);

#endif
