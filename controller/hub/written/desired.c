/* Owns the plan. The conductor has it made after a change, on the loop; works.c asks for its texts. What
 * each cluster gets is decided by rules/plan.c; here it is gathered what that needs. */
#include "controller/hub/written/desired.h"

#include "controller/hub/follows/health.h"
#include "controller/hub/follows/target.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "controller/hub/observed/decisions.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/work.h"
#include "controller/placement/items.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/glob.h"
#include "exporter/base/invariant.h"
#include "exporter/base/map.h"

enum { BODY_MAX_BYTES = 4 << 20 };

/* No two scorers may share a score name, nor the AddOnPlacementScore that it leads to. The older of two
 * owns it, healthy or not: a name that changed owners with each failed probe would mix two scorers'
 * scores. */
static void plan_find_owner(struct hub_scorer *s, struct map *names, struct map *objects)
{
    const char *name = s->effective.score_name;
    struct scorer_share *share = &s->share;
    struct hub_scorer *owner;

    share->object_name[0] = '\0';
    if (strcmp(cstr(s->spec.destination), "None") != 0)
        (void)object_name(str_of(name), share->object_name);
    owner = map_get(names, name);
    share->same_object = !owner;
    if (!owner && *share->object_name)
        owner = map_get(objects, share->object_name);
    if (owner) {
        share->older = owner;
        owner->share.younger = s;
        return;
    }
    map_set(names, name, s);
    if (*share->object_name)
        map_set(objects, share->object_name, s);
}

static void plan_find_duplicates(const struct hub_options *o, const struct scorers *scorers)
{
    CLEANUP(map_done) struct map names = {0}, objects = {0};

    for (size_t i = 0; i < scorers->n; i++) {
        struct hub_scorer *s = scorers->by_age[i];

        s->share.older = s->share.younger = NULL;
        s->share.place = scorer_place(o, s);
    }
    for (size_t i = 0; i < scorers->n; i++)
        if (scorers->by_age[i]->effective.score_name)
            plan_find_owner(scorers->by_age[i], &names, &objects);
}

/* The scorers that go to that place, the oldest first. Returns the number of all entries. */
static size_t plan_add_entries(struct plan_entry *entries, size_t n, enum hub_place place,
                               const struct observed *seen)
{
    bool is_suspended = place == PLACE_SUSPENDED;

    for (size_t i = 0; i < seen->scorers.n; i++) {
        struct hub_scorer *s = seen->scorers.by_age[i];

        if (s->share.older || !effective_usable(&s->effective) || s->share.place != place)
            continue;
        entries[n] = (struct plan_entry){.score_name = s->effective.score_name,
                                         .text = buf_str(&s->effective.text),
                                         .suspended = is_suspended,
                                         .suspended_ms = is_suspended ? s->suspended_ms : 0,
                                         .clusters = decisions_of_scorer(&seen->decisions, s),
                                         .needs = s->effective.needs,
                                         .has_object = *s->share.object_name,
                                         .owner = s};
        s->share.entry = n++;
    }
    return n;
}

/* Masks' scores are those of all scorers, distributed or not. */
static void plan_count_mask_scores(struct plan *plan, const struct scorers *scorers)
{
    for (size_t i = 0; i < plan->masks.n; i++)
        for (size_t k = 0; k < scorers->n; k++) {
            const char *score = scorers->by_age[k]->effective.score_name;

            plan->of_masks[i].scores += score && glob_match(plan->masks.list[i].score, score);
        }
}

static struct plan *plan_of_scorers(const struct observed *seen)
{
    CLEANUP(cleanup_free)
    struct plan_entry *entries = xcalloc(seen->scorers.n + 1, sizeof(*entries));
    size_t n = plan_add_entries(entries, 0, PLACE_SUMMARIES, seen);
    struct plan *plan;

    n = plan_add_entries(entries, n, PLACE_SUSPENDED, seen);
    plan = plan_new(entries, n, &seen->configs.used.masks, &seen->configs.used.adjustments,
                    WORK_MAX_BYTES - WORK_FRAME_BYTES);
    plan_count_mask_scores(plan, &seen->scorers);
    return plan;
}

/* The cluster lacks the agent's add-on: the scorers that it would have say so. */
static void plan_note_without_addon(const struct plan *plan, const struct hub_cluster *c)
{
    for (size_t i = 0; plan && i < plan->n; i++) {
        const struct plan_entry *e = &plan->entries[i];
        struct hub_scorer *s = e->owner;

        if (e->clusters && !map_get(e->clusters, c->name))
            continue;
        if (!s->share.n_without_addon++)
            s->share.first_without_addon = xstrdup(c->name);
    }
}

