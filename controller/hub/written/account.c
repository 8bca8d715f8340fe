/* Metrics and Events that both writers have. Called by works.c and statuses.c. Owns nothing; loop thread. */
#include "controller/hub/written/account.h"

#include "controller/hub/observed/object.h"
#include "controller/kube/events.h"
#include "controller/kube/fight.h"
#include "controller/kube/verdict.h"
#include "controller/kube/writer.h"
#include "exporter/metric/metrics.h"

void account_write(const struct hub_options *o, enum kube_operation operation, const struct kube_answer *a)
{
    metric_add(o->metrics, METRIC_HUB_WRITES,
               LV(kube_operation_word(operation), kube_verdict_word(a->verdict)), 1);
}

void account_success(const struct hub_options *o, const char *controller)
{
    metric_add(o->metrics, METRIC_HUB_RECONCILES, LV(controller, "success"), 1);
}

void account_failure(const struct hub_options *o, const char *controller)
{
    metric_add(o->metrics, METRIC_HUB_RECONCILES, LV(controller, "failure"), 1);
}

void account_fight(struct kube_events *events, const json_t *about, const struct kube_resource *resource,
                   const char *text)
{
    const struct kube_event event = {.about = about,
                                     .api_version = HUB_API,
                                     .kind = resource->kind,
                                     .warning = true,
                                     .reason = KUBE_FIGHT_REASON,
                                     .action = "Reconcile",
                                     .note = text};

    if (about)
        kube_events_add(events, &event);
}
