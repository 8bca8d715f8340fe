#include "controller/hub/state/state.h"

#include "exporter/base/alloc.h"

/* ---- One scorer on one cluster ---- */

static bool pair_is_sent(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return c->managed && c->group && s->entry < s->hub->plan->n;
}

const struct report_cell *hub_pair_cell(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return pair_is_sent(s, c) && plan_group_has(c->group, s->entry)
               ? report_find(&c->report, s->hub->plan->entries[s->entry].score)
               : NULL;
}

/* What another writer keeps undoing is written only for the moment. */
static bool cluster_is_up_to_date(const struct hub_cluster *c)
{
    return !c->behind && !c->contested;
}

/* What is the same for all scorers. */
static struct pair_facts cluster_facts(const struct hub_cluster *c)
{
    const struct loop *l = c->hub->o.loop;

    return (struct pair_facts){
        .in_sync = cluster_is_up_to_date(c),
        .applied = c->work.applied,
        .sent_ms_ago = c->write.written_at.ms ? mono_diff(c->write.written_at, loop_now(l)) : INT64_MAX,
        .unavailable_because = c->unavailable,
        .addon_unavailable_because = c->addon_unavailable,
        .addon_namespace = c->addon_namespace,
        .agent_namespace = c->hub->o.agent_namespace,
        .write_error = cstr(hub_cluster_write_error(c)),
        .apply_error = c->work.applied ? "" : cstr(c->unapplied),
        .report = &c->report,
        .now = kube_wall(c->hub->o.kube),
    };
}

enum pair_state hub_pair_state(const struct hub_scorer *s, const struct hub_cluster *c,
                               struct pair_facts *ret)
{
    *ret = cluster_facts(c);
    ret->suspended = s->place == PLACE_SUSPENDED;
    ret->cell = hub_pair_cell(s, c);
    ret->interval_ms = s->effective.interval_ms;
    if (!pair_is_sent(s, c))
        return PAIR_NOT_SENT;
    if (plan_group_has(c->group, s->entry))
        return pair_state(ret);
    return plan_group_lacks(s->hub->plan, c->group, s->entry) ? PAIR_NO_ROOM
           : s->spec.placements                               ? PAIR_NOT_SENT
                                                              : PAIR_MASKED;
}

/* ---- The fleet ---- */

int64_t hub_scorer_patience_ms(const struct hub_scorer *s)
{
    const int64_t period_ms = 5 * 60 * 1000; /* between reports of an agent in which only times change */
    int64_t ms = s->effective.interval_ms > period_ms ? s->effective.interval_ms : period_ms;

    return s->distributed_ms ? s->distributed_ms + 2 * ms : INT64_MAX;
}

const struct tally_field tally_fields[TALLY_FIELDS] = {
    {"selected", "selected", offsetof(struct tally, selected)},
    {"upToDate", "up_to_date", offsetof(struct tally, up_to_date)},
    {"applied", "applied", offsetof(struct tally, applied)},
    {"scoring", "scoring", offsetof(struct tally, of_class[PAIR_CLASS_SCORING])},
    {"failing", "failing", offsetof(struct tally, of_class[PAIR_CLASS_FAILING])},
    {"waiting", "waiting", offsetof(struct tally, of_class[PAIR_CLASS_WAITING])},
    {"silent", "silent", offsetof(struct tally, of_class[PAIR_CLASS_SILENT])},
    {"suspended", "suspended", offsetof(struct tally, of_class[PAIR_CLASS_SUSPENDED])},
    {"empty", "empty", offsetof(struct tally, of_class[PAIR_CLASS_EMPTY])},
    {"noRoom", "no_room", offsetof(struct tally, no_room)},
};

/* Clusters come in the order of their names. */
static void tally_first(struct counted_clusters *to, const struct hub_cluster *c)
{
    to->first = to->total++ ? to->first : c;
}

static void tally_name(struct named_clusters *to, const struct hub_cluster *c, unsigned rank)
{
    unsigned *ranks = to->ranks;
    size_t at = to->n;

    to->total++;
    while (at > 0 && rank < ranks[at - 1])
        at--;
    if (at == HUB_NAMED_CLUSTERS)
        return;
    to->n = size_min(to->n + 1, HUB_NAMED_CLUSTERS);
    memmove(&to->list[at + 1], &to->list[at], (to->n - 1 - at) * sizeof(*to->list));
    memmove(&ranks[at + 1], &ranks[at], (to->n - 1 - at) * sizeof(*ranks));
    to->list[at] = c;
    ranks[at] = rank;
}

/* By the API server's clock, as reports have their times. */
static int64_t tally_unhealthy_since_ms(const struct hub_scorer *s)
{
    int64_t failing_ms = probe_status(s->probe)->failing_ms;

    return failing_ms ? failing_ms + kube_clock_offset_ms(s->hub->o.kube) : s->suspended_ms;
}

