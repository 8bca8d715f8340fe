/* The conductor. Owns the watches, the Lease, the timers and all other parts of the hub: passes on what
 * the watches show, and decides when to plan, to count and to look at statuses. Everything runs on the
 * loop, and nothing here waits.
 *
 *     watch → hub_see() → observed/ → what to look at again → hub_note() → one of two timers
 *     replan   makes a plan (written/desired.c), and has works written (written/works.c)
 *     retally  counts (written/census.c), and looks at all statuses (written/statuses.c) */
#include "controller/hub/hub.h"

#include "controller/hub/follows/counts.h"
#include "controller/hub/follows/health.h"
#include "controller/hub/gauges.h"
#include "controller/hub/observed/addons.h"
#include "controller/hub/observed/change.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/strays.h"
#include "controller/hub/written/account.h"
#include "controller/hub/written/census.h"
#include "controller/hub/written/desired.h"
#include "controller/hub/written/statuses.h"
#include "controller/hub/written/sweep.h"
#include "controller/hub/written/works.h"
#include "controller/kube/client.h"
#include "controller/kube/events.h"
#include "controller/kube/lease.h"
#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

/* The argument of a watch's callbacks. */
struct hub_watch {
    struct hub *hub;
    enum hub_kind kind;
};

struct hub {
    struct hub_options o;
    struct hub_watch watches[HUB_KINDS];
    struct strays *strays;
    struct kube_lease *lease; /* NULL without election */
    struct kube_events *events;

    /* Each has a room of its own. */
    struct observed seen;
    struct desired desired;
    struct works works;
    struct sweep sweep;
    struct census census;
    struct statuses statuses;

    bool is_leading, is_stopping;
    bool is_active;      /* leads, has listed all objects, and is not stopping: may probe and write */
    bool is_catching_up; /* not yet, as it has only just taken over: its watches may show an older state */
    bool is_inactivity_timed;
    mono_ms active_since;
    struct timer replan, retally, inactive;
    mono_ms looked_at; /* when all statuses were looked at the last time */
    int64_t started_ms;
    const struct access *access; /* of the HTTP server; NULL before it serves */
};

/* ---- What to look at soon: many changes become one look ---- */

enum { PLAN_MS = 20, TALLY_MS = 1000, TALLY_MS_PER_CLUSTER = 10, TALLY_MAX_MS = 10000 };

/* Never moves the timer to a later time: changes that keep coming do not put it off. */
static void hub_schedule_within(struct hub *h, struct timer *t, int64_t ms)
{
    mono_ms at = mono_add(loop_now(h->o.loop), ms);

    if (mono_before(at, t->at))
        kube_timer_move(h->o.loop, t, ms);
}

/* Counts again, and then looks at all statuses. During a roll-out to a large fleet counts change all the
 * time, and each look is a write of each status. */
static void hub_schedule_look(struct hub *h, int64_t ms)
{
    int64_t pause_ms = (int64_t)hub_fleet(h).counts->totals.managed * TALLY_MS_PER_CLUSTER;

    pause_ms = pause_ms < TALLY_MAX_MS ? pause_ms : TALLY_MAX_MS;
    pause_ms -= mono_diff(h->looked_at, loop_now(h->o.loop));
    hub_schedule_within(h, &h->retally, pause_ms > ms ? pause_ms : ms);
}

/* When time alone changes a state: scores expire, or a scorer has waited or a refusal lasted long enough. */
static void hub_schedule_next_look(struct hub *h)
{
    const struct fleet f = hub_fleet(h);
    int64_t ms = counts_next_change_ms(f.counts, &h->seen, f.wall) - f.wall.ms;
    int64_t refusal_ms = observed_refusal_due_ms(&h->seen, f.now);

    ms = ms < refusal_ms ? ms : refusal_ms;
    if (ms < KUBE_FAR_MS)
        hub_schedule_look(h, ms > TALLY_MS ? ms : TALLY_MS);
}

void hub_note(void *hub, unsigned changes)
{
    struct hub *h = hub;

    if (changes & CHANGE_PLAN)
        hub_schedule_within(h, &h->replan, PLAN_MS);
    if (changes & CHANGE_COUNTS)
        census_note_change(&h->census);
    if (changes & CHANGE_CLUSTER)
        census_note_cluster(&h->census);
    if (changes & (CHANGE_COUNTS | CHANGE_CLUSTER))
        hub_schedule_look(h, TALLY_MS);
}

