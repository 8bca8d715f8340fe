/* Owns the hub's watches and queues, and passes on what they show (state.h says to which files). On the
 * loop. */
#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"
#include "exporter/base/log.h"

#include <stdio.h>

/* ---- The watches, one for each kind of object in hub_kinds ---- */

const struct hub_kind hub_kinds[HUB_KINDS] = {
    [HUB_SCORERS] = {"DynamicScorers", hub_scorer_seen, {.resource = &kube_dynamicscorers}},
    [HUB_CONFIGS] = {"DynamicScoringConfigs", hub_config_seen, {.resource = &kube_dynamicscoringconfigs}},
    [HUB_CLUSTERS] = {"ManagedClusters", hub_managed_seen, {.resource = &kube_managedclusters}},
    /* A ManifestWork may have half a megabyte. */
    [HUB_WORKS] = {"ManifestWorks",
                   hub_work_seen,
                   {.resource = &kube_manifestworks, .name = WORK_NAME, .page = 25}},
    [HUB_ADDONS] = {"ManagedClusterAddOns", hub_addon_seen, {.resource = &kube_managedclusteraddons}},
    [HUB_PLACEMENTS] = {"Placements", hub_placement_seen, {.resource = &kube_placements}},
    [HUB_DECISIONS] = {"PlacementDecisions", hub_decision_seen, {.resource = &kube_placementdecisions}},
};

static size_t watch_kind(const struct hub_watch *w)
{
    return (size_t)(w - w->hub->watches);
}

/* Works and add-ons are known by their cluster, which is their namespace. */
static void watch_seen(const struct hub_watch *w, const char *namespace, const char *name, json_t *object)
{
    size_t kind = watch_kind(w);

    hub_kinds[kind].seen(w->hub, kind == HUB_WORKS || kind == HUB_ADDONS ? namespace : name, object);
}

static void watch_on_set(void *arg, json_t *object)
{
    watch_seen(arg, kube_namespace(object), kube_name(object), object);
}

static void watch_on_delete(void *arg, const char *namespace, const char *name)
{
    watch_seen(arg, namespace, name, NULL);
}

static void watch_on_synced(void *arg)
{
    struct hub_watch *w = arg;

    hub_update_active(w->hub);
}

/* What is gone without a word is found by the plan. */
static void watch_on_restored(void *arg)
{
    const struct hub_watch *w = arg;

    if (watch_kind(w) == HUB_ADDONS)
        hub_addons_note_gap(w->hub);
    hub_schedule_plan(w->hub);
    hub_schedule_tally(w->hub);
}

static void watch_on_trouble(void *arg, const char *text)
{
    const struct hub_watch *w = arg;
    const char *objects = hub_kinds[watch_kind(w)].plural;

    if (text && !hub_watch_trouble(w->hub, watch_kind(w)) && watch_kind(w) == HUB_ADDONS)
        log_info("kind not installed, agents are judged by their reports alone", L_STR("objects", objects));
    else if (text && hub_watch_trouble(w->hub, watch_kind(w)))
        log_warn("watch failed, last known objects stay active", L_STR("objects", objects),
                 L_STR("err", text));
    else if (text) /* once a scorer names Placements, its condition says so */
        log_debug("objects that no scorer needs cannot be watched", L_STR("objects", objects),
                  L_STR("err", text));
    else
        log_info("watch recovered", L_STR("objects", objects));
    if (!text && watch_kind(w) == HUB_ADDONS)
        hub_addons_note_gap(w->hub);
    if (text && watch_kind(w) >= HUB_ADDONS) /* not waited for any longer */
        hub_update_active(w->hub);
}

static void watches_new(struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++) {
        struct kube_watch_options o = hub_kinds[i].options;

        h->watches[i].hub = h;
        o.namespace = i < HUB_CLUSTERS || i > HUB_ADDONS ? h->o.namespace : NULL;
        o.name = i == HUB_ADDONS ? h->o.addon_name : o.name;
        o.cut = i == HUB_WORKS ? &h->decisions.work_cut : NULL;
        o.on_set = watch_on_set;
        o.on_delete = watch_on_delete;
        o.on_synced = watch_on_synced;
        o.on_restored = watch_on_restored;
        o.on_trouble = watch_on_trouble;
        o.arg = &h->watches[i];
        h->watches[i].watch = kube_watch_new(h->o.kube, &o);
    }
}

bool hub_synced(const struct hub *h)
{
    for (size_t i = 0; i < HUB_KINDS; i++)
        if (!hub_watch_listed(h, i))
            return false;
    return true;
}

/* ---- The writers of ManifestWorks and statuses ---- */

