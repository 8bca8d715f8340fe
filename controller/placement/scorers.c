/* Owns what is known of each scorer, with a reference to its current batch. On the loop, called by the
 * placement as the agent reports. A slot has one of them at most, and none while the list is set anew. */
#include "controller/placement/scorers.h"

#include "controller/kube/client.h"
#include "controller/kube/server_clock.h"
#include "exporter/base/alloc.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"

struct placement_scorer *placement_scorers_find(const struct placement_scorers *all, const char *score_name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i]->score_name, score_name) == 0)
            return all->list[i];
    return NULL;
}

struct placement_scorer *placement_scorers_at(struct placement_scorers *all, const char *score_name)
{
    struct placement_scorer *s = placement_scorers_find(all, score_name);

    if (s)
        return s;
    s = xcalloc(1, sizeof(*s));
    s->score_name = xstrdup(score_name);
    all->list = xreallocarray(all->list, all->n + 1, sizeof(struct placement_scorer *));
    all->list[all->n++] = s;
    return s;
}

void placement_scorer_follow_clock(struct placement_scorer *s, const struct kube *hub)
{
    int64_t set_by_ms = loop_clock_ms(kube_loop(hub)) - s->clock_ms, offset_ms = kube_clock_offset_ms(hub);

    if (offset_ms == s->offset_ms)
        return;
    if (set_by_ms >= KUBE_CLOCK_STEP_MS || set_by_ms <= -KUBE_CLOCK_STEP_MS) {
        s->expires_ms += set_by_ms;
        s->set_by_ms += set_by_ms;
    }
    s->clock_ms += set_by_ms;
    s->offset_ms = offset_ms;
}

void placement_scorer_note(struct placement_scorer *s, const struct round_outcome *o, const struct kube *hub)
{
    s->has_ended = true;
    s->error = o->error;
    s->stage = o->stage;
    free(s->reason);
    s->reason = xstrdup(o->reason);
    s->source_series = o->source_series;
    s->results = o->results;
    s->invalid = o->invalid;
    s->life_ms = o->life_ms;
    if (!o->batch)
        return;
    s->expires_ms = o->expires_ms;
    s->clock_ms = loop_clock_ms(kube_loop(hub));
    s->offset_ms = kube_clock_offset_ms(hub);
    s->set_by_ms = 0;
    (void)batch_unref(s->batch);
    s->batch = batch_ref(o->batch);
}

static void placement_scorer_free(struct placement_scorer *s)
{
    if (!s)
        return;
    (void)batch_unref(s->batch);
    free(s->reason);
    free(s->score_name);
    free(s);
}

/* The life of scores is a number of intervals, or of durations of the round where that took longer: the
 * longest that one of these can be. */
static int64_t life_unit_ms(const struct summary *s)
{
    int64_t round_ms = summary_round_ms(s);

    return s->interval_ms > round_ms ? s->interval_ms : round_ms;
}

void placement_scorers_set(struct placement_scorers *all, const struct summaries *list,
                           int64_t stale_intervals)
{
    struct placement_scorer **kept = xcalloc(list->n + 1, sizeof(struct placement_scorer *));

    for (size_t i = 0; i < all->n; i++)
        all->list[i]->summary = NULL;
    for (size_t i = 0; i < list->n; i++) {
        struct placement_scorer *s = placement_scorers_at(all, list->list[i].score_name);

        s->summary = &list->list[i];
        s->longest_life_ms = life_unit_ms(s->summary) * stale_intervals;
        if (!s->has_ended)
            s->life_ms = s->summary->interval_ms * stale_intervals;
        kept[i] = s;
    }
    for (size_t i = 0; i < all->n; i++)
        if (!all->list[i]->summary)
            placement_scorer_free(all->list[i]);
    free(all->list);
    all->list = kept;
    all->n = list->n;
}

void placement_scorers_done(struct placement_scorers *all)
{
    for (size_t i = 0; i < all->n; i++)
        placement_scorer_free(all->list[i]);
    free(all->list);
    *all = (struct placement_scorers){0};
}