/* ---- What the watches show ---- */

/* Takes the cluster away when nothing is known of it any more. */
static void hub_on_idle(void *arg, struct hub_cluster *c)
{
    struct hub *h = arg;

    if (!cluster_is_forgotten(c))
        return;
    works_forget(&h->works, c);
    clusters_remove(&h->seen.clusters, c);
    hub_note(h, CHANGE_CLUSTER);
}

/* Of which the watch shows an object; NULL for an object's end of a cluster that is not known. */
static struct hub_cluster *hub_cluster_of(struct hub *h, const char *name, const json_t *object)
{
    return object ? clusters_find_or_new(&h->seen.clusters, name, &h->works.writer)
                  : clusters_find(&h->seen.clusters, name);
}

/* Its metrics go; the next gauges have those of the adjustments that there are then. */
static void hub_forget_adjustments(struct hub *h)
{
    const struct fleet_adjustments *a = &h->seen.configs.used.adjustments;

    for (size_t i = 0; i < a->n; i++)
        metric_remove(h->o.metrics, METRIC_HUB_ADJUSTED_CLUSTERS, LV(a->list[i].what.name));
}

static void hub_see_managed(struct hub *h, const char *name, const json_t *object)
{
    struct hub_cluster *c = hub_cluster_of(h, name, object);
    unsigned changes;

    if (!c)
        return;
    changes = cluster_see_managed(c, object);
    if (changes & CHANGE_ATTRIBUTES && h->seen.configs.used.adjustments.has_selectors)
        changes |= CHANGE_PLAN;
    hub_note(h, changes);
    if (changes & CHANGE_TARGET)
        works_reconcile(&h->works, c);
    hub_on_idle(h, c);
}

static void hub_see_addon(struct hub *h, const char *name, const json_t *object)
{
    const char *namespace = h->o.agent_namespace;
    const json_t *noted = cluster_addon_matters(namespace, object) ? object : NULL;
    struct hub_cluster *c = hub_cluster_of(h, name, noted);

    hub_note(h, addons_see(&h->seen.addons, name, object, loop_now(h->o.loop)));
    if (!c)
        return;
    hub_note(h, cluster_see_addon(c, namespace, object));
    hub_on_idle(h, c);
}

static void hub_see_work(struct hub *h, const char *name, const json_t *object)
{
    struct hub_cluster *c = hub_cluster_of(h, name, object);
    enum report_news news;
    unsigned changes;

    if (!c)
        return;
    if (object)
        decisions_note_work(&h->seen.decisions, c, object);
    changes = works_see(&h->works, c, object, &news);
    /* Some agent of a large fleet always reports new times only: counting for each would never end. */
    if (news == REPORT_OF_OTHER_VERSION)
        changes |= CHANGE_CLUSTER | CHANGE_PLAN;
    else if (news == REPORT_CHANGED || (news == REPORT_TIMES && counts_saw_expired(hub_fleet(h).counts, c)))
        changes |= CHANGE_CLUSTER;
    hub_note(h, changes);
    if (!object)
        hub_on_idle(h, c);
}

static void hub_drop_scorer(struct hub *h, struct hub_scorer *s)
{
    desired_forget_scorer(&h->desired, &h->seen, s);
    census_forget(&h->census, s);
    metrics_forget(h->o.metrics, "scorer", s->name);
    scorers_remove(&h->seen.scorers, s);
    hub_note(h, CHANGE_PLAN | CHANGE_COUNTS);
}

static void hub_see_scorer(struct hub *h, const char *name, json_t *object)
{
    struct hub_scorer *s = scorers_find(&h->seen.scorers, name);
    unsigned changes;

    if (s && scorer_has_ended(s, object))
        hub_drop_scorer(h, s);
    if (!object || object_is_deleting(object))
        return;
    changes = scorers_see(&h->seen.scorers, object);
    hub_note(h, changes);
    if (changes & CHANGE_EDITED)
        statuses_hurry_scorer(&h->statuses, name);
    else
        statuses_see_scorer(&h->statuses, name);
}

static void hub_see_config(struct hub *h, const char *name, json_t *object)
{
    unsigned changes;

    hub_forget_adjustments(h);
    changes = configs_see(&h->seen.configs, name, object);

    hub_note(h, changes);
    if (changes & CHANGE_EDITED)
        statuses_hurry_config(&h->statuses, name);
    else if (changes & CHANGE_STATUS)
        statuses_see_config(&h->statuses, name);
}

