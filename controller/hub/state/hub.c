#include "controller/hub/state/hub.h"

#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/state.h"
#include "controller/kube/client.h"
#include "controller/kube/event.h"
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <stdio.h>

/* ---- What to look at soon: many changes become one look ---- */

enum { PLAN_MS = 20, TALLY_MS = 1000, KEY_BYTES = 300 };

/* Never moves the timer to a later time: changes that keep coming do not put it off. */
static void schedule_within(struct hub *h, struct timer *t, int64_t ms)
{
    mono_ms at = mono_add(loop_now(h->o.loop), ms);

    if (mono_before(at, t->at))
        kube_timer_move(h->o.loop, t, ms);
}

void hub_schedule_plan(struct hub *h)
{
    schedule_within(h, &h->replan, PLAN_MS);
}

void hub_schedule_tally(struct hub *h)
{
    h->tallied = false;
    schedule_within(h, &h->retally, TALLY_MS);
}

static void schedule_status(struct hub *h, const char *kind, const char *name, bool hurry)
{
    char key[KEY_BYTES];

    if (!h->active || !h->planned)
        return;
    (void)snprintf(key, sizeof(key), "%s/%s", kind, name);
    if (hurry)
        kube_queue_forget(h->status.queue, key);
    kube_queue_add(h->status.queue, key);
}

void hub_schedule_status(struct hub *h, const char *kind, const char *name)
{
    schedule_status(h, kind, name, false);
}

void hub_hurry_status(struct hub *h, const char *kind, const char *name)
{
    schedule_status(h, kind, name, true);
}

/* ---- The watches, one for each kind of object in hub_kinds ---- */

enum {
    ADDONS_PAGE = 100,
    WORKS_PAGE = 25 /* each may hold half a megabyte */
};

static const struct {
    void (*set)(struct hub *h, json_t *object);
    void (*delete)(struct hub *h, const char *namespace, const char *name);
    bool in_own_namespace;
    struct kube_watch_options options;
} watches[HUB_KINDS] = {
    [HUB_SCORERS] = {hub_scorer_set, hub_scorer_delete, true, {0}},
    [HUB_CONFIGS] = {hub_config_set, hub_config_delete, true, {0}},
    [HUB_CLUSTERS] = {hub_managed_set, hub_managed_delete, false, {0}},
    [HUB_ADDONS] = {hub_addon_set, hub_addon_delete, false, {.page = ADDONS_PAGE}},
    [HUB_WORKS] = {hub_work_set,
                   hub_work_delete,
                   false,
                   {.name = WORK_NAME, .page = WORKS_PAGE, .cut = &work_cut}},
};

static size_t watch_kind(const struct hub_watch *w)
{
    return (size_t)(w - w->hub->watches);
}

static void watch_on_set(void *arg, json_t *object)
{
    struct hub_watch *w = arg;

    watches[watch_kind(w)].set(w->hub, object);
}

static void watch_on_delete(void *arg, const char *namespace, const char *name)
{
    struct hub_watch *w = arg;

    watches[watch_kind(w)].delete(w->hub, namespace, name);
}

static void watch_on_synced(void *arg)
{
    struct hub_watch *w = arg;

    hub_update_active(w->hub);
}

static void watch_on_trouble(void *arg, const char *text)
{
    const struct hub_watch *w = arg;
    const char *objects = hub_kinds[watch_kind(w)].plural;

    if (text && !hub_watch_trouble(w->hub, watch_kind(w)))
        log_info("kind not installed, agents are judged by their reports alone", L_STR("objects", objects));
    else if (text)
        log_warn("watch failed, last known objects stay active", L_STR("objects", objects),
                 L_STR("err", text));
    else
        log_info("watch recovered", L_STR("objects", objects));
    if (text && watch_kind(w) == HUB_ADDONS) /* not waited for any longer */
        hub_update_active(w->hub);
}

static int watches_new(struct hub *h)
{
    int r = 0;

    for (size_t i = 0; i < HUB_KINDS && r == 0; i++) {
        struct kube_watch_options o = watches[i].options;

        h->watches[i].hub = h;
        o.resource = hub_kinds[i].resource;
        o.namespace = watches[i].in_own_namespace ? h->o.namespace : NULL;
        o.name = i == HUB_ADDONS ? h->o.addon_name : o.name;
        o.on_set = watch_on_set;
        o.on_delete = watch_on_delete;
        o.on_synced = watch_on_synced;
        o.on_trouble = watch_on_trouble;
        o.arg = &h->watches[i];
        h->watches[i].watch = kube_watch_new(h->o.kube, &o);
    }
    return r;
}

static void watches_free(struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        h->watches[i].watch = kube_watch_free(h->watches[i].watch);
}

static void watches_hurry(struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        kube_watch_hurry(h->watches[i].watch);
}

bool hub_synced(const struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        if (!hub_watch_listed(h, i))
            return false;
    return true;
}

/* ---- The hub ----
 *
 * Owns the Lease and the two timers by which many changes become one look: a new plan soon after the first
 * of them, statuses within a second. Wires all other files; state.h lists them. */

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
        watches_hurry(h);
    hub_update_active(h);
}

static void hub_start_lease(struct hub *h)
{
    const struct kube_lease_options lease = {.namespace = h->o.namespace,
                                             .name = LEASE_NAME,
                                             .identity = h->o.identity,
                                             .on_change = hub_on_leading,
                                             .arg = h};

    if (h->o.leader_elect) {
        h->lease = kube_lease_new(h->o.kube, &lease);
        return;
    }
    h->leading = true;
}

static void hub_start_timers(struct hub *h)
{
    mono_ms far = mono_add(loop_now(h->o.loop), KUBE_FAR_MS);

    h->replan.fn = hub_on_replan;
    h->retally.fn = hub_on_retally;
    loop_timer_set(h->o.loop, &h->replan, far);
    loop_timer_set(h->o.loop, &h->retally, far);
}

int hub_new(struct hub **ret, const struct hub_options *o)
{
    CLEANUP(cleanup_hub_free) struct hub *h = xcalloc(1, sizeof(*h));
    int r;

    h->o = *o;
    h->started_ms = loop_wall(o->loop).ms;
    buf_init(&h->entry_texts, SIZE_MAX);
    hub_start_timers(h);
    h->events =
        kube_events_new(o->kube, "dynamic-scoring.open-cluster-management.io/controller", o->identity);
    r = 0;
    if (r == 0)
        hub_works_new(h);
    if (r == 0)
        hub_statuses_new(h);
    if (r == 0)
        r = watches_new(h);
    if (r == 0)
        r = hub_strays_new(&h->strays, h);
    if (r == 0)
        hub_start_lease(h);
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
    watches_free(h);
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
