/* Owns the watches and what they reported. */
#include "controller/assist/state/world.h"

#include "controller/assist/state/world_cut.h"
#include "controller/assist/state/world_fetch.h"
#include "controller/assist/state/world_score.h"
#include "controller/assist/state/world_shelf.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "controller/kube/watch.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <stdio.h>

enum { RELIST_MS = 10 * 1000, NEVER_MS = 24 * 3600 * 1000 };

struct world_watch {
    struct world *world;
    struct kube_watch *watch;
    struct world_shelf shelf; /* of json_t, or of struct world_score */
    unsigned round;           /* of the watch: a new one follows when an object was lost */
    bool is_listed;
    bool is_incomplete; /* an object was lost when out of memory */
};

struct world {
    struct world_options o;
    struct world_watch watches[WORLD_KINDS];
    struct world_fetches *fetches;
    struct world_shared shared;
    struct timer relist; /* always set, so that moving it cannot fail */
    bool synced;
};

/* Pages are as small as keeps the loop free: the objects of some kinds are large until they are cut. */
static const struct {
    const struct kube_resource *resource;
    const char *plural, *label_selector;
    size_t page;
    bool is_optional; /* hubs without the kind are common: no gauge says that it is down */
} kinds[WORLD_KINDS] = {
    [WORLD_CLUSTERS] = {&kube_managedclusters, "ManagedClusters", .page = 100},
    [WORLD_POLICIES] = {&kube_policies, "Policies",
                        .label_selector = "!policy.open-cluster-management.io/root-policy", .page = 50,
                        .is_optional = true},
    [WORLD_WORKLOADS] = {&kube_manifestworkreplicasets, "ManifestWorkReplicaSets", .page = 20,
                         .is_optional = true},
    [WORLD_SCORERS] = {&kube_dynamicscorers, "DynamicScorers", .page = 100},
    [WORLD_PLACEMENTS] = {&kube_placements, "Placements"},
    [WORLD_DECISIONS] = {&kube_placementdecisions, "PlacementDecisions"},
    [WORLD_BINDINGS] = {&kube_placementbindings, "PlacementBindings", .is_optional = true},
    [WORLD_SETS] = {&kube_managedclustersets, "ManagedClusterSets"},
    [WORLD_SET_BINDINGS] = {&kube_managedclustersetbindings, "ManagedClusterSetBindings"},
    [WORLD_SCORES] = {&kube_addonplacementscores, "AddOnPlacementScores", .page = 100},
};

static void world_relist_in(struct world *w, int64_t ms)
{
    int r = loop_timer_set(w->o.loop, &w->relist, mono_add(loop_now(w->o.loop), ms));

    (void)r;
}

static enum world_kind world_kind_of(const struct world_watch *ww)
{
    return (enum world_kind)(ww - ww->world->watches);
}

static void world_drop(enum world_kind kind, void *value)
{
    if (kind == WORLD_SCORES)
        (void)world_score_free(value);
    else
        json_decref(value);
}

static int world_put(struct world_watch *ww, json_t *object)
{
    enum world_kind kind = world_kind_of(ww);
    struct world_slot slot = {kube_namespace(object), kube_name(object), object, ww->round};
    struct world_score *score = NULL;
    void *old = NULL;
    int r;

    world_cut(kind, object);
    r = kind == WORLD_SCORES ? world_score_new(&score, object, &ww->world->shared) : 0;
    if (score)
        slot = (struct world_slot){score->namespace, score->name, score, ww->round};
    if (r == 0)
        r = world_shelf_put(&ww->shelf, &slot, &old);
    if (r < 0)
        (void)world_score_free(score);
    else if (!score)
        json_incref(object);
    world_drop(kind, old);
    return r;
}

static void world_on_set(void *arg, json_t *object)
{
    struct world_watch *ww = arg;

    if (world_put(ww, object) == 0)
        return;
    if (!ww->is_incomplete)
        log_error("out of memory, objects will be listed again",
                  L_STR("objects", kinds[world_kind_of(ww)].plural));
    ww->is_incomplete = true;
    world_relist_in(ww->world, RELIST_MS);
}

static void world_take(struct world_watch *ww, struct world_slot *slot)
{
    world_drop(world_kind_of(ww), world_shelf_take(&ww->shelf, slot));
}

