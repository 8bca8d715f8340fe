/* What both writers, of ManifestWorks and of statuses, account for: metrics of their writes, and the Event
 * about a fight. Loop thread. */
#pragma once

#include "controller/hub/observed/options.h"
#include "controller/kube/answer.h"
#include "controller/kube/events.h"
#include "controller/kube/json.h"
#include "controller/kube/resource.h"
#include "controller/kube/writer.h"

/* A call of a writer has ended. */
void account_write(const struct hub_options *o, enum kube_operation operation, const struct kube_answer *a);
/* A turn of a writer or of the plan has ended: "works", "status" or "plan". */
void account_success(const struct hub_options *o, const char *controller);
void account_failure(const struct hub_options *o, const char *controller);
/* A fight has begun. about: the object that the Event appears with; NULL: none, so that there is no Event. */
void account_fight(struct kube_events *events, const json_t *about, const struct kube_resource *resource,
                   const char *text);