static void hub_note_placements(struct hub *h)
{
    if (scorers_use_placements(&h->seen.scorers))
        hub_note(h, CHANGE_PLAN | CHANGE_COUNTS);
}

void hub_see(struct hub *h, enum hub_kind kind, const char *name, json_t *object)
{
    switch (kind) {
    case HUB_SCORERS:
        hub_see_scorer(h, name, object);
        break;
    case HUB_CONFIGS:
        hub_see_config(h, name, object);
        break;
    case HUB_CLUSTERS:
        hub_see_managed(h, name, object);
        break;
    case HUB_WORKS:
        hub_see_work(h, name, object);
        break;
    case HUB_ADDONS:
        hub_see_addon(h, name, object);
        break;
    case HUB_PLACEMENTS:
        decisions_see_placement(&h->seen.decisions, name, object);
        hub_note_placements(h);
        break;
    case HUB_DECISIONS:
        decisions_see_decision(&h->seen.decisions, name, object);
        hub_note_placements(h);
        break;
    case HUB_KINDS:
        break;
    }
}

/* What a probe has changed, by enum hub_change. */
static void hub_on_probed(void *arg, struct hub_scorer *s, unsigned changes)
{
    struct hub *h = arg;

    if (s->share.place != scorer_place(&h->o, s)) {
        s->share.place = scorer_place(&h->o, s);
        changes |= CHANGE_PLAN;
    }
    hub_note(h, changes);
    if (changes & CHANGE_STATUS)
        statuses_look_at_scorer(&h->statuses, s->name);
}

/* ---- Making plans, and looking at statuses ---- */

enum {
    FIRST_PROBES_MS = 1000, /* how long the first plan waits for the first probes */
    FIRST_PROBES_POLL_MS = 20,
    CATCH_UP_POLL_MS = 50,
    RESYNC_MS = 5 * 60 * 1000,
};

/* Otherwise a new fleet would get empty summaries first, and the scorers a moment later. */
static bool hub_awaits_probes(const struct hub *h)
{
    if (h->desired.plan || mono_diff(h->active_since, loop_now(h->o.loop)) >= FIRST_PROBES_MS)
        return false;
    for (size_t i = 0; i < h->seen.scorers.n; i++)
        if (!scorer_is_probed(h->seen.scorers.by_age[i]))
            return true;
    return false;
}

static void hub_update_active(struct hub *h);

static void hub_on_replan(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, replan);
    mono_ms now = loop_now(h->o.loop);
    int64_t next_ms;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (h->is_catching_up)
        hub_update_active(h);
    if (observed_review(&h->seen, now)) /* also on a standby, which may take over at any moment */
        sweep_review(&h->sweep);
    if (!h->is_active)
        return;
    if (hub_awaits_probes(h)) {
        kube_timer_move(h->o.loop, t, FIRST_PROBES_POLL_MS);
        return;
    }
    works_review(&h->works);
    desired_make(&h->desired, &h->o, &h->seen);
    works_reconcile_all(&h->works);
    account_success(&h->o, "plan");
    next_ms = observed_due_ms(&h->seen, now);
    kube_timer_move(h->o.loop, t, next_ms < RESYNC_MS ? next_ms : RESYNC_MS);
    hub_note(h, CHANGE_COUNTS);
    if (!h->census.is_planned) {
        h->census.is_planned = true;
        statuses_start(&h->statuses);
        kube_timer_move(h->o.loop, &h->retally, 0);
    }
}

static void hub_on_retally(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, retally);

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->is_active)
        return;
    h->looked_at = loop_now(h->o.loop);
    (void)census_recount(&h->census);
    hub_schedule_next_look(h);
    statuses_look_at_all(&h->statuses);
}

/* ---- Active, or standing by ---- */

static void hub_start(struct hub *h)
{
    scorers_start_probes(&h->seen.scorers);
    works_start(&h->works);
    sweep_start(&h->sweep);
    strays_start(h->strays);
    log_info("active", L_INT("scorers", h->seen.scorers.n), L_INT("clusters", h->seen.clusters.by_name.n));
    if (!h->seen.configs.used.object && h->seen.clusters.by_name.n)
        log_warn("no DynamicScoringConfig found, ManifestWorks stay unchanged",
                 L_STR("namespace", h->o.namespace), L_STR("name", HUB_CONFIG));
    hub_note(h, CHANGE_PLAN | CHANGE_COUNTS);
}