static void world_on_delete(void *arg, const char *namespace, const char *name)
{
    struct world_watch *ww = arg;
    struct world_slot *slot = world_shelf_get(&ww->shelf, namespace, name);

    if (slot)
        world_take(ww, slot);
}

static bool world_kind_is_known(const struct world_watch *ww)
{
    return ww->is_listed || kube_watch_lacks_kind(ww->watch);
}

static void world_check_synced(struct world *w)
{
    for (size_t i = 0; i < WORLD_KINDS; i++)
        if (!world_kind_is_known(&w->watches[i]))
            return;
    if (w->synced)
        return;
    w->synced = true;
    if (w->o.synced)
        w->o.synced(w->o.arg);
}

/* Objects that only an earlier watch reported are gone. */
static void world_on_synced(void *arg)
{
    struct world_watch *ww = arg;

    for (size_t i = ww->shelf.n; i-- > 0;)
        if (ww->shelf.slots[i].round != ww->round)
            world_take(ww, &ww->shelf.slots[i]);
    ww->is_listed = true;
    world_check_synced(ww->world);
}

static void world_on_trouble(void *arg, const char *text)
{
    struct world_watch *ww = arg;
    const char *plural = kinds[world_kind_of(ww)].plural;

    if (text && kube_watch_lacks_kind(ww->watch))
        log_info("kind not installed", L_STR("objects", plural));
    else if (text)
        log_warn("watch failed, last known objects stay", L_STR("objects", plural), L_STR("err", text));
    else
        log_info("watch recovered", L_STR("objects", plural));
    world_check_synced(ww->world);
}

static int world_watch_start(struct world_watch *ww)
{
    enum world_kind kind = world_kind_of(ww);
    const struct kube_watch_options o = {
        .resource = kinds[kind].resource,
        .label_selector = kinds[kind].label_selector,
        .page = kinds[kind].page,
        .on_set = world_on_set,
        .on_delete = world_on_delete,
        .on_synced = world_on_synced,
        .on_trouble = world_on_trouble,
        .arg = ww,
    };
    struct kube_watch *fresh;
    int r = kube_watch_new(&fresh, ww->world->o.kube, &o);

    if (r < 0)
        return r;
    (void)kube_watch_free(ww->watch);
    ww->watch = fresh;
    ww->is_incomplete = false;
    ww->round++;
    return 0;
}

static void world_on_relist(struct timer *t)
{
    struct world *w = CONTAINER_OF(t, struct world, relist);
    int64_t wait_ms = NEVER_MS;

    for (size_t i = 0; i < WORLD_KINDS; i++)
        if (w->watches[i].is_incomplete && world_watch_start(&w->watches[i]) < 0)
            wait_ms = RELIST_MS;
    world_relist_in(w, wait_ms);
}

