/* The DynamicScoringConfigs, the one in use and those whose status says that they are not; and the plan. */
#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"
#include "exporter/base/glob.h"
#include "exporter/base/log.h"

static void config_done(struct hub_config *c)
{
    masks_done(&c->masks);
    last_status_done(&c->last_status);
    json_decref(c->object);
    *c = (struct hub_config){0};
}

/* The map's key is the object's own name, so both change together. */
static void config_set_other(struct hub *h, const char *name, json_t *object)
{
    struct hub_config *c = map_take(&h->other_configs, name) ?: xcalloc(1, sizeof(*c));

    json_decref(c->object);
    c->object = json_incref(object);
    if (object) {
        map_set(&h->other_configs, kube_name(object), c);
        return;
    }
    config_done(c);
    free(c);
}

static void config_set_used(struct hub *h, json_t *object)
{
    struct hub_config *c = &h->config;
    struct masks masks;
    bool changed, had_finalizer = object_has_finalizer(c->object, HUB_FINALIZER);

    if (c->object && (!object || strcmp(kube_uid(c->object), kube_uid(object)) != 0))
        config_done(c);
    h->config_gone = !object;
    if (!object) {
        hub_schedule_plan(h);
        return;
    }
    changed = !c->object || !object_has_same_spec(c->object, object) ||
              object_is_deleting(c->object) != object_is_deleting(object);
    json_decref(c->object);
    c->object = json_incref(object);
    if (changed && masks_read(&masks, object, c->masks_error) < 0) {
        log_warn("invalid masks, the last valid ones stay active", L_STR("err", c->masks_error));
    } else if (changed) {
        c->masks_error[0] = '\0';
        masks_done(&c->masks);
        c->masks = masks;
    }
    if (changed)
        hub_schedule_status(h, "config", HUB_CONFIG, true);
    if (changed || had_finalizer != object_has_finalizer(object, HUB_FINALIZER))
        hub_schedule_plan(h);
}

void hub_config_seen(struct hub *h, const char *name, json_t *object)
{
    if (strcmp(name, HUB_CONFIG) == 0)
        config_set_used(h, object);
    else
        config_set_other(h, name, object);
    if (object)
        hub_schedule_status(h, "config", name, false);
}

void hub_configs_free(struct hub *h)
{
    struct hub_config *other;

    for (size_t at = 0; (other = map_next(&h->other_configs, &at)); free(other))
        config_done(other);
    map_done(&h->other_configs);
    config_done(&h->config);
}

/* ---- The plan ---- */

/* No two scorers may share a score name, nor the AddOnPlacementScore that it leads to. The older of two owns
 * it, healthy or not: a name that changed owners with each failed probe would mix two scorers' scores. */
static void plan_find_duplicates(struct hub *h)
{
    CLEANUP(map_done) struct map names = {0}, objects = {0};

    for (size_t i = 0; i < h->n_scorers; i++) {
        h->by_age[i]->older = h->by_age[i]->younger = NULL;
        h->by_age[i]->place = hub_scorer_place(h->by_age[i]);
    }
    for (size_t i = 0; i < h->n_scorers; i++) {
        struct hub_scorer *s = h->by_age[i], *owner;
        const char *name = s->effective.score_name;

        if (!name)
            continue;
        s->object_name[0] = '\0';
        if (strcmp(cstr(s->spec.destination), "None") != 0)
            (void)object_name(str_of(name), s->object_name);
        owner = map_get(&names, name);
        s->same_object = !owner;
        if (!owner && *s->object_name)
            owner = map_get(&objects, s->object_name);
        if (owner) {
            s->older = owner;
            owner->younger = s;
            continue;
        }
        map_set(&names, name, s);
        if (*s->object_name)
            map_set(&objects, s->object_name, s);
    }
}

/* The cluster lacks the agent's add-on: the scorers that it would have say so. */
static void plan_note_without_addon(const struct hub *h, const struct hub_cluster *c)
{
    for (size_t i = 0; h->plan && i < h->plan->n; i++) {
        const struct plan_entry *e = &h->plan->entries[i];
        struct hub_scorer *s = e->owner;

        if (e->clusters && !map_get(e->clusters, c->name))
            continue;
        if (!s->n_without_addon++)
            s->first_without_addon = xstrdup(c->name);
    }
}

void hub_plan_done(struct hub *h)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        c->group = NULL;
    for (size_t i = 0; i < h->n_scorers; i++) {
        h->by_age[i]->entry = SIZE_MAX;
        h->by_age[i]->n_without_addon = 0;
        free(TAKE_PTR(h->by_age[i]->first_without_addon));
    }
    json_decref(TAKE_PTR(h->text));
    h->text_of = NULL;
    h->plan = plan_free(h->plan);
}

static void plan_make(struct hub *h)
{
    CLEANUP(cleanup_free)
    struct plan_entry *entries = xcalloc(h->n_scorers + 1, sizeof(*entries));
    size_t n = 0;

    for (enum hub_place place = PLACE_SUMMARIES; place <= PLACE_SUSPENDED; place++)
        for (size_t i = 0; i < h->n_scorers; i++) {
            struct hub_scorer *s = h->by_age[i];

            if (s->older || !effective_usable(&s->effective) || s->place != place)
                continue;
            entries[n] = (struct plan_entry){.score_name = s->effective.score_name,
                                             .text = buf_str(&s->effective.text),
                                             .suspended = place == PLACE_SUSPENDED,
                                             .suspended_ms = place == PLACE_SUSPENDED ? s->suspended_ms : 0,
                                             .clusters = hub_scorer_clusters(s),
                                             .owner = s};
            s->entry = n++;
        }
    h->plan = plan_new(entries, n, &h->config.masks, WORK_MAX_BYTES - WORK_FRAME_BYTES);
    /* Masks' scores are those of all scorers, distributed or not. */
    for (size_t i = 0; i < h->plan->masks.n; i++)
        for (size_t k = 0; k < h->n_scorers; k++) {
            const char *score = h->by_age[k]->effective.score_name;

            h->plan->of_masks[i].scores += score && glob_match(h->plan->masks.list[i].score, score);
        }
}

void hub_plan_make(struct hub *h)
{
    struct hub_cluster *c;

    plan_find_duplicates(h);
    hub_plan_done(h);
    /* Without valid masks it is unknown which cluster gets what: everything stays as it is. No ManifestWork
     * is created before our finalizer is set: the config could go, and leave the works behind. */
    if (hub_is_distributing(h) && object_has_finalizer(h->config.object, HUB_FINALIZER) &&
        h->config.masks.owner)
        plan_make(h);
    for (size_t at = 0; (c = map_next(&h->clusters, &at));) {
        c->group = hub_cluster_target(h, c) == TARGET_WORK ? plan_group_of(h->plan, c->name) : NULL;
        if (c->managed && c->addon != ADDON_PRESENT)
            plan_note_without_addon(h, c);
        /* Another writer undid other summaries: these need not wait. */
        if (c->write.undone && (!c->group || c->group->hash != c->write.written.hash))
            kube_queue_forget(h->works.queue, c->name);
        hub_cluster_reconcile(h, c);
    }
    /* No longer needed: each cluster has its group. */
    for (size_t i = 0; h->plan && i < h->plan->n; i++) {
        struct map *clusters = TAKE_PTR(h->plan->entries[i].clusters);

        if (clusters)
            map_done(clusters);
        free(clusters);
    }
}