/* Another controller leads: by the time that this one leads again, plan and counts would be out of date. */
static void hub_stand_by(struct hub *h)
{
    hub_note(h, scorers_stop_probes(&h->seen.scorers));
    works_stop(&h->works);
    sweep_stop(&h->sweep);
    strays_stop(h->strays);
    statuses_stop(&h->statuses);
    hub_forget_adjustments(h);
    desired_done(&h->desired, &h->seen);
    census_note_change(&h->census);
}

/* What a standby has missed must not be undone: another leader may have given a cluster a scorer for a
 * decision that this one has not seen. No deadline ends this, as none ends the first lists of a new process:
 * what the clusters have stays in force meanwhile. */
static bool hub_must_catch_up(struct hub *h)
{
    if (!h->is_leading || (h->is_catching_up && observed_has_caught_up(&h->seen)))
        h->is_catching_up = false;
    if (h->is_catching_up)
        hub_schedule_within(h, &h->replan, CATCH_UP_POLL_MS);
    return h->is_catching_up;
}

enum {
    OPENING_MS = 30 * 1000, /* in which the watches of a large fleet have told what there is */
    KINDS_BYTES = 256,
};

/* A leader waits for as long as it takes, so it says so, once. */
static void hub_on_inactive(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, inactive);
    BUF_AUTO(kinds, KINDS_BYTES);

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    observed_put_awaited(&h->seen, &kinds);
    log_warn("leading, but not active yet: clusters keep what they have, and nothing new is distributed",
             L_SL("waits_for", buf_str(&kinds)));
}

/* From when on it leads without being active, until it is, or ceases to lead. */
static void hub_time_inactivity(struct hub *h)
{
    bool is_timed = h->is_inactivity_timed;

    h->is_inactivity_timed = h->is_leading && !h->is_stopping && !h->is_active;
    if (h->is_inactivity_timed != is_timed)
        kube_timer_move(h->o.loop, &h->inactive, is_timed ? KUBE_FAR_MS : OPENING_MS);
}

/* After it has become the leader or not, or the state of the watches has changed. */
static void hub_update_active(struct hub *h)
{
    bool has_listed = observed_has_listed_all(&h->seen);
    bool is_active = h->is_leading && !h->is_stopping && has_listed && !hub_must_catch_up(h);
    bool was_active = h->is_active;

    if (has_listed)
        decisions_resume(&h->seen.decisions, &h->seen.scorers, &h->seen.clusters, loop_now(h->o.loop));
    h->is_active = is_active;
    hub_time_inactivity(h);
    if (is_active == was_active)
        return;
    h->active_since = loop_now(h->o.loop);
    h->census.is_planned = false;
    if (is_active)
        hub_start(h);
    else
        hub_stand_by(h);
}

void hub_lead(struct hub *h, bool leads)
{
    h->is_leading = leads;
    hub_update_active(h);
}

static void hub_on_lease(void *arg, bool leading)
{
    struct hub *h = arg;

    /* The Lease was just written, so the API server answers. */
    h->is_catching_up = leading;
    if (leading)
        observed_take_over(&h->seen, loop_now(h->o.loop));
    hub_lead(h, leading);
}

/* ---- The watches ---- */

/* Works and add-ons are known by their cluster, which is their namespace. */
static bool kind_is_of_cluster(enum hub_kind kind)
{
    return kind == HUB_WORKS || kind == HUB_ADDONS;
}

static void watch_on_set(void *arg, json_t *object)
{
    const struct hub_watch *w = arg;

    hub_see(w->hub, w->kind, kind_is_of_cluster(w->kind) ? kube_namespace(object) : kube_name(object),
            object);
}

static void watch_on_delete(void *arg, const char *namespace, const char *name)
{
    const struct hub_watch *w = arg;

    hub_see(w->hub, w->kind, kind_is_of_cluster(w->kind) ? namespace : name, NULL);
}

static void watch_on_synced(void *arg)
{
    const struct hub_watch *w = arg;

    hub_update_active(w->hub);
}

/* A cluster that has left the decisions may have waited for it. */
static void watch_on_listed(void *arg)
{
    const struct hub_watch *w = arg;

    if (decisions_await_list(&w->hub->seen.decisions))
        hub_note(w->hub, CHANGE_PLAN | CHANGE_COUNTS);
}

