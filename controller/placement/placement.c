#include "controller/placement/placement.h"

#include "controller/placement/placement_internal.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/placement/name.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

struct slot *placement_find(const struct placement *p, const char *object)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->slots[i]->object, object) == 0)
            return p->slots[i];
    return NULL;
}

static struct slot *placement_find_scorer(const struct placement *p, const struct scorer *s)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i]->scorer == s)
            return p->slots[i];
    return NULL;
}

static void placement_on_late_timer(struct timer *t)
{
    struct slot *s = CONTAINER_OF(t, struct slot, late);

    if (s->scorer)
        placement_round(s->placement, s->scorer);
}

static int placement_add_slot(struct placement *p, const char *object, struct slot **ret)
{
    int r;

    if (p->n == p->cap) {
        size_t cap = size_max(8, p->cap * 2);
        struct slot **slots = realloc(p->slots, cap * sizeof(struct slot *));
        if (!slots)
            return -ENOMEM;
        p->slots = slots;
        p->cap = cap;
    }
    r = slot_new(&p->slots[p->n], p, object);
    if (r < 0)
        return r;
    *ret = p->slots[p->n++];
    (*ret)->late.fn = placement_on_late_timer;
    return 0;
}

void placement_remove(struct placement *p, struct slot *s)
{
    size_t i = 0;

    while (p->slots[i] != s)
        i++;
    p->slots[i] = p->slots[--p->n];
    kube_queue_forget(p->queue, s->object);
    loop_timer_clear(kube_loop(p->o.hub), &s->late);
    (void)slot_free(s);
}

void placement_enqueue(struct placement *p, const struct slot *s)
{
    if (p->may_write && kube_queue_add(p->queue, s->object) < 0)
        log_error("AddOnPlacementScore not written: out of memory", L_STR("object", s->object));
    placement_update_metrics(p);
}

void placement_update_metrics(struct placement *p)
{
    bool up = kube_watch_synced(p->watch) && !kube_watch_trouble(p->watch);

    metric_set(p->o.metrics, METRIC_PLACEMENT_BEHIND, LV_NONE, (double)placement_behind(p));
    metric_set(p->o.metrics, METRIC_KUBE_UP, LV("addonplacementscores", "hub"), up);
    if (p->o.agent)
        agent_touch(p->o.agent);
}

static void placement_enqueue_all(struct placement *p)
{
    unix_ms now = loop_wall(kube_loop(p->o.hub));

    for (size_t i = 0; i < p->n; i++)
        if (p->slots[i]->scorer ? slot_is_due(p->slots[i], now) : p->configured)
            placement_enqueue(p, p->slots[i]);
}

/* ---- State on the hub ---- */

static void placement_repair(struct placement *p, struct slot *s)
{
    log_info("AddOnPlacementScore changed by another writer, writing it again", L_STR("object", s->object));
    s->overwritten = true;
    s->written = false;
    placement_enqueue(p, s);
}

/* Only objects of the first list can be left over from before a restart. Later ones with this agent's name
 * come from another replica, which may already know a scorer that this one does not. */
static void placement_on_set(void *arg, json_t *object)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, kube_name(object));

    if (!placement_is_ours(p, object))
        return;
    if (!s && (p->complete || placement_add_slot(p, kube_name(object), &s) < 0))
        return;
    (void)snprintf(s->watched_version, sizeof(s->watched_version), "%s", kube_version(object));
    if (s->call) /* its answer tells whether this came later */
        return;
    if (!s->written)
        slot_learn(s, object);
    s->exists = true;
    s->foreign = false;
    if (s->scorer && s->written && slot_is_overtaken(s) && !slot_matches(s, &p->o, object))
        placement_repair(p, s);
    else if (!s->scorer && p->configured)
        placement_enqueue(p, s);
}

/* Also when the object has only lost the label that the watch selects by. */
static void placement_on_delete(void *arg, const char *namespace, const char *name)
{
    struct placement *p = arg;
    struct slot *s = placement_find(p, name);

    (void)namespace;
    if (!s || !(s->exists || s->foreign))
        return;
    s->vanished = s->call != NULL;
    if (s->call)
        return;
    s->overwritten |= s->written;
    s->exists = s->written = false;
    placement_enqueue(p, s);
}

void placement_refresh(struct placement *p, struct slot *s)
{
    struct loop *l = kube_loop(p->o.hub);
    int64_t left_ms = 0;
    int r = slot_update(s, &p->o, loop_wall(l));

    if (r == 0 && slot_falls_back(s)) {
        left_ms = s->valid_until_ms - loop_wall(l).ms;
        r = loop_timer_set(l, &s->late, mono_add(loop_now(l), left_ms > 0 ? left_ms : 1));
    }
    if (r < 0)
        log_error("AddOnPlacementScore not updated: out of memory", L_STR("object", s->object));
}