static void hub_count_write(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    struct hub *h = arg;

    metric_add(h->o.metrics, METRIC_HUB_WRITES,
               LV(kube_operation_word(operation), kube_verdict_word(a->verdict)), 1);
}

static void writers_new(struct hub *h)
{
    /* A quarter of the rate is on top, for clusters without a work. */
    const struct kube_queue_options works = {.work = hub_work_write,
                                             .arg = h,
                                             .kube = h->o.kube,
                                             .max_active = 20,
                                             .min_retry_ms = 500,
                                             .max_retry_ms = 60 * 1000,
                                             .per_second = h->o.api_qps + h->o.api_qps / 4 + 1,
                                             .burst = h->o.api_burst + h->o.api_burst / 4 + 1};
    const struct kube_queue_options status = {.work = hub_status_write,
                                              .arg = h,
                                              .kube = h->o.kube,
                                              .max_active = 16,
                                              .max_retry_ms = 60 * 1000,
                                              .per_second = 10 * (h->o.api_qps / 4 + 1),
                                              .burst = 10 * (h->o.api_burst / 4 + 1)};

    h->works = (struct kube_writer){.kube = h->o.kube,
                                    .manager = "dynamic-scoring-controller",
                                    .kind = "ManifestWork",
                                    .detail = "cluster",
                                    .on_fight = hub_work_on_fight,
                                    .count = hub_count_write,
                                    .arg = h};
    h->status = h->works;
    h->status.kind = "status";
    h->status.detail = "object";
    h->status.on_fight = hub_status_on_fight;
    h->works.queue = kube_queue_new(h->o.loop, &works);
    h->status.queue = kube_queue_new(h->o.loop, &status);
}

/* ---- Strays ----
 *
 * DynamicScorers and DynamicScoringConfigs in namespaces that nobody watches: an Event and a line in
 * the log say where to put them. What another controller attends to is not among them. Without the
 * permission to watch all namespaces, they go unnoticed. */

/* Longer than another controller takes to write its status or finalizer. */
enum { UNATTENDED_MS = 10 * 1000 };

static void stray_report(const struct stray_watch *w, const char *namespace, const char *name,
                         const char *uid)
{
    const struct hub *h = w->hub;
    json_auto_t *about =
        json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", namespace, "name", name, "uid", uid);
    char note[512];

    (void)snprintf(
        note, sizeof(note),
        "No controller watches this namespace: apply the object to namespace %s, or run the controller "
        "with --namespace=%s",
        h->o.namespace, namespace);
    log_warn("object in a namespace that no controller watches", L_STR("kind", w->resource->kind),
             L_STR("namespace", namespace), L_STR("name", name), L_STR("watched", h->o.namespace));
    kube_events_add(h->events, &(const struct kube_event){.about = about,
                                                          .api_version = HUB_API,
                                                          .kind = w->resource->kind,
                                                          .warning = true,
                                                          .reason = "NamespaceNotWatched",
                                                          .action = "Reconcile",
                                                          .note = note});
}

static void strays_work(void *arg, const char *key)
{
    const struct stray_watch *w = arg;
    CLEANUP(cleanup_free) char *copy = xstrdup(key);
    const char *parts[3] = {0};
    char *rest = copy;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        parts[i] = strsep(&rest, "/");
    if (w->hub->active && kube_watch_has(w->watch, parts[0], parts[1]))
        stray_report(w, parts[0], parts[1], parts[2]);
    kube_queue_done(w->queue, key, true, -1);
}

static void strays_on_set(void *arg, json_t *object)
{
    const struct stray_watch *w = arg;
    CLEANUP(cleanup_free)
    char *key = xasprintf("%s/%s/%s", kube_namespace(object), kube_name(object), kube_uid(object));

    /* Some controller has written to it. */
    if (json_object_size(kube_map(object, "status", NULL)) || object_is_deleting(object) ||
        json_array_size(kube_list(object, "metadata", "finalizers", NULL)))
        kube_queue_forget(w->queue, key);
    else
        kube_queue_add_after(w->queue, key, UNATTENDED_MS);
}

static void strays_on_trouble(void *arg, const char *text)
{
    const struct stray_watch *w = arg;

    if (text && !w->hub->strays_unseen && !kube_watch_synced(w->watch))
        log_info("objects in other namespaces go unnoticed", L_STR("kind", w->resource->kind),
                 L_STR("err", text));
    w->hub->strays_unseen |= text != NULL;
}

