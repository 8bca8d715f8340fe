/* Owns the watches, the Lease and the two timers by which many changes become one look: a new plan soon after the first of
 * them, statuses within a second. What the other hub_*.c files own is named there. */
#include "controller/hub/state/hub_internal.h"

#include "controller/kube/client_internal.h"
#include "exporter/base/log.h"

#include <errno.h>

enum {
    GATHER_MS = 20,         /* changes that come together are one plan */
    FIRST_PROBES_MS = 1000, /* so long the first plan waits for APIs that were not asked yet */
    TALLY_MS = 1000,
    RESYNC_MS = 5 * 60 * 1000,
    WORKS_PAGE = 25, /* each may hold half a megabyte */
};

#define LEASE_NAME "dynamic-scoring-controller"

static bool all_asked(const struct hub *h)
{
    size_t at = 0;
    const struct hub_scorer *s;

    while ((s = map_next(&h->scorers, &at)))
        if (s->probe && probe_status(s->probe)->health == HEALTH_UNKNOWN &&
            !probe_status(s->probe)->probe.asked)
            return false;
    return true;
}

static void on_replan(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, replan);
    int r;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->active)
        return;
    /* A new fleet would be sent empty lists first, and a moment later the same again with scorers. */
    if (!h->plan && !all_asked(h) && mono_diff(h->active_since, loop_now(h->o.loop)) < FIRST_PROBES_MS) {
        kube_timer_move(h->o.loop, t, GATHER_MS);
        return;
    }
    hub_clusters_sweep(h);
    r = hub_plan_now(h);
    hub_count_reconcile(h, "plan", r == 0);
    if (r < 0)
        log_error("summaries not made", L_ERR(r));
    /* Again also when all went well: what was missed for want of memory is mended. */
    kube_timer_move(h->o.loop, t, r < 0 ? TALLY_MS : RESYNC_MS);
    hub_touch(h);
    if (r == 0 && !h->planned) {
        h->planned = true;
        kube_timer_move(h->o.loop, &h->retally, 0);
    }
}

/* Moves the timer only if that makes it sooner: changes that keep coming do not put it off. */
static void sooner(struct hub *h, struct timer *t, int64_t ms)
{
    mono_ms at = mono_add(loop_now(h->o.loop), ms);

    if (mono_before(at, t->at))
        kube_timer_move(h->o.loop, t, ms);
}

void hub_replan(struct hub *h)
{
    sooner(h, &h->replan, GATHER_MS);
}

void hub_touch(struct hub *h)
{
    h->tallied = false;
    sooner(h, &h->retally, TALLY_MS);
}

static void on_retally(struct timer *t)
{
    struct hub *h = CONTAINER_OF(t, struct hub, retally);
    const struct hub_config *c;
    size_t at = 0;

    kube_timer_move(h->o.loop, t, KUBE_FAR_MS);
    if (!h->active)
        return;
    hub_tally(h);
    for (size_t i = 0; i < h->n_scorers; i++)
        hub_status_wanted(h, "scorer", h->by_age[i]->name);
    if (h->config.object)
        hub_status_wanted(h, "config", HUB_CONFIG);
    while ((c = map_next(&h->other_configs, &at)))
        hub_status_wanted(h, "config", kube_name(c->object));
}

bool hub_synced(const struct hub *h)
{
    return kube_watch_synced(h->scorers_watch) && kube_watch_synced(h->configs_watch) &&
           kube_watch_synced(h->clusters_watch) && kube_watch_synced(h->works_watch);
}

bool hub_wanted(const struct hub *h)
{
    return h->config.object && !kube_str(h->config.object, "metadata", "deletionTimestamp", NULL);
}

void hub_look(struct hub *h)
{
    bool active = h->leading && !h->stopping && hub_synced(h);

    if (active == h->active)
        return;
    h->active = active;
    h->active_since = loop_now(h->o.loop);
    h->planned = false;
    hub_probe_all(h);
    if (active) {
        log_info("at work", L_INT("scorers", h->n_scorers), L_INT("clusters", h->clusters.n));
        if (!h->config.object && h->clusters.n)
            log_warn("there is no DynamicScoringConfig: ManifestWorks that are there stay as they are",
                     L_STR("namespace", h->o.namespace), L_STR("name", HUB_CONFIG));
        hub_replan(h);
        hub_touch(h);
        return;
    }
    hub_works_cancel(h);
    hub_statuses_cancel(h);
    /* Another leads: what is old by the time that this one leads again must not be written. */
    hub_plan_done(h);
    h->tallied = false;
}

static void on_synced(void *arg)
{
    hub_look(arg);
}

/* The Lease was just written, so the API server answers: what the hub acts on must not be from before it was away. */
static void hurry_watches(struct hub *h)
{
    kube_watch_hurry(h->scorers_watch);
    kube_watch_hurry(h->configs_watch);
    kube_watch_hurry(h->clusters_watch);
    kube_watch_hurry(h->works_watch);
}