/* There was no news of add-ons for a while. */
static void hub_note_addons_gap(struct hub *h)
{
    addons_note_gap(&h->seen.addons, loop_now(h->o.loop));
    hub_note(h, CHANGE_PLAN);
}

/* What is gone without a word is found by the plan. */
static void watch_on_restored(void *arg)
{
    const struct hub_watch *w = arg;

    if (w->kind == HUB_ADDONS)
        hub_note_addons_gap(w->hub);
    hub_note(w->hub, CHANGE_PLAN | CHANGE_COUNTS);
}

/* Conditions say which objects cannot be read. */
static void hub_note_readable(struct hub *h, enum hub_kind kind)
{
    if (hub_kind_is_of_placements(kind))
        hub_note_placements(h);
    else
        hub_note(h, CHANGE_COUNTS);
}

static void watch_on_error(void *arg, const char *error)
{
    const struct hub_watch *w = arg;
    bool is_missed = observed_error(&w->hub->seen, w->kind);

    observed_note_error(&w->hub->seen, w->kind, loop_now(w->hub->o.loop));
    if (is_missed)
        log_warn("watch failed, last known objects stay active", L_STR("objects", hub_kind_word(w->kind)),
                 L_STR("err", error));
    else if (w->kind == HUB_ADDONS)
        log_info("kind not installed, agents are judged by their reports alone",
                 L_STR("objects", hub_kind_word(w->kind)));
    else /* once a scorer names Placements, its condition says so */
        log_debug("objects that no scorer needs cannot be watched", L_STR("objects", hub_kind_word(w->kind)),
                  L_STR("err", error));
    hub_note_readable(w->hub, w->kind);
    if (w->kind >= HUB_ADDONS) /* not waited for any longer */
        hub_update_active(w->hub);
}

static void watch_on_recovered(void *arg)
{
    const struct hub_watch *w = arg;

    log_info("watch recovered", L_STR("objects", hub_kind_word(w->kind)));
    observed_note_recovery(&w->hub->seen, w->kind);
    hub_note_readable(w->hub, w->kind);
    if (w->kind == HUB_ADDONS)
        hub_note_addons_gap(w->hub);
}

static struct kube_watch_options watch_options(struct hub *h, enum hub_kind kind)
{
    bool is_everywhere = hub_kind_is_everywhere(kind);
    struct kube_watch_options o = {.resource = hub_kind_resource(kind),
                                   .namespace = is_everywhere ? NULL : h->o.namespace,
                                   .on_set = watch_on_set,
                                   .on_delete = watch_on_delete,
                                   .on_synced = watch_on_synced,
                                   .on_restored = watch_on_restored,
                                   .on_error = watch_on_error,
                                   .on_recovered = watch_on_recovered,
                                   .arg = &h->watches[kind]};

    if (kind == HUB_DECISIONS)
        o.on_listed = watch_on_listed;
    if (kind == HUB_ADDONS)
        o.name = h->o.addon_name;
    if (kind == HUB_WORKS) {
        o.name = WORK_NAME;
        o.page = 25; /* a ManifestWork may have half a megabyte */
        o.cut = &h->seen.decisions.work_cut;
    }
    return o;
}

static void watches_new(struct hub *h)
{
    for (enum hub_kind kind = 0; kind < HUB_KINDS; kind++) {
        const struct kube_watch_options o = watch_options(h, kind);

        h->watches[kind] = (struct hub_watch){h, kind};
        h->seen.watches[kind] = kube_watch_new(h->o.kube, &o);
    }
}

/* ---- The hub ---- */

/* Each part is told what it may see of the others. */
static void hub_connect(struct hub *h)
{
    h->seen.scorers = (struct scorers){.o = &h->o, .on_probed = hub_on_probed, .arg = h};
    h->works = (struct works){.o = &h->o,
                              .seen = &h->seen,
                              .desired = &h->desired,
                              .events = h->events,
                              .note = hub_note,
                              .on_idle = hub_on_idle,
                              .arg = h};
    h->sweep = (struct sweep){.o = &h->o, .clusters = &h->seen.clusters};
    h->census = (struct census){.o = &h->o, .seen = &h->seen, .desired = &h->desired};
    h->statuses = (struct statuses){.o = &h->o, .seen = &h->seen, .census = &h->census, .events = h->events};
}

