/* DynamicScorers and DynamicScoringConfigs in namespaces that nobody watches: an Event and a line in the
 * log say where to put them. What another controller attends to is not among them. Without the permission
 * to watch all namespaces, they go unnoticed. Loop thread. */
#pragma once

#include "controller/hub/observed/options.h"
#include "controller/kube/events.h"

struct strays;

/* The events must outlive it. */
struct strays *strays_new(const struct hub_options *o, struct kube_events *events);
struct strays *strays_free(struct strays *s);
/* Only the active controller tells. */
void strays_start(struct strays *s);
void strays_stop(struct strays *s);