static void on_leading(void *arg, bool leading)
{
    struct hub *h = arg;

    h->leading = leading;
    if (leading && hub_synced(h))
        hurry_watches(h);
    if (leading)
        log_info("leading", L_STR("identity", h->o.identity));
    else if (!h->stopping)
        log_warn("no longer leading", L_STR("identity", h->o.identity));
    hub_look(h);
}

/* One for each watch, so that the line says which. */
static void tell(const char *what, const char *text)
{
    if (text)
        log_warn("cannot be followed, what is known stays", L_STR("objects", what), L_STR("err", text));
    else
        log_info("followed again", L_STR("objects", what));
}

static void scorers_trouble(void *arg, const char *text)
{
    (void)arg;
    tell("DynamicScorers", text);
}

static void configs_trouble(void *arg, const char *text)
{
    (void)arg;
    tell("DynamicScoringConfigs", text);
}

static void clusters_trouble(void *arg, const char *text)
{
    (void)arg;
    tell("ManagedClusters", text);
}

static void works_trouble(void *arg, const char *text)
{
    (void)arg;
    tell("ManifestWorks", text);
}

static int start_watches(struct hub *h)
{
    const struct kube_watch_options scorers = {.resource = &kube_dynamicscorers,
                                               .namespace = h->o.namespace,
                                               .on_set = hub_scorer_set,
                                               .on_delete = hub_scorer_delete,
                                               .on_synced = on_synced,
                                               .on_trouble = scorers_trouble,
                                               .arg = h};
    const struct kube_watch_options configs = {.resource = &kube_dynamicscoringconfigs,
                                               .namespace = h->o.namespace,
                                               .on_set = hub_config_set,
                                               .on_delete = hub_config_delete,
                                               .on_synced = on_synced,
                                               .on_trouble = configs_trouble,
                                               .arg = h};
    const struct kube_watch_options clusters = {.resource = &kube_managedclusters,
                                                .on_set = hub_managed_set,
                                                .on_delete = hub_managed_delete,
                                                .on_synced = on_synced,
                                                .on_trouble = clusters_trouble,
                                                .arg = h};
    const struct kube_watch_options works = {.resource = &kube_manifestworks,
                                             .name = WORK_NAME,
                                             .page = WORKS_PAGE,
                                             .cut = &work_cut,
                                             .on_set = hub_work_set,
                                             .on_delete = hub_work_delete,
                                             .on_synced = on_synced,
                                             .on_trouble = works_trouble,
                                             .arg = h};

    return kube_watch_new(&h->scorers_watch, h->o.kube, &scorers)
               ?: kube_watch_new(&h->configs_watch, h->o.kube, &configs)
               ?: kube_watch_new(&h->clusters_watch, h->o.kube, &clusters)
               ?: kube_watch_new(&h->works_watch, h->o.kube, &works);
}

static int start_lease(struct hub *h)
{
    const struct kube_lease_options lease = {.namespace = h->o.namespace,
                                             .name = LEASE_NAME,
                                             .identity = h->o.identity,
                                             .on_change = on_leading,
                                             .arg = h};

    if (h->o.leader_elect)
        return kube_lease_new(&h->lease, h->o.kube, &lease);
    h->leading = true;
    return 0;
}

static int start_timers(struct hub *h)
{
    mono_ms far = mono_add(loop_now(h->o.loop), KUBE_FAR_MS);

    h->replan.fn = on_replan;
    h->retally.fn = on_retally;
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
    r = start_timers(h);
    if (r == 0)
        r = kube_events_new(&h->events, o->kube, "dynamic-scoring.open-cluster-management.io/controller",
                            o->identity);
    if (r == 0)
        r = hub_works_new(h);
    if (r == 0)
        r = hub_statuses_new(h);
    if (r == 0)
        r = start_watches(h);
    if (r == 0)
        r = start_lease(h);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(h);
    return 0;
}

static void on_released(void *arg)
{
    struct hub *h = arg;

    if (h->stopped)
        h->stopped(h->stopped_arg);
}

void hub_stop(struct hub *h, void (*done)(void *arg), void *arg)
{
    h->stopping = true;
    h->stopped = done;
    h->stopped_arg = arg;
    hub_look(h);
    if (h->lease)
        kube_lease_release(h->lease, on_released);
    else
        on_released(h);
}

static void free_objects(struct hub *h)
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
    h->scorers_watch = kube_watch_free(h->scorers_watch);
    h->configs_watch = kube_watch_free(h->configs_watch);
    h->clusters_watch = kube_watch_free(h->clusters_watch);
    h->works_watch = kube_watch_free(h->works_watch);
    hub_works_free(h);
    hub_statuses_free(h);
    h->events = kube_events_free(h->events);
    loop_timer_clear(h->o.loop, &h->replan);
    loop_timer_clear(h->o.loop, &h->retally);
    hub_plan_done(h);
    free_objects(h);
    free(h);
    return NULL;
}
