/* Sets the gauges from a view of the fleet. Called by hub.c before metrics are rendered. Owns nothing; loop
 * thread. */
#include "controller/hub/gauges.h"

#include "controller/hub/follows/adjusted.h"
#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/health.h"
#include "controller/hub/follows/scorer_status.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/watch.h"
#include "exporter/metric/metrics.h"

/* Sets the gauge, or removes it while its value is unknown. */
static void gauge_set(struct metrics *m, enum metric id, const char *const *labels, bool is_known, double v)
{
    if (is_known)
        metric_set(m, id, labels, v);
    else
        metric_remove(m, id, labels);
}

static void gauges_set_scorer(const struct fleet *f, const struct hub_scorer *s, bool is_active)
{
    enum probe_health health = scorer_health(f, s);
    const struct probe_part *config = &probe_status(s->probe)->config;
    bool is_synced_by_probes = s->has_spec && s->spec.mode == SYNC_FULL && config->asked;
    const struct tally *t = counts_of(f->counts, s);
    struct metrics *m = f->o->metrics;

    gauge_set(m, METRIC_HUB_SCORER_HEALTHY, LV(s->name), is_active && health != HEALTH_UNKNOWN,
              health != HEALTH_INACTIVE);
    gauge_set(m, METRIC_HUB_SCORER_READY, LV(s->name), is_active, is_active && scorer_is_ready(f, s));
    gauge_set(m, METRIC_HUB_SCORER_SYNCED, LV(s->name), is_active && is_synced_by_probes, config->ok);
    for (size_t i = 0; i < TALLY_FIELDS; i++)
        gauge_set(m, METRIC_HUB_SCORER_CLUSTERS, LV(s->name, tally_fields[i].state), is_active,
                  (double)tally_count(t, i));
}

/* Also on a standby. */
static void gauges_set_watch(const struct fleet *f, enum hub_kind kind)
{
    const struct kube_watch *w = f->seen->watches[kind];
    const char *const *labels = LV(hub_kind_resource(kind)->plural, "hub");
    int64_t heard_ms = kube_watch_heard(w).ms;
    bool is_needed = !kube_watch_error(w) || observed_error(f->seen, kind);
    struct metrics *m = f->o->metrics;

    gauge_set(m, METRIC_KUBE_UP, labels, is_needed, kube_watch_synced(w) && !kube_watch_error(w));
    gauge_set(m, METRIC_KUBE_LAST_ANSWER, labels, is_needed && heard_ms > 0, (double)heard_ms / 1000);
}

void gauges_set(const struct fleet *f, bool is_active)
{
    const struct hub_totals *t = &f->counts->totals;
    struct metrics *m = f->o->metrics;

    for (size_t i = 0; i < f->seen->scorers.n; i++)
        gauges_set_scorer(f, f->seen->scorers.by_age[i], is_active);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("up_to_date"), is_active, (double)t->up_to_date);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("behind"), is_active, (double)t->behind);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("failing"), is_active, (double)t->failing);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("leaving"), is_active, (double)t->leaving);
    gauge_set(m, METRIC_HUB_LAG, LV_NONE, is_active, t->lag_s);
    gauge_set(m, METRIC_HUB_SUMMARIES, LV_NONE, is_active, (double)t->largest);
    gauge_set(m, METRIC_HUB_LEFT_OUT, LV_NONE, is_active, (double)t->left_out);
    for (size_t i = 0; adjustments_are_counted(f) && i < f->plan->adjustments.n; i++)
        gauge_set(m, METRIC_HUB_ADJUSTED_CLUSTERS, LV(f->plan->adjustments.list[i].what.name), is_active,
                  adjustment_is_idle(f, i) ? 0 : (double)f->plan->of_adjustments[i].clusters);
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++)
        gauges_set_watch(f, kind);
}
