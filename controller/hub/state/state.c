#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"
#include "exporter/base/text.h"

#include <stdio.h>

/* ---- What to look at soon: many changes become one look ---- */

enum { PLAN_MS = 20, TALLY_MS = 1000, TALLY_MS_PER_CLUSTER = 10, TALLY_MAX_MS = 10000 };

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

/* During a roll-out to a large fleet counts change all the time, and each look is a write of each status. */
static void schedule_look(struct hub *h, int64_t ms)
{
    int64_t pause = (int64_t)h->totals.managed * TALLY_MS_PER_CLUSTER;

    pause = pause < TALLY_MAX_MS ? pause : TALLY_MAX_MS;
    pause -= mono_diff(h->looked_at, loop_now(h->o.loop));
    schedule_within(h, &h->retally, pause > ms ? pause : ms);
}

void hub_schedule_recount(struct hub *h)
{
    h->tallied = false;
    schedule_look(h, TALLY_MS);
}

void hub_schedule_tally(struct hub *h)
{
    h->tally_fits = false;
    hub_schedule_recount(h);
}

void hub_schedule_look(struct hub *h)
{
    int64_t ms = h->totals.look_ms - kube_wall(h->o.kube).ms;

    if (ms < KUBE_FAR_MS)
        schedule_look(h, ms > TALLY_MS ? ms : TALLY_MS);
}

void hub_schedule_status(struct hub *h, const char *kind, const char *name, bool hurry)
{
    CLEANUP(cleanup_free) char *key = xasprintf("%s/%s", kind, name);

    if (!h->active || !h->planned)
        return;
    if (hurry)
        kube_queue_forget(h->status.queue, key);
    kube_queue_add(h->status.queue, key);
}

void hub_count_reconcile(struct hub *h, const char *controller, bool ok)
{
    metric_add(h->o.metrics, METRIC_HUB_RECONCILES, LV(controller, ok ? "success" : "failure"), 1);
}

/* ---- Questions ---- */

bool object_is_deleting(const json_t *object)
{
    return kube_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

bool object_has_finalizer(const json_t *object, const char *finalizer)
{
    return kube_list_has(kube_list(object, "metadata", "finalizers", NULL), finalizer);
}

bool object_has_same_spec(const json_t *a, const json_t *b)
{
    return object_generation(a) == object_generation(b) &&
           json_equal(kube_get(a, "spec", NULL), kube_get(b, "spec", NULL));
}

int64_t object_generation(const json_t *object)
{
    int64_t n = 0;

    (void)kube_int(object, &n, "metadata", "generation", NULL);
    return n;
}

bool hub_is_distributing(const struct hub *h)
{
    return h->config.object && !object_is_deleting(h->config.object);
}

bool hub_uses_placements(const struct hub *h)
{
    for (size_t i = 0; i < h->n_scorers; i++)
        if (h->by_age[i]->spec.placements)
            return true;
    return false;
}

static bool watch_is_hopeless(const struct kube_watch *w)
{
    return kube_watch_refused(w) == KUBE_NO_KIND || kube_watch_refused(w) == KUBE_FORBIDDEN;
}

/* Placements are not waited for where they are not needed, or never come. */
bool hub_watch_listed(const struct hub *h, size_t kind)
{
    const struct kube_watch *w = h->watches[kind].watch;

    if (kube_watch_synced(w))
        return true;
    if (kind == HUB_ADDONS)
        return kube_watch_trouble(w);
    return kind >= HUB_PLACEMENTS && (!hub_uses_placements(h) || watch_is_hopeless(w));
}

/* A hub without add-ons lacks nothing: agents may be installed by other means. Nor does one without
 * Placements that no scorer names. */
const char *hub_watch_trouble(const struct hub *h, size_t kind)
{
    const struct kube_watch *w = h->watches[kind].watch;

    if (kind == HUB_ADDONS && kube_watch_refused(w) == KUBE_NO_KIND)
        return NULL;
    if (kind >= HUB_PLACEMENTS && !hub_uses_placements(h) && watch_is_hopeless(w))
        return NULL;
    return kube_watch_trouble(w);
}

/* ---- Placements ---- */

/* What is wrong with one Placement: the reason of a condition, and in `why` "does not exist ..."; or
 * REASON_NONE. */
static enum hub_reason placement_fault(const struct hub *h, const char *name, char why[256])
{
    const json_t *placement = map_get(&h->placements, name);
    const json_t *satisfied = kube_condition(kube_get(placement, "status", NULL), "PlacementSatisfied");
    const char *trouble = NULL, *reason = cstr(kube_str(satisfied, "reason", NULL));
    char says[160], line[256];

    /* Why Placements or their decisions have never been read. */
    for (size_t kind = HUB_PLACEMENTS; kind <= HUB_DECISIONS && !trouble; kind++)
        if (!kube_watch_synced(h->watches[kind].watch))
            trouble = kube_watch_trouble(h->watches[kind].watch) ?: "not listed yet";
    if (!trouble && placement && hub_placement_clusters(h, name))
        return REASON_NONE;
    kube_condition_why(satisfied, says, sizeof(says));
    if (trouble)
        (void)snprintf(line, sizeof(line), "cannot be read: %s", trouble);
    else if (!placement)
        (void)snprintf(line, sizeof(line), "does not exist in namespace %s", h->o.namespace);
    else
        (void)snprintf(line, sizeof(line), "selects no cluster%s%s", *says ? ": " : "", says);
    text_line(why, 256, str_of(line));
    if (trouble)
        return REASON_PLACEMENTS_UNREADABLE;
    if (!placement)
        return REASON_PLACEMENT_NOT_FOUND;
    /* Open Cluster Management's word. */
    return strcmp(reason, "NoManagedClusterSetBindings") == 0 ? REASON_NO_SET_BINDING
                                                              : REASON_NO_CLUSTER_SELECTED;
}

const char *hub_scorer_bad_placement(const struct hub_scorer *s, enum hub_reason *reason, char why[256])
{
    const json_t *entry;
    size_t i;

    json_array_foreach(s->spec.placements, i, entry)
    {
        const char *name = cstr(kube_str(entry, NULL));

        *reason = placement_fault(s->hub, name, why);
        if (*reason != REASON_NONE)
            return name;
    }
    return NULL;
}

bool hub_work_is_ours(const struct hub *h, const struct work_found *w)
{
    return w->ours || object_has_finalizer(h->config.object, REFERENCE_FINALIZER);
}

struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name)
{
    for (size_t i = 0; i < h->n_scorers; i++)
        if (strcmp(h->by_age[i]->name, name) == 0)
            return h->by_age[i];
    return NULL;
}

