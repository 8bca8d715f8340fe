#include "controller/hub/state/state.h"

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/state/status.h"
#include "controller/kube/client.h"
#include "controller/kube/event.h"
#include "controller/kube/lease.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"

/* ---- Counters ---- */

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

void hub_count_write(void *arg, const char *operation, const struct kube_answer *a)
{
    struct hub *h = arg;

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

/* ---- Gauges ----
 *
 * Sets the hub's gauges. Only the active controller has gauges of scorers and clusters: two replicas would
 * report everything twice, and a standby does not know it. */

/* Sets the gauge, or removes it while its value is unknown. */
static void gauge_set(struct metrics *m, enum metric id, const char *const *labels, bool known, double v)
{
    if (known)
        metric_set(m, id, labels, v);
    else
        metric_remove(m, id, labels);
}

static void gauge_set_scorer(const struct hub *h, const struct hub_scorer *s)
{
    const struct tally *t = &s->tally;
    const struct {
        const char *state;
        size_t n;
    } clusters[] = {
        {"selected", t->selected}, {"up_to_date", t->up_to_date}, {"applied", t->applied},
        {"scoring", t->scoring},   {"failing", t->failing},       {"waiting", t->waiting},
        {"silent", t->silent},     {"no_room", t->no_room},
    };
    enum probe_health health = hub_scorer_health(s);
    const struct probe_part *config = &scorer_probe(s)->config;
    struct metrics *m = h->o.metrics;

    gauge_set(m, METRIC_HUB_SCORER_HEALTHY, LV(s->name), h->active && health != HEALTH_UNKNOWN,
              health != HEALTH_INACTIVE);
    gauge_set(m, METRIC_HUB_SCORER_READY, LV(s->name), h->active, h->active && status_scorer_ready(s));
    gauge_set(m, METRIC_HUB_SCORER_SYNCED, LV(s->name),
              h->active && s->has_spec && s->spec.mode == SYNC_FULL && config->asked, config->ok);
    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++)
        gauge_set(m, METRIC_HUB_SCORER_CLUSTERS, LV(s->name, clusters[i].state), h->active,
                  (double)clusters[i].n);
}

static void gauge_set_totals(const struct hub *h)
{
    const struct hub_totals *t = &h->totals;
    const struct {
        const char *state;
        size_t n;
    } clusters[] = {{"up_to_date", t->up_to_date},
                    {"behind", t->behind},
                    {"failing", t->failing},
                    {"leaving", t->leaving}};
    struct metrics *m = h->o.metrics;

    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++)
        gauge_set(m, METRIC_HUB_CLUSTERS, LV(clusters[i].state), h->active, (double)clusters[i].n);
    gauge_set(m, METRIC_HUB_LAG, LV_NONE, h->active, t->lag_s);
    gauge_set(m, METRIC_HUB_SUMMARIES, LV_NONE, h->active, (double)t->largest);
    gauge_set(m, METRIC_HUB_LEFT_OUT, LV_NONE, h->active, (double)t->left_out);
}

/* Also on a standby. */
static void gauge_set_watches(const struct hub *h)
{
    struct metrics *m = h->o.metrics;

    for (size_t i = 0; i < HUB_KINDS; i++) {
        const struct kube_watch *w = h->watches[i].watch;
        const char *const *labels = LV(hub_kinds[i].resource->plural, "hub");
        int64_t heard_ms = kube_watch_heard(w).ms;
        bool needed = !kube_watch_trouble(w) || hub_watch_trouble(h, i);

        gauge_set(m, METRIC_KUBE_UP, labels, needed, kube_watch_synced(w) && !kube_watch_trouble(w));
        gauge_set(m, METRIC_KUBE_LAST_ANSWER, labels, needed && heard_ms > 0, (double)heard_ms / 1000);
    }
    if (h->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "hub"), !kube_lease_trouble(h->lease));
}

void hub_set_metrics(struct hub *h)
{
    struct metrics *m = h->o.metrics;

    /* The lag grows with time alone. */
    h->tallied = h->tallied && h->totals.behind == 0;
    hub_tally(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        gauge_set_scorer(h, h->by_age[i]);
    gauge_set_totals(h);
    gauge_set_watches(h);
    metric_set(m, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    metric_set(m, METRIC_HUB_LEADER, LV_NONE, h->leading);
    metric_set(m, METRIC_HUB_QUEUE, LV("works"), (double)kube_queue_length(h->works.queue));
    metric_set(m, METRIC_HUB_QUEUE, LV("status"), (double)kube_queue_length(h->status.queue));
    metric_set(m, METRIC_HUB_EVENTS_DROPPED, LV_NONE, (double)kube_events_dropped(h->events, NULL));
}