static void strays_new(struct hub *h)
{
    static const struct kube_resource *const resources[] = {&kube_dynamicscorers,
                                                            &kube_dynamicscoringconfigs};
    char elsewhere[128];

    (void)snprintf(elsewhere, sizeof(elsewhere), "metadata.namespace!=%s", h->o.namespace);
    for (size_t i = 0; i < ARRAY_SIZE(h->strays); i++) {
        struct stray_watch *w = &h->strays[i];
        const struct kube_queue_options queue = {.work = strays_work, .arg = w, .kube = h->o.kube};
        const struct kube_watch_options o = {.resource = resources[i],
                                             .field_selector = elsewhere,
                                             .on_set = strays_on_set,
                                             .on_trouble = strays_on_trouble,
                                             .arg = w};

        *w = (struct stray_watch){h, resources[i], kube_queue_new(h->o.loop, &queue), NULL};
        w->watch = kube_watch_new(h->o.kube, &o);
    }
}

/* ---- The hub ---- */

enum {
    FIRST_PROBES_MS = 1000, /* how long the first plan waits for the first probes */
    FIRST_PROBES_POLL_MS = 20,
    RESYNC_MS = 5 * 60 * 1000,
};

static bool hub_all_probed(const struct hub *h)
{
    for (size_t i = 0; i < h->n_scorers; i++) {
        const struct hub_scorer *s = h->by_age[i];
        const struct probe_status *p = probe_status(s->probe);

        if (hub_scorer_awaits_config(s) ||
            (s->spec.health_check == HEALTH_CHECK_HUB && p->health == HEALTH_UNKNOWN && !p->probe.asked))
            return false;
    }
    return true;
}

static void hub_on_replan(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, replan);
    int64_t next_ms;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    hub_decisions_review(h); /* both also on a standby, which may take over at any moment */
    hub_addons_review(h);
    if (!h->active)
        return;
    /* Otherwise a new fleet would get empty summaries first, and the scorers a moment later. */
    if (!h->plan && !hub_all_probed(h) && mono_diff(h->active_since, loop_now(h->o.loop)) < FIRST_PROBES_MS) {
        kube_timer_move(h->o.loop, t, FIRST_PROBES_POLL_MS);
        return;
    }
    hub_clusters_review(h);
    hub_plan_make(h);
    hub_count_reconcile(h, "plan", true);
    next_ms = hub_decisions_due_ms(h) < hub_addons_due_ms(h) ? hub_decisions_due_ms(h) : hub_addons_due_ms(h);
    kube_timer_move(h->o.loop, t, next_ms < RESYNC_MS ? next_ms : RESYNC_MS);
    hub_schedule_tally(h);
    if (!h->planned) {
        h->planned = true;
        kube_timer_move(h->o.loop, &h->retally, 0);
    }
}

static void hub_on_retally(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, retally);
    const struct hub_config *c;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->active)
        return;
    h->looked_at = loop_now(h->o.loop);
    h->tallied = false; /* states change by time alone, too */
    hub_tally(h);
    hub_schedule_look(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        hub_schedule_status(h, "scorer", h->by_age[i]->name, false);
    if (h->config.object)
        hub_schedule_status(h, "config", HUB_CONFIG, false);
    for (size_t at = 0; (c = map_next(&h->other_configs, &at));)
        hub_schedule_status(h, "config", kube_name(c->object), false);
}

void hub_update_active(struct hub *h)
{
    bool synced = hub_synced(h), active = h->leading && !h->stopping && synced;

    if (synced)
        hub_decisions_resume(h);
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
    hub_addons_cancel(h);
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
    for (size_t i = 0; i < HUB_KINDS && leading && hub_synced(h); i++)
        kube_watch_hurry(h->watches[i].watch);
    hub_update_active(h);
}

struct hub *hub_new(const struct hub_options *o)
{
    struct hub *h = xcalloc(1, sizeof(*h));
    const struct kube_lease_options lease = {.namespace = o->namespace,
                                             .name = "dynamic-scoring-controller",
                                             .identity = o->identity,
                                             .on_change = hub_on_leading,
                                             .arg = h};