static void placement_begin_writes(struct placement *p)
{
    if (p->may_write)
        return;
    p->may_write = true;
    for (size_t i = 0; i < p->n; i++) /* now that the hub's objects are known */
        if (p->slots[i]->scorer)
            placement_refresh(p, p->slots[i]);
    placement_enqueue_all(p);
}

static void placement_on_synced(void *arg)
{
    struct placement *p = arg;

    p->complete = true;
    placement_update_metrics(p);
    placement_begin_writes(p);
}

/* Writes may be allowed where lists are not, and report their own errors. */
static void placement_on_trouble(void *arg, const char *text)
{
    struct placement *p = arg;

    if (text)
        log_warn("watch of AddOnPlacementScores failed", L_STR("err", text));
    else
        log_info("watch of AddOnPlacementScores works again");
    placement_update_metrics(p);
    if (text)
        placement_begin_writes(p);
}

int placement_new(struct placement **ret, const struct placement_options *o)
{
    CLEANUP(cleanup_placement_free) struct placement *p = calloc(1, sizeof(*p));
    const struct kube_queue_options q = {.work = placement_work, .arg = p, .kube = o->hub};
    const struct kube_watch_options w = {
        .resource = &kube_addonplacementscores,
        .namespace = o->cluster_name,
        .label_selector = PLACEMENT_LABEL "=" PLACEMENT_LABEL_VALUE,
        .page = 10, /* each may be as large as the store allows */
        .on_set = placement_on_set,
        .on_delete = placement_on_delete,
        .on_synced = placement_on_synced,
        .on_trouble = placement_on_trouble,
        .arg = p,
    };
    int r;

    if (!p)
        return -ENOMEM;
    p->o = *o;
    r = kube_queue_new(&p->queue, kube_loop(o->hub), &q);
    if (r == 0)
        r = kube_watch_new(&p->watch, o->hub, &w);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(p);
    return 0;
}

struct placement *placement_free(struct placement *p)
{
    if (!p)
        return NULL;
    metric_remove(p->o.metrics, METRIC_PLACEMENT_BEHIND, LV_NONE);
    metric_remove(p->o.metrics, METRIC_KUBE_UP, LV("addonplacementscores", "hub"));
    p->watch = kube_watch_free(p->watch);
    for (size_t i = 0; i < p->n; i++) {
        loop_timer_clear(kube_loop(p->o.hub), &p->slots[i]->late);
        (void)slot_free(p->slots[i]);
    }
    p->queue = kube_queue_free(p->queue);
    free(p->slots);
    free(p);
    return NULL;
}

/* ---- Wanted state ---- */

void placement_round(struct placement *p, const struct scorer *scorer)
{
    struct slot *s = placement_find_scorer(p, scorer);
    unix_ms now = loop_wall(kube_loop(p->o.hub));

    if (!s)
        return;
    placement_refresh(p, s);
    if (!s->foreign && slot_is_due(s, now)) /* the queue checks on a foreign object by itself */
        placement_enqueue(p, s);
}

static int placement_assign(struct placement *p, const struct scorer *scorer)
{
    const struct summary *sum = scorer_summary(scorer);
    char object[OBJECT_NAME_MAX + 1];
    struct slot *s;
    int r = 0;

    if (sum->destination != DESTINATION_PLACEMENT_SCORE)
        return 0;
    (void)object_name(str_of(sum->score_name), object);
    s = placement_find(p, object);
    if (s && s->scorer) {
        log_warn("two scorers share one AddOnPlacementScore name: the first keeps it",
                 L_STR("object", object), L_STR("first", s->score_name), L_STR("second", sum->score_name));
        return 0;
    }
    if (!s)
        r = placement_add_slot(p, object, &s);
    if (r == 0)
        r = slot_assign(s, scorer);
    if (r == 0)
        placement_refresh(p, s);
    return r;
}

int placement_sync(struct placement *p, struct scorer *const *scorers, size_t n)
{
    int r = 0;

    for (size_t i = 0; i < p->n; i++)
        p->slots[i]->scorer = NULL;
    for (size_t i = 0; i < n; i++) {
        int e = placement_assign(p, scorers[i]);
        if (e < 0)
            r = e;
    }
    p->configured = r == 0; /* otherwise a scorer's object could be deleted as a leftover */
    placement_enqueue_all(p);
    return r;
}

const char *placement_trouble(const struct placement *p, const struct scorer *scorer)
{
    const struct slot *s = placement_find_scorer(p, scorer);

    if (s)
        return s->trouble;
    return scorer_summary(scorer)->destination == DESTINATION_PLACEMENT_SCORE
               ? "no AddOnPlacementScore: an earlier scorer uses the same object name"
               : "";
}

const char *placement_hub_trouble(const struct placement *p)
{
    return kube_watch_trouble(p->watch);
}

size_t placement_behind(const struct placement *p)
{
    unix_ms now = loop_wall(kube_loop(p->o.hub));
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->slots[i]->scorer ? slot_is_due(p->slots[i], now) : p->slots[i]->exists;
    return n;
}