/* No longer needed: each cluster has its group. */
static void plan_free_clusters(struct plan *plan)
{
    for (size_t i = 0; plan && i < plan->n; i++) {
        struct map *clusters = TAKE_PTR(plan->entries[i].clusters);

        if (clusters)
            map_done(clusters);
        free(clusters);
    }
}

void desired_done(struct desired *d, struct observed *seen)
{
    struct hub_cluster *c;

    for (size_t at = 0; (c = map_next(&seen->clusters.by_name, &at));)
        c->group = NULL;
    for (size_t i = 0; i < seen->scorers.n; i++) {
        struct scorer_share *share = &seen->scorers.by_age[i]->share;

        share->entry = SIZE_MAX;
        share->n_without_addon = 0;
        free(TAKE_PTR(share->first_without_addon));
    }
    json_decref(TAKE_PTR(d->text));
    d->text_of = NULL;
    d->plan = plan_free(d->plan);
}

/* Without valid masks it is unknown which cluster gets what: everything stays as it is. No ManifestWork is
 * created before our finalizer is set: the config could go, and leave the works behind. */
static bool desired_is_known(const struct configs *configs)
{
    return configs_distribute(configs) && configs->used.masks.owner && configs->used.adjustments.owner &&
           object_has_finalizer(configs->used.object, HUB_FINALIZER);
}

void desired_make(struct desired *d, const struct hub_options *o, struct observed *seen)
{
    struct hub_cluster *c;

    plan_find_duplicates(o, &seen->scorers);
    desired_done(d, seen);
    if (desired_is_known(&seen->configs))
        d->plan = plan_of_scorers(seen);
    for (size_t at = 0; (c = map_next(&seen->clusters.by_name, &at));) {
        if (cluster_target(seen, d->plan, c) == TARGET_WORK)
            c->group = plan_group_of(d->plan, &(struct plan_cluster){.name = c->name,
                                                                     .lacks = cluster_lacks(c),
                                                                     .attributes = c->attributes});
        if (c->managed && !cluster_is_served(c))
            plan_note_without_addon(d->plan, c);
    }
    plan_free_clusters(d->plan);
}

void desired_forget_scorer(struct desired *d, struct observed *seen, struct hub_scorer *s)
{
    /* The next plan finds who owns its score name now. */
    for (size_t i = 0; i < seen->scorers.n; i++) {
        struct scorer_share *share = &seen->scorers.by_age[i]->share;

        if (share->older == s)
            share->older = NULL;
        if (share->younger == s)
            share->younger = NULL;
    }
    if (s->share.entry == SIZE_MAX)
        return;
    invariant(d->plan && s->share.entry < d->plan->n && d->plan->entries[s->share.entry].owner == s);
    d->plan->entries[s->share.entry].owner = NULL;
}

/* ---- Texts ---- */

static int desired_make_text(struct desired *d, const struct plan_group *group, const char *agent_namespace)
{
    BUF_AUTO(summaries, BODY_MAX_BYTES);
    BUF_AUTO(suspended, BODY_MAX_BYTES);
    BUF_AUTO(adjustments, BODY_MAX_BYTES);
    BUF_AUTO(text, BODY_MAX_BYTES);
    struct work_lists lists;
    int r;

    json_decref(TAKE_PTR(d->text));
    d->text_of = NULL;
    plan_text(d->plan, group, false, &summaries);
    plan_text(d->plan, group, true, &suspended);
    plan_adjustments_text(d->plan, group, &adjustments);
    r = buf_failed(&summaries) ?: buf_failed(&suspended) ?: buf_failed(&adjustments);
    lists = (struct work_lists){buf_str(&summaries), buf_str(&suspended), buf_str(&adjustments)};
    if (r == 0)
        r = work_text(&text, agent_namespace, &lists);
    if (r < 0)
        return r;
    d->text = json_stringn_nocheck(text.p, text.n);
    d->text_of = group;
    return 0;
}

int desired_text(struct desired *d, const struct plan_group *group, const char *agent_namespace, json_t **ret)
{
    int r = d->text_of == group ? 0 : desired_make_text(d, group, agent_namespace);

    if (r < 0)
        return r;
    *ret = json_incref(d->text);
    return 0;
}