struct hub *hub_new(const struct hub_options *o)
{
    struct hub *h = xcalloc(1, sizeof(*h));
    const struct kube_lease_options lease = {.namespace = o->namespace,
                                             .name = "dynamic-scoring-controller",
                                             .identity = o->identity,
                                             .on_change = hub_on_lease,
                                             .arg = h};

    h->o = *o;
    h->started_ms = loop_wall(o->loop).ms;
    h->replan.fn = hub_on_replan;
    h->retally.fn = hub_on_retally;
    h->inactive.fn = hub_on_inactive;
    kube_timer_move(o->loop, &h->replan, KUBE_FAR_MS);
    kube_timer_move(o->loop, &h->retally, KUBE_FAR_MS);
    kube_timer_move(o->loop, &h->inactive, KUBE_FAR_MS);
    h->events =
        kube_events_new(o->kube, "dynamic-scoring.open-cluster-management.io/controller", o->identity);
    hub_connect(h);
    works_begin(&h->works);
    statuses_begin(&h->statuses);
    sweep_begin(&h->sweep);
    census_begin(&h->census);
    decisions_begin(&h->seen.decisions);
    watches_new(h);
    h->strays = strays_new(&h->o, h->events);
    if (o->leader_elect)
        h->lease = kube_lease_new(o->kube, &lease);
    else
        hub_lead(h, true);
    return h;
}

void hub_stop(struct hub *h, void (*done)(void *arg), void *arg)
{
    h->is_stopping = true;
    hub_update_active(h);
    if (h->lease)
        kube_lease_release(h->lease, done, arg);
    else if (done)
        done(arg);
}

struct hub *hub_free(struct hub *h)
{
    if (!h)
        return NULL;
    h->lease = kube_lease_free(h->lease);
    for (size_t i = 0; i < HUB_KINDS; i++)
        h->seen.watches[i] = kube_watch_free(h->seen.watches[i]);
    h->strays = strays_free(h->strays);
    loop_timer_clear(h->o.loop, &h->replan);
    loop_timer_clear(h->o.loop, &h->retally);
    loop_timer_clear(h->o.loop, &h->inactive);
    statuses_done(&h->statuses);
    desired_done(&h->desired, &h->seen);
    sweep_done(&h->sweep);
    works_done(&h->works);
    census_done(&h->census);
    h->events = kube_events_free(h->events);
    observed_done(&h->seen);
    free(h);
    return NULL;
}

/* ---- For pages and metrics ---- */

struct fleet hub_fleet(const struct hub *h)
{
    return census_view(&h->census);
}

struct fleet hub_count(struct hub *h)
{
    return census_count(&h->census);
}

/* Counting 10,000 clusters for a page would delay the loop. */
void hub_ask_for_counts(struct hub *h)
{
    if (!census_is_current(&h->census))
        hub_note(h, CHANGE_COUNTS);
}

struct hub_self hub_self(const struct hub *h)
{
    return (struct hub_self){.is_leading = h->is_leading,
                             .is_active = h->is_active,
                             .has_counts = census_is_current(&h->census),
                             .holder = h->lease ? kube_lease_holder(h->lease) : h->o.identity,
                             .lease_error = h->lease ? kube_lease_error(h->lease) : NULL,
                             .started_ms = h->started_ms,
                             .access = h->access};
}

void hub_set_access(struct hub *h, const struct access *access)
{
    h->access = access;
}

void hub_set_metrics(void *hub)
{
    struct hub *h = hub;
    struct metrics *m = h->o.metrics;
    bool is_late = hub_fleet(h).counts->totals.behind > 0; /* the lag grows with time alone */
    const struct fleet f = is_late ? census_recount(&h->census) : census_count(&h->census);

    gauges_set(&f, h->is_active);
    if (h->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "hub"), !kube_lease_error(h->lease));
    metric_set(m, METRIC_KUBE_CLOCK_OFFSET, LV("hub"), (double)f.clock_offset_ms / 1000);
    metric_set(m, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    metric_set(m, METRIC_HUB_LEADER, LV_NONE, h->is_leading);
    metric_set(m, METRIC_HUB_QUEUE, LV("works"), (double)kube_queue_length(h->works.writer.queue));
    metric_set(m, METRIC_HUB_QUEUE, LV("status"), (double)kube_queue_length(h->statuses.writer.queue));
    metric_set(m, METRIC_HUB_EVENTS_DROPPED, LV_NONE, (double)kube_events_dropped(h->events));
}
