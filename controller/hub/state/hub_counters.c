#include "controller/hub/state/hub_counters.h"

#include "controller/hub/probe/probe.h"
#include "controller/kube/verdict.h"
#include "exporter/metric/metrics.h"

static const char *probe_word(enum probe_what what)
{
    return what == PROBE_HEALTH ? "health" : "config";
}

void hub_count_probe(struct hub *h, const struct hub_scorer *s, enum probe_what what,
                     const struct probe_part *part)
{
    metric_add(h->o.metrics, METRIC_HUB_PROBES, LV(probe_word(what), part->ok ? "ok" : part->reason, s->name),
               1);
    metric_observe(h->o.metrics, METRIC_HUB_PROBE_DURATION, LV(probe_word(what), s->name), part->seconds);
}

void hub_count_write(struct hub *h, const char *operation, const struct kube_answer *a)
{
    metric_add(h->o.metrics, METRIC_HUB_WRITES, LV(operation, kube_verdict_word(a->verdict)), 1);
}

void hub_count_distributed(struct hub *h, double seconds)
{
    metric_observe(h->o.metrics, METRIC_HUB_DISTRIBUTION, LV_NONE, seconds);
}

void hub_count_reconcile(struct hub *h, const char *controller, bool ok)
{
    metric_add(h->o.metrics, METRIC_HUB_RECONCILES, LV(controller, ok ? "success" : "failure"), 1);
}

void hub_forget_scorer_metrics(struct hub *h, const char *name)
{
    metrics_forget(h->o.metrics, "scorer", name);
}