    h->o = *o;
    h->started_ms = loop_wall(o->loop).ms;
    h->frame = work_frame(o->agent_namespace);
    h->replan.fn = hub_on_replan;
    h->retally.fn = hub_on_retally;
    kube_timer_move(o->loop, &h->replan, KUBE_FAR_MS);
    kube_timer_move(o->loop, &h->retally, KUBE_FAR_MS);
    h->events =
        kube_events_new(o->kube, "dynamic-scoring.open-cluster-management.io/controller", o->identity);
    writers_new(h);
    hub_decisions_begin(h);
    hub_addons_begin(h);
    watches_new(h);
    strays_new(h);
    if (o->leader_elect)
        h->lease = kube_lease_new(o->kube, &lease);
    else
        h->leading = true;
    return h;
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

struct hub *hub_free(struct hub *h)
{
    if (!h)
        return NULL;
    h->lease = kube_lease_free(h->lease);
    for (size_t i = 0; i < HUB_KINDS; i++)
        h->watches[i].watch = kube_watch_free(h->watches[i].watch);
    for (size_t i = 0; i < ARRAY_SIZE(h->strays); i++) {
        (void)kube_watch_free(h->strays[i].watch);
        (void)kube_queue_free(h->strays[i].queue);
    }
    loop_timer_clear(h->o.loop, &h->replan);
    loop_timer_clear(h->o.loop, &h->retally);
    hub_statuses_cancel(h);
    h->status.queue = kube_queue_free(h->status.queue);
    hub_plan_done(h);
    hub_addons_free(h);
    hub_clusters_free(h);
    h->events = kube_events_free(h->events);
    hub_scorers_free(h);
    hub_configs_free(h);
    hub_decisions_free(h);
    json_decref(h->frame);
    free(h);
    return NULL;
}

/* ---- Gauges ----
 *
 * Only the active controller has those of scorers and clusters: a standby would report them twice. */

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
    enum probe_health health = hub_scorer_health(s);
    const struct probe_part *config = &probe_status(s->probe)->config;
    struct metrics *m = h->o.metrics;

    gauge_set(m, METRIC_HUB_SCORER_HEALTHY, LV(s->name), h->active && health != HEALTH_UNKNOWN,
              health != HEALTH_INACTIVE);
    gauge_set(m, METRIC_HUB_SCORER_READY, LV(s->name), h->active, h->active && status_scorer_ready(s));
    gauge_set(m, METRIC_HUB_SCORER_SYNCED, LV(s->name),
              h->active && s->has_spec && s->spec.mode == SYNC_FULL && config->asked, config->ok);
    for (size_t i = 0; i < TALLY_FIELDS; i++)
        gauge_set(m, METRIC_HUB_SCORER_CLUSTERS, LV(s->name, tally_fields[i].state), h->active,
                  (double)tally_count(&s->tally, i));
}

/* Also on a standby. */
static void gauge_set_watches(const struct hub *h)
{
    struct metrics *m = h->o.metrics;

    for (size_t i = 0; i < HUB_KINDS; i++) {
        const struct kube_watch *w = h->watches[i].watch;
        const char *const *labels = LV(hub_kinds[i].options.resource->plural, "hub");
        int64_t heard_ms = kube_watch_heard(w).ms;
        bool needed = !kube_watch_trouble(w) || hub_watch_trouble(h, i);

        gauge_set(m, METRIC_KUBE_UP, labels, needed, kube_watch_synced(w) && !kube_watch_trouble(w));
        gauge_set(m, METRIC_KUBE_LAST_ANSWER, labels, needed && heard_ms > 0, (double)heard_ms / 1000);
    }
    if (h->lease)
        metric_set(m, METRIC_KUBE_UP, LV("leases", "hub"), !kube_lease_trouble(h->lease));
    metric_set(m, METRIC_KUBE_CLOCK_OFFSET, LV("hub"), (double)kube_clock_offset_ms(h->o.kube) / 1000);
}

void hub_set_metrics(void *hub)
{
    struct hub *h = hub;
    struct metrics *m = h->o.metrics;
    const struct hub_totals *t = &h->totals;

    /* The lag grows with time alone. */
    h->tallied = h->tallied && h->totals.behind == 0;
    hub_tally(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        gauge_set_scorer(h, h->by_age[i]);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("up_to_date"), h->active, (double)t->up_to_date);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("behind"), h->active, (double)t->behind);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("failing"), h->active, (double)t->failing);
    gauge_set(m, METRIC_HUB_CLUSTERS, LV("leaving"), h->active, (double)t->leaving);
    gauge_set(m, METRIC_HUB_LAG, LV_NONE, h->active, t->lag_s);
    gauge_set(m, METRIC_HUB_SUMMARIES, LV_NONE, h->active, (double)t->largest);
    gauge_set(m, METRIC_HUB_LEFT_OUT, LV_NONE, h->active, (double)t->left_out);
    gauge_set_watches(h);
    metric_set(m, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    metric_set(m, METRIC_HUB_LEADER, LV_NONE, h->leading);
    metric_set(m, METRIC_HUB_QUEUE, LV("works"), (double)kube_queue_length(h->works.queue));
    metric_set(m, METRIC_HUB_QUEUE, LV("status"), (double)kube_queue_length(h->status.queue));
    metric_set(m, METRIC_HUB_EVENTS_DROPPED, LV_NONE, (double)kube_events_dropped(h->events));
}
