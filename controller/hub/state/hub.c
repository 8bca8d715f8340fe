/* Owns the Lease and the two timers by which many changes become one look: a new plan soon after the first
 * of them, statuses within a second. Wires all other files; state.h lists them. */
#include "controller/hub/state/hub.h"

#include "controller/hub/rules/spec.h"
#include "controller/hub/state/hub_clusters.h"
#include "controller/hub/state/hub_configs.h"
#include "controller/hub/state/hub_counters.h"
#include "controller/hub/state/hub_plan.h"
#include "controller/hub/state/hub_schedule.h"
#include "controller/hub/state/hub_scorers.h"
#include "controller/hub/state/hub_statuses.h"
#include "controller/hub/state/hub_strays.h"
#include "controller/hub/state/hub_tally.h"
#include "controller/hub/state/hub_watches.h"
#include "controller/hub/state/hub_works.h"
#include "controller/hub/state/state.h"
#include "controller/kube/client_internal.h"
#include "controller/kube/event.h"
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>

enum {
    FIRST_PROBES_MS = 1000, /* how long the first plan waits for the first probes */
    FIRST_PROBES_POLL_MS = 20,
    RETRY_MS = 1000,
    RESYNC_MS = 5 * 60 * 1000,
};

#define LEASE_NAME "dynamic-scoring-controller"

static bool hub_is_probed(const struct hub_scorer *s)
{
    const struct probe_status *p = s->probe ? probe_status(s->probe) : NULL;
    bool is_checked = s->spec.health_check == HEALTH_CHECK_HUB;

    return !p ||
           (!hub_scorer_awaits_config(s) && (!is_checked || p->health != HEALTH_UNKNOWN || p->probe.asked));
}

static bool hub_all_probed(const struct hub *h)
{
    size_t at = 0;
    const struct hub_scorer *s;

    while ((s = map_next(&h->scorers, &at)))
        if (!hub_is_probed(s))
            return false;
    return true;
}

static void hub_on_replan(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, replan);
    int r;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->active)
        return;
    /* Otherwise a new fleet would get empty summaries first, and the scorers a moment later. */
    if (!h->plan && !hub_all_probed(h) && mono_diff(h->active_since, loop_now(h->o.loop)) < FIRST_PROBES_MS) {
        kube_timer_move(h->o.loop, t, FIRST_PROBES_POLL_MS);
        return;
    }
    hub_clusters_mark_left(h);
    r = hub_plan_make(h);
    hub_count_reconcile(h, "plan", r == 0);
    if (r < 0)
        log_error("plan not made", L_ERR(r));
    /* Also after a success: repairs what was missed while out of memory. */
    kube_timer_move(h->o.loop, t, r < 0 ? RETRY_MS : RESYNC_MS);
    hub_schedule_tally(h);
    if (r == 0 && !h->planned) {
        h->planned = true;
        kube_timer_move(h->o.loop, &h->retally, 0);
    }
}

static void hub_on_retally(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, retally);
    const struct hub_config *c;
    size_t at = 0;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->active)
        return;
    hub_tally(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        hub_schedule_status(h, "scorer", h->by_age[i]->name);
    if (h->config.object)
        hub_schedule_status(h, "config", HUB_CONFIG);
    while ((c = map_next(&h->other_configs, &at)))
        hub_schedule_status(h, "config", kube_name(c->object));
}

void hub_update_active(struct hub *h)
{
    bool active = h->leading && !h->stopping && hub_synced(h);

    if (active == h->active)
        return;
    h->active = active;
    h->active_since = loop_now(h->o.loop);
    h->planned = false;
    hub_update_probes(h);
    if (active) {
        log_info("active", L_INT("scorers", h->n_scorers), L_INT("clusters", h->clusters.n));
        if (!h->config.object && h->clusters.n)
            log_warn("no DynamicScoringConfig found, ManifestWorks stay unchanged",
                     L_STR("namespace", h->o.namespace), L_STR("name", HUB_CONFIG));
        hub_schedule_plan(h);
        hub_schedule_tally(h);
        return;
    }
    hub_works_cancel(h);
    hub_statuses_cancel(h);
    /* Another controller leads: by the time that this one leads again, this plan would be out of date. */
    hub_plan_done(h);
    h->tallied = false;
}

static void hub_on_leading(void *arg, bool leading)
{
    struct hub *h = arg;

    h->leading = leading;
    /* The Lease was just written, so the API server answers. */
    if (leading && hub_synced(h))
        hub_watches_hurry(h);
    hub_update_active(h);
}

static int hub_start_lease(struct hub *h)
{
    const struct kube_lease_options lease = {.namespace = h->o.namespace,
                                             .name = LEASE_NAME,
                                             .identity = h->o.identity,
                                             .on_change = hub_on_leading,
                                             .arg = h};

    if (h->o.leader_elect)
        return kube_lease_new(&h->lease, h->o.kube, &lease);
    h->leading = true;
    return 0;
}

static int hub_start_timers(struct hub *h)
{
    mono_ms far = mono_add(loop_now(h->o.loop), KUBE_FAR_MS);

    h->replan.fn = hub_on_replan;
    h->retally.fn = hub_on_retally;
    return loop_timer_set(h->o.loop, &h->replan, far) ?: loop_timer_set(h->o.loop, &h->retally, far);
}

int hub_new(struct hub **ret, const struct hub_options *o)
{
    CLEANUP(cleanup_hub_free) struct hub *h = calloc(1, sizeof(*h));
    int r;

    if (!h)
        return -ENOMEM;
    h->o = *o;
    h->started_ms = loop_wall(o->loop).ms;
    buf_init(&h->entry_texts, SIZE_MAX);
    r = hub_start_timers(h);
    if (r == 0)
        r = kube_events_new(&h->events, o->kube, "dynamic-scoring.open-cluster-management.io/controller",
                            o->identity);
    if (r == 0)
        r = hub_works_new(h, hub_cluster_written);
    if (r == 0)
        r = hub_statuses_new(h);
    if (r == 0)
        r = hub_watches_new(h, hub_update_active);
    if (r == 0)
        r = hub_strays_new(&h->strays, h);
    if (r == 0)
        r = hub_start_lease(h);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(h);
    return 0;
}

void hub_stop(struct hub *h, void (*done)(void *arg), void *arg)
{
    h->stopping = true;
    hub_update_active(h);
    if (h->lease)
        kube_lease_release(h->lease, done, arg);
    else if (done)
        done(arg);
}

static void hub_free_objects(struct hub *h)
{
    struct hub_scorer *s;
    struct hub_cluster *c;
    struct hub_config *other;
    size_t at = 0;

    while ((s = map_next(&h->scorers, &at)))
        (void)hub_scorer_free(s);
    map_done(&h->scorers);
    free(h->by_age);
    for (at = 0; (c = map_next(&h->clusters, &at));)
        (void)hub_cluster_free(c);
    map_done(&h->clusters);
    for (at = 0; (other = map_next(&h->other_configs, &at));) {
        hub_config_done(other);
        free(other);
    }
    map_done(&h->other_configs);
    hub_config_done(&h->config);
}

struct hub *hub_free(struct hub *h)
{
    if (!h)
        return NULL;
    h->lease = kube_lease_free(h->lease);
    hub_watches_free(h);
    h->strays = hub_strays_free(h->strays);
    hub_works_free(h);
    hub_statuses_free(h);
    h->events = kube_events_free(h->events);
    loop_timer_clear(h->o.loop, &h->replan);
    loop_timer_clear(h->o.loop, &h->retally);
    hub_plan_done(h);
    hub_free_objects(h);
    free(h);
    return NULL;
}