enum probe_health hub_scorer_health(const struct hub_scorer *s)
{
    bool works = s->tally.api_healthy > 0, fails = s->tally.api_unhealthy.total > 0;

    if (s->spec.health_check == HEALTH_CHECK_HUB)
        return probe_status(s->probe)->health;
    if (s->spec.health_check == HEALTH_CHECK_NONE || (!works && !fails))
        return HEALTH_UNKNOWN;
    return !fails ? HEALTH_ACTIVE : works ? HEALTH_DEGRADED : HEALTH_INACTIVE;
}

WORD_TABLE(health_word, enum probe_health, HEALTH_STATES,
           {[HEALTH_UNKNOWN] = "Unknown",
            [HEALTH_ACTIVE] = "Active",
            [HEALTH_INACTIVE] = "Inactive",
            [HEALTH_DEGRADED] = "Degraded"});

bool hub_scorer_awaits_config(const struct hub_scorer *s)
{
    const struct probe_status *p = probe_status(s->probe);

    return s->has_spec && s->spec.mode == SYNC_FULL && !p->synced.owner && !p->config.asked &&
           !kube_str(s->object, "status", "summary", NULL);
}

enum hub_place hub_scorer_place(const struct hub_scorer *s)
{
    enum probe_health health = hub_scorer_health(s);

    if (hub_scorer_awaits_config(s))
        return PLACE_NONE;
    if (s->hub->o.keep_unhealthy || s->spec.health_check != HEALTH_CHECK_HUB || health == HEALTH_ACTIVE)
        return PLACE_SUMMARIES;
    return health == HEALTH_INACTIVE ? PLACE_SUSPENDED : PLACE_NONE;
}

bool hub_scorer_shares_object(const struct hub_scorer *s)
{
    return s->older ? s->same_object : s->younger && s->younger->same_object;
}

enum hub_target hub_cluster_target(const struct hub *h, const struct hub_cluster *c)
{
    if (c->leaving)
        return TARGET_NO_WORK;
    /* A config that was never seen may be in another namespace: had it been deleted, its finalizer would
     * have kept it until all works were gone. */
    if (!hub_is_distributing(h))
        return h->config.object || h->config_gone ? TARGET_NO_WORK : TARGET_UNCHANGED;
    if (!c->managed || !h->plan)
        return TARGET_UNCHANGED;
    return c->addon == ADDON_PRESENT ? TARGET_WORK : TARGET_NO_WORK;
}

bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c)
{
    const struct work_found *w = &c->work;
    enum hub_target target = hub_cluster_target(h, c);

    /* A new cluster has no group until the next plan. */
    if (target == TARGET_WORK)
        return !c->group || (w->exists && !w->deleting && w->frame && w->hash == c->group->hash);
    return target == TARGET_UNCHANGED || !w->exists || !hub_work_is_ours(h, w) || w->deleting;
}

/* ---- The end of a cluster ---- */

const char *hub_cluster_write_error(const struct hub_cluster *c)
{
    return c->write.trouble ?: c->contested;
}

void hub_clusters_free_gone(struct hub *h)
{
    while (h->gone) {
        struct hub_cluster *c = h->gone;

        h->gone = c->next_gone;
        kube_object_done(&c->write);
        json_decref(c->text);
        report_done(&c->report);
        free(c->unavailable);
        free(c->addon_unavailable);
        free(c->addon_namespace);
        free(c->unapplied);
        free(c->contested);
        free(c->name);
        free(c);
    }
}

/* ---- Masks that match nothing ---- */

bool hub_masks_counted(const struct hub *h)
{
    return h->plan && h->plan->masks.owner == h->config.masks.owner;
}

void hub_mask_warning(char ret[MASK_WARNING_BYTES], const struct hub *h, size_t i)
{
    const struct mask *m = &h->plan->masks.list[i];
    const struct plan_mask *counts = &h->plan->of_masks[i];
    const struct {
        const char *what, *field, *text;
        size_t n;
    } parts[] = {{"cluster", "clusterName", m->cluster, counts->clusters},
                 {"score", "scoreName", m->score, counts->scores}};
    size_t at = 0;

    ret[0] = '\0';
    for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
        if (!parts[k].n)
            at += (size_t)snprintf(ret + at, MASK_WARNING_BYTES - at, "%sno %s matches %s \"%.80s\"%s",
                                   at ? ", " : "", parts[k].what, parts[k].field, parts[k].text,
                                   strpbrk(parts[k].text, "[]{}()|") ? ": only * and ? are wildcards" : "");
}