int world_new(struct world **ret, const struct world_options *o)
{
    CLEANUP(cleanup_world_free) struct world *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    w->o = *o;
    w->relist.fn = world_on_relist;
    r = loop_timer_set(o->loop, &w->relist, mono_add(loop_now(o->loop), NEVER_MS))
            ?: world_fetches_new(&w->fetches, o->kube);
    for (size_t i = 0; i < WORLD_KINDS && r == 0; i++) {
        w->watches[i].world = w;
        r = world_watch_start(&w->watches[i]);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(w);
    return 0;
}

struct world *world_free(struct world *w)
{
    if (!w)
        return NULL;
    loop_timer_clear(w->o.loop, &w->relist);
    w->fetches = world_fetches_free(w->fetches);
    for (size_t i = 0; i < WORLD_KINDS; i++) {
        struct world_watch *ww = &w->watches[i];

        (void)kube_watch_free(ww->watch);
        for (size_t k = 0; k < ww->shelf.n; k++)
            world_drop((enum world_kind)i, ww->shelf.slots[k].value);
        world_shelf_done(&ww->shelf);
    }
    world_shared_done(&w->shared);
    free(w);
    return NULL;
}

struct world_fetches *world_fetches_of(const struct world *w)
{
    return w->fetches;
}

/* ---- What is known ---- */

bool world_synced(const struct world *w)
{
    return w->synced;
}

unix_ms world_now(const struct world *w)
{
    return loop_wall(w->o.loop);
}

bool world_knows_kind(const struct world *w, enum world_kind kind)
{
    return world_kind_is_known(&w->watches[kind]);
}

bool world_lacks_kind(const struct world *w, enum world_kind kind)
{
    return kube_watch_lacks_kind(w->watches[kind].watch);
}

const char *world_trouble(const struct world *w, enum world_kind kind)
{
    const struct world_watch *ww = &w->watches[kind];
    const char *trouble = kube_watch_trouble(ww->watch);

    if (!trouble && !ww->is_listed)
        return "not listed yet";
    return trouble || !ww->is_incomplete ? trouble : "out of memory, some objects may be missing";
}

int world_note(const struct world *w, enum world_kind kind, json_t *notes)
{
    const struct world_watch *ww = &w->watches[kind];
    const char *plural = kinds[kind].plural, *trouble = world_trouble(w, kind);
    unix_ms heard = kube_watch_heard(ww->watch);
    char since[KUBE_TIME_BYTES];
    json_t *note;

    if (!trouble)
        return 0;
    kube_time_format(heard, since);
    if (kube_watch_lacks_kind(ww->watch))
        note = json_sprintf("%s are not installed on the hub.", plural);
    else if (!ww->is_listed)
        note = json_sprintf("%s are not known yet: %s.", plural, trouble);
    else if (!heard.ms)
        note = json_sprintf("%s may be out of date: %s.", plural, trouble);
    else
        note = json_sprintf("%s are as of %s (%lld s ago): %s.", plural, since,
                            (long long)(loop_wall(w->o.loop).ms - heard.ms) / 1000, trouble);
    return json_array_append_new(notes, note) == 0 ? 0 : -ENOMEM;
}

const struct kube_resource *world_resource(enum world_kind kind)
{
    return kinds[kind].resource;
}

static void world_set_gauge(struct metrics *m, enum metric id, const char *plural, bool known, double v)
{
    if (known)
        metric_set(m, id, LV(plural, "hub"), v);
    else
        metric_remove(m, id, LV(plural, "hub"));
}

void world_set_metrics(const struct world *w, struct metrics *m)
{
    for (size_t i = 0; i < WORLD_KINDS; i++) {
        const struct kube_watch *watch = w->watches[i].watch;
        const char *plural = kinds[i].resource->plural;
        int64_t heard_ms = kube_watch_heard(watch).ms;
        bool needed = !kinds[i].is_optional || !kube_watch_lacks_kind(watch);

        world_set_gauge(m, METRIC_KUBE_UP, plural, needed, !world_trouble(w, (enum world_kind)i));
        world_set_gauge(m, METRIC_KUBE_LAST_ANSWER, plural, needed && heard_ms > 0, (double)heard_ms / 1000);
    }
}

/* Nothing while the kind is not installed: its objects went with the CRD. They stay on the shelf, as an API
 * server that starts may say so of each kind at first, and the watch would not report them again. */
static const struct world_shelf *world_shelf(const struct world *w, enum world_kind kind)
{
    static const struct world_shelf none;

    return world_lacks_kind(w, kind) ? &none : &w->watches[kind].shelf;
}

json_t *world_get(const struct world *w, enum world_kind kind, const char *namespace, const char *name)
{
    const struct world_slot *slot = world_shelf_get(world_shelf(w, kind), namespace, name);

    return slot && kind != WORLD_SCORES ? slot->value : NULL;
}

json_t *world_next(const struct world *w, enum world_kind kind, const char *namespace, size_t *at)
{
    const struct world_slot *slot =
        kind == WORLD_SCORES ? NULL : world_shelf_next(world_shelf(w, kind), namespace, at);

    return slot ? slot->value : NULL;
}

const struct world_score *world_score(const struct world *w, const char *namespace, const char *name)
{
    const struct world_slot *slot = world_shelf_get(world_shelf(w, WORLD_SCORES), namespace, name);

    return slot ? slot->value : NULL;
}

const struct world_score *world_next_score(const struct world *w, const char *namespace, size_t *at)
{
    const struct world_slot *slot = world_shelf_next(world_shelf(w, WORLD_SCORES), namespace, at);

    return slot ? slot->value : NULL;
}
