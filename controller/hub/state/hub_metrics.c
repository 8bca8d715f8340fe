/* The hub's own metrics. Only the controller that is at work has gauges of scorers and clusters: two replicas would tell everything twice, and
 * one that stands by what it does not know. */
#include "controller/hub/state/status_conditions.h"

#include "exporter/metric/version.h"

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

void hub_count_work(struct hub *h, const char *operation, const struct kube_answer *a)
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

void hub_forget_scorer(struct hub *h, const char *name)
{
    metrics_forget(h->o.metrics, "scorer", name);
}

/* Sets the gauge, or takes it away where there is nothing to tell. */
static void tell(struct metrics *m, enum metric id, const char *const *labels, bool known, double v)
{
    if (known)
        metric_set(m, id, labels, v);
    else
        metric_remove(m, id, labels);
}

static void set_scorer(const struct hub *h, const struct hub_scorer *s)
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
    enum probe_health health = scorer_probe(s)->health;
    const struct probe_part *config = &scorer_probe(s)->config;
    struct metrics *m = h->o.metrics;

    tell(m, METRIC_HUB_SCORER_HEALTHY, LV(s->name), h->active && health != HEALTH_UNKNOWN,
         health == HEALTH_ACTIVE);
    tell(m, METRIC_HUB_SCORER_READY, LV(s->name), h->active, h->active && status_scorer_ready(s));
    tell(m, METRIC_HUB_SCORER_SYNCED, LV(s->name),
         h->active && s->has_spec && s->spec.mode == SYNC_FULL && config->asked, config->ok);
    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++)
        tell(m, METRIC_HUB_SCORER_CLUSTERS, LV(s->name, clusters[i].state), h->active, (double)clusters[i].n);
}

static void set_totals(const struct hub *h)
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
        tell(m, METRIC_HUB_CLUSTERS, LV(clusters[i].state), h->active, (double)clusters[i].n);
    tell(m, METRIC_HUB_LAG, LV_NONE, h->active, t->lag_s);
    tell(m, METRIC_HUB_SUMMARIES, LV_NONE, h->active, (double)t->largest);
    tell(m, METRIC_HUB_LEFT_OUT, LV_NONE, h->active, (double)t->left_out);
}

/* A standby follows the objects, too. */
static void set_watches(const struct hub *h)
{
    const struct {
        const char *resource;
        const struct kube_watch *watch;
    } all[] = {{"dynamicscorers", h->scorers_watch},
               {"dynamicscoringconfigs", h->configs_watch},
               {"managedclusters", h->clusters_watch},
               {"manifestworks", h->works_watch}};
    struct metrics *m = h->o.metrics;

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        const struct kube_watch *w = all[i].watch;
        const char *const *labels = LV(all[i].resource, "hub");
        int64_t heard_ms = kube_watch_heard(w).ms;

        metric_set(m, METRIC_KUBE_UP, labels, kube_watch_synced(w) && !kube_watch_trouble(w));
        tell(m, METRIC_KUBE_LAST_ANSWER, labels, heard_ms > 0, (double)heard_ms / 1000);
    }
    if (h->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "hub"), !kube_lease_trouble(h->lease));
}

void hub_set_metrics(struct hub *h)
{
    struct metrics *m = h->o.metrics;

    /* The lag grows by itself. */
    h->tallied = h->tallied && h->totals.behind == 0;
    hub_tally(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        set_scorer(h, h->by_age[i]);
    set_totals(h);
    set_watches(h);
    metric_set(m, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    metric_set(m, METRIC_HUB_LEADER, LV_NONE, h->leading);
    metric_set(m, METRIC_HUB_QUEUE, LV("works"), (double)kube_queue_length(h->works));
    metric_set(m, METRIC_HUB_QUEUE, LV("joins"), (double)kube_queue_length(h->joins));
    metric_set(m, METRIC_HUB_QUEUE, LV("status"), (double)kube_queue_length(h->status));
    metric_set(m, METRIC_HUB_EVENTS_DROPPED, LV_NONE, (double)kube_events_dropped(h->events, NULL));
}