/* One scorer on one cluster selected for it. */
static void tally_count_pair(struct hub_scorer *s, struct hub_cluster *c, struct pair_facts *f)
{
    const struct report_cell *cell = f->cell;
    enum pair_state p;
    bool apply_error = !c->work.applied && c->unapplied, in_sync = cluster_is_up_to_date(c);
    struct tally *t = &s->tally;

    f->suspended = s->place == PLACE_SUSPENDED;
    f->interval_ms = s->effective.interval_ms;
    p = pair_state(f);
    t->selected++;
    t->up_to_date += in_sync;
    t->applied += in_sync && c->work.applied;
    t->of_class[pair_info[p].class]++;
    /* A round that the source failed says nothing about the scoring API. */
    t->api_healthy += pair_info[p].class == PAIR_CLASS_SCORING || pair_info[p].class == PAIR_CLASS_EMPTY ||
                      p == PAIR_NOT_PLACED;
    t->no_items += p == PAIR_NO_ITEMS;
    if ((p == PAIR_FAILING || p == PAIR_STALE) && cell->api_failed)
        tally_first(&t->api_unhealthy, c);
    t->not_applied += p == PAIR_NOT_WRITTEN || p == PAIR_NOT_APPLIED;
    t->stuck += in_sync && apply_error;
    t->unavailable += p == PAIR_UNAVAILABLE || p == PAIR_ELSEWHERE;
    t->reporting += c->report.exists;
    if (s->effective.n_items > 1 && c->report.exists && !c->report.takes_items)
        tally_name(&t->one_item, c, 0);
    /* The hub alone cannot reach the scoring API: the agent could after the first failed probe. */
    t->scored_meanwhile +=
        p == PAIR_SUSPENDED && cell && (int64_t)cell->succeeded * 1000 > tally_unhealthy_since_ms(s);
    if (cell && (pair_info[p].class == PAIR_CLASS_SCORING || pair_info[p].class == PAIR_CLASS_EMPTY) &&
        pair_expires_ms(cell) < s->hub->totals.look_ms)
        s->hub->totals.look_ms = pair_expires_ms(cell);
    if (hub_cluster_write_error(c))
        tally_first(&t->write_errors, c);
    if (apply_error)
        tally_first(&t->apply_errors, c);
    else if (in_sync && !c->work.applied)
        tally_first(&t->unconfirmed, c);
    c->has_expired_score |= p == PAIR_EXPIRED;
    if (pair_info[p].has_reason)
        tally_name(&t->named, c,
                   pair_info[p].class == PAIR_CLASS_FAILING ? RANK_FAILING
                   : pair_is_pending(p)                     ? RANK_PENDING
                                                            : RANK_SILENT);
}

static void tally_count_cluster(struct hub *h, struct hub_cluster *c)
{
    struct hub_totals *t = &h->totals;
    bool in_sync = cluster_is_up_to_date(c) && c->group, unavailable = c->unavailable || c->addon_unavailable;
    bool write_error = hub_cluster_write_error(c), apply_error = !c->work.applied && c->unapplied,
         fails = false;
    struct pair_facts f = cluster_facts(c);
    double lag = (double)mono_diff(c->behind_since, loop_now(h->o.loop)) / 1000;

    c->has_expired_score = false;
    if (c->work.exists)
        tally_first(&t->works, c);
    t->leaving += c->leaving && c->work.exists;
    t->lag_s = c->behind && lag > t->lag_s ? lag : t->lag_s;
    if (c->managed && c->addon != ADDON_PRESENT)
        tally_first(&t->without_addon, c);
    if (!c->managed || c->addon != ADDON_PRESENT)
        return;
    t->managed++;
    t->up_to_date += in_sync;
    t->behind += !in_sync;
    t->applied += in_sync && c->work.applied;
    t->unapplied += in_sync && apply_error;
    t->reporting += c->report.exists;
    for (size_t i = 0; i < c->report.n && !fails && !unavailable; i++)
        fails = report_cell_fails(&c->report.cells[i]);
    t->with_failures += fails;
    t->scoring_all += c->report.exists && !fails && !unavailable;
    t->failing += write_error;
    if (write_error || (in_sync && !c->work.applied))
        tally_name(&t->named, c, !write_error && !apply_error);
    if (!c->group)
        return;
    t->largest = size_max(t->largest, c->group->bytes);
    for (size_t i = 0; i < h->plan->n; i++) {
        struct hub_scorer *s = h->plan->entries[i].owner;

        f.cell = report_find(&c->report, h->plan->entries[i].score);
        if (s && plan_group_has(c->group, i))
            tally_count_pair(s, c, &f);
        else if (s && c->group->left_out && plan_group_lacks(h->plan, c->group, i))
            s->tally.no_room++;
    }
}

/* When a first cluster has it; until it may be called not ready, its state may change by time alone. */
static void tally_note_distribution(struct hub_scorer *s)
{
    struct hub *h = s->hub;
    int64_t now = kube_wall(h->o.kube).ms, until;

    if (!h->planned) /* it is still what the last leader wrote */
        return;
    if (s->place != PLACE_SUMMARIES)
        s->distributed_ms = 0;
    else if (!s->distributed_ms && s->tally.up_to_date)
        s->distributed_ms = now;
    until = hub_scorer_patience_ms(s);
    if (until > now && until < h->totals.look_ms)
        h->totals.look_ms = until;
}

DEFINE_ORDER(cluster_compare_names, struct hub_cluster *const, strcmp((*a)->name, (*b)->name))

void hub_tally(struct hub *h)
{
    CLEANUP(cleanup_free) struct hub_cluster **sorted = NULL;
    struct hub_cluster *c;
    size_t n = 0;

    if (h->tallied)
        return;
    h->tallied = h->tally_fits = true;
    h->tallied_at = loop_now(h->o.loop);
    h->totals = (struct hub_totals){.look_ms = INT64_MAX};
    for (size_t i = 0; i < h->n_scorers; i++)
        h->by_age[i]->tally = (struct tally){0};
    hub_clusters_free_gone(h);
    sorted = xcalloc(h->clusters.n + 1, sizeof(*sorted));
    for (size_t at = 0; (c = map_next(&h->clusters, &at));)
        sorted[n++] = c;
    qsort(sorted, n, sizeof(*sorted), cluster_compare_names);
    for (size_t i = 0; i < n; i++)
        tally_count_cluster(h, sorted[i]);
    for (size_t i = 0; i < h->n_scorers; i++) {
        h->totals.left_out += h->by_age[i]->tally.no_room > 0;
        tally_note_distribution(h->by_age[i]);
    }
}
