/* Makes the counts of a fleet: one pass over the clusters in the order of their names, and on each over
 * its scorers. Owns what it returns, changes nothing else, and reads no clock. Loop thread. */
#include "controller/hub/follows/counts.h"

#include "controller/hub/follows/adjusted.h"
#include "controller/hub/follows/pairs.h"
#include "controller/hub/follows/target.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"
#include "exporter/score/scorer_state.h"

struct scorer_tally {
    struct tally tally;
    char name[]; /* the key */
};

/* One pass under way. */
struct counting {
    const struct fleet *f;
    struct counts *counts;
    struct tally **of_entries; /* for each entry of the plan; NULL: its scorer has gone */
};

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

size_t tally_refusing(const struct tally *t)
{
    size_t n = 0;

    for (enum feature f = 0; f < FEATURES; f++)
        if (feature_refused() & 1u << f)
            n = size_max(n, t->outdated[f].total);
    return n;
}

/* ---- Adding to a count ---- */

/* Clusters come in the order of their names. */
static void tally_first(struct counted_clusters *to, const struct hub_cluster *c)
{
    if (!to->total)
        to->first = c;
    to->total++;
}

static void tally_name(struct named_clusters *to, const struct hub_cluster *c, enum cluster_rank rank)
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

/* ---- One scorer on one cluster that is selected for it ---- */

/* By the API server's clock, as reports have their times. */
static int64_t tally_unhealthy_since_ms(const struct fleet *f, const struct hub_scorer *s)
{
    int64_t failing_ms = probe_status(s->probe)->failing_ms;

    return failing_ms ? failing_ms + f->clock_offset_ms : s->suspended_ms;
}

static enum cluster_rank tally_rank(enum pair_state p)
{
    if (pair_info[p].class == PAIR_CLASS_FAILING)
        return RANK_FAILING;
    return pair_is_pending(p) ? RANK_PENDING : RANK_SILENT;
}

/* Whether rounds there get as far as a result, good or empty. */
static bool pair_has_results(enum pair_state p)
{
    return pair_info[p].class == PAIR_CLASS_SCORING || pair_info[p].class == PAIR_CLASS_EMPTY;
}

/* How far its ManifestWork is, whatever the agent does. */
static void tally_add_work(struct tally *t, const struct hub_cluster *c)
{
    bool is_current = cluster_is_up_to_date(c), applied = c->work.applied;
    bool has_apply_error = !applied && c->unapplied;

    t->up_to_date += is_current;
    t->applied += is_current && applied;
    t->stuck += is_current && has_apply_error;
    t->reporting += c->report.exists;
    if (cluster_write_error(c))
        tally_first(&t->write_errors, c);
    if (has_apply_error)
        tally_first(&t->apply_errors, c);
    else if (is_current && !applied)
        tally_first(&t->unconfirmed, c);
}

/* Agents that do not report may be as old: nothing is known of them. */
static void tally_add_outdated(struct tally *t, const struct hub_scorer *s, const struct hub_cluster *c)
{
    unsigned lacks = c->report.exists ? s->effective.needs & ~c->report.features : 0;

    for (enum feature f = 0; f < FEATURES; f++)
        if (lacks & 1u << f)
            tally_name(&t->outdated[f], c, RANK_FAILING);
}

static void tally_add_pair(const struct counting *counting, size_t entry, const struct hub_cluster *c,
                           struct pair_facts *facts)
{
    const struct hub_scorer *s = counting->f->plan->entries[entry].owner;
    struct tally *t = counting->of_entries[entry];
    struct counts *counts = counting->counts;
    const struct report_cell *cell = facts->cell;
    enum pair_state p;

    facts->suspended = s->share.place == PLACE_SUSPENDED;
    facts->interval_ms = s->effective.interval_ms;
    p = pair_state(facts);
    t->selected++;
    t->of_class[pair_info[p].class]++;
    tally_add_work(t, c);
    /* A round that the source failed says nothing about the scoring API. */
    t->api_healthy += pair_has_results(p) || p == PAIR_NOT_PLACED;
    t->no_items += p == PAIR_NO_ITEMS;
    if ((p == PAIR_FAILING || p == PAIR_STALE) && cell->api_failed)
        tally_first(&t->api_unhealthy, c);
    t->not_applied += p == PAIR_NOT_WRITTEN || p == PAIR_NOT_APPLIED;
    t->unavailable += p == PAIR_UNAVAILABLE || p == PAIR_UNREADABLE || p == PAIR_ELSEWHERE;
    tally_add_outdated(t, s, c);
    /* The hub alone cannot reach the scoring API: the agent could after the first failed probe. */
    t->scored_meanwhile += p == PAIR_SUSPENDED && cell &&
                           (int64_t)cell->succeeded * 1000 > tally_unhealthy_since_ms(counting->f, s);
    if (cell && pair_has_results(p) && pair_expires_ms(cell) < counts->expiry_ms)
        counts->expiry_ms = pair_expires_ms(cell);
    if (facts->addon_unavailable_because && p != PAIR_UNAVAILABLE &&
        pair_addon_counts_ms(facts) < counts->expiry_ms)
        counts->expiry_ms = pair_addon_counts_ms(facts);
    if (p == PAIR_EXPIRED)
        map_set(&counts->expired, c->name, counts);
    if (pair_info[p].has_reason)
        tally_name(&t->named, c, tally_rank(p));
}

/* ---- One cluster ---- */

static bool report_has_failures(const struct report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (report_cell_fails(&r->cells[i]))
            return true;
    return false;
}

/* A cluster that gets a ManifestWork. */
static void totals_add_served(struct hub_totals *t, const struct hub_cluster *c)
{
    bool is_current = cluster_is_up_to_date(c) && c->group, has_write_error = cluster_write_error(c);
    bool has_apply_error = !c->work.applied && c->unapplied;
    bool is_unavailable = c->unavailable || c->addon_unavailable;
    bool fails = !is_unavailable && report_has_failures(&c->report);

    t->managed++;
    t->up_to_date += is_current;
    t->behind += !is_current;
    t->applied += is_current && c->work.applied;
    t->unapplied += is_current && has_apply_error;
    t->reporting += c->report.exists;
    t->with_failures += fails;
    t->scoring_all += c->report.exists && !fails && !is_unavailable;
    t->failing += has_write_error;
    if (has_write_error || (is_current && has_apply_error))
        tally_name(&t->named, c, RANK_FAILING);
    else if (is_current && !c->work.applied)
        tally_name(&t->named, c, RANK_SILENT);
    if (c->group)
        t->largest = size_max(t->largest, c->group->bytes);
}

static void totals_add(struct hub_totals *t, const struct fleet *f, const struct hub_cluster *c)
{
    double lag_s = (double)mono_diff(c->write.late_since, f->now) / 1000;

    if (c->work.exists)
        tally_first(&t->works, c);
    t->leaving += c->leaving && c->work.exists;
    if (c->write.is_late && lag_s > t->lag_s)
        t->lag_s = lag_s;
    if (c->managed && c->addon != ADDON_PRESENT)
        tally_first(&t->without_addon, c);
    if (cluster_is_served(c))
        totals_add_served(t, c);
}

/* Whether the agent says that the score has no items, so that there is nothing to adjust. */
static bool pair_lacks_items(const struct plan *plan, const struct hub_cluster *c, size_t entry)
{
    const struct report_cell *cell = report_find(&c->report, plan->entries[entry].score);
    const struct hub_scorer *s = plan->entries[entry].owner;

    if (!cell || !s || s->spec.fallback_score)
        return false;
    return cell->no_items || cell->state == SCORER_EMPTY || cell->state == SCORER_STALE || !cell->succeeded;
}

static bool adjustment_lacks_items(const struct plan *plan, const struct hub_cluster *c, size_t adjustment)
{
    const uint64_t *entries = plan->of_adjustments[adjustment].entries;

    for (size_t i = 0; i < plan->n; i++)
        if (entries[i / 64] >> (i % 64) & 1 && plan_group_has(c->group, i) && pair_lacks_items(plan, c, i))
            return true;
    return false;
}

static void counts_add_adjustments(struct counts *counts, const struct fleet *f, const struct hub_cluster *c)
{
    const struct plan *plan = f->plan;
    bool is_adjusted = false;

    for (size_t i = 0; i < plan->adjustments.n; i++) {
        if (!plan_group_is_adjusted(plan, c->group, i) || adjustment_has_ended(f, i))
            continue;
        is_adjusted = true;
        counts->without_items[i] += adjustment_lacks_items(plan, c, i);
    }
    counts->totals.adjusted += is_adjusted;
    if (is_adjusted && c->report.exists && !(c->report.features & 1u << FEATURE_ADJUSTMENTS))
        tally_name(&counts->totals.unadjusted, c, RANK_FAILING);
}

static void counts_add_cluster(const struct counting *counting, const struct hub_cluster *c)
{
    const struct plan *plan = counting->f->plan;
    struct pair_facts facts = pair_facts_of_cluster(counting->f, c);

    totals_add(&counting->counts->totals, counting->f, c);
    if (!cluster_is_served(c) || !c->group)
        return;
    counts_add_adjustments(counting->counts, counting->f, c);
    for (size_t i = 0; i < plan->n; i++) {
        if (!counting->of_entries[i])
            continue;
        facts.cell = report_find(&c->report, plan->entries[i].score);
        if (plan_group_has(c->group, i))
            tally_add_pair(counting, i, c, &facts);
        else if (plan_group_outdates(plan, c->group, i))
            tally_add_outdated(counting->of_entries[i], plan->entries[i].owner, c);
        else if (c->group->left_out && plan_group_lacks(plan, c->group, i))
            counting->of_entries[i]->no_room++;
    }
}

/* ---- The whole fleet ---- */

DEFINE_ORDER(cluster_compare_names, const struct hub_cluster *const, strcmp((*a)->name, (*b)->name))

static void counts_add_tally(const struct counting *counting, const struct hub_scorer *s)
{
    const struct plan *plan = counting->f->plan;
    size_t n = strlen(s->name) + 1;
    struct scorer_tally *t = xcalloc(1, sizeof(*t) + n);

    memcpy(t->name, s->name, n);
    map_set(&counting->counts->tallies, t->name, t);
    if (plan && s->share.entry < plan->n)
        counting->of_entries[s->share.entry] = &t->tally;
}

struct counts *counts_new(const struct fleet *f)
{
    const struct map *clusters = &f->seen->clusters.by_name;
    const struct scorers *scorers = &f->seen->scorers;
    CLEANUP(cleanup_free) const struct hub_cluster **sorted = xcalloc(clusters->n + 1, sizeof(*sorted));
    CLEANUP(cleanup_free)
    struct tally **of_entries = xcalloc(f->plan ? f->plan->n + 1 : 1, sizeof(*of_entries));
    struct counts *counts = xcalloc(1, sizeof(*counts));
    const struct counting counting = {f, counts, of_entries};
    const struct hub_cluster *c;
    const struct scorer_tally *t;
    size_t n = 0;

    counts->expiry_ms = INT64_MAX;
    counts->without_items = xcalloc(f->plan ? f->plan->adjustments.n + 1 : 1, sizeof(size_t));
    counts->adjustments = f->plan ? json_incref(f->plan->adjustments.owner) : NULL;
    for (size_t i = 0; i < scorers->n; i++)
        counts_add_tally(&counting, scorers->by_age[i]);
    for (size_t at = 0; (c = map_next(clusters, &at));)
        sorted[n++] = c;
    qsort(sorted, n, sizeof(*sorted), cluster_compare_names);
    for (size_t i = 0; i < n; i++)
        counts_add_cluster(&counting, sorted[i]);
    for (size_t at = 0; (t = map_next(&counts->tallies, &at));)
        counts->totals.left_out += t->tally.no_room > 0;
    return counts;
}

struct counts *counts_free(struct counts *c)
{
    struct scorer_tally *t;

    if (!c)
        return NULL;
    for (size_t at = 0; (t = map_next(&c->tallies, &at));)
        free(t);
    map_done(&c->tallies);
    map_done(&c->expired);
    free(c->without_items);
    json_decref(c->adjustments);
    free(c);
    return NULL;
}

const struct tally *counts_of(const struct counts *c, const struct hub_scorer *s)
{
    static const struct tally none;
    const struct scorer_tally *t = map_get(&c->tallies, s->name);

    return t ? &t->tally : &none;
}

size_t counts_without_items(const struct counts *c, const struct plan *plan, size_t i)
{
    return c->adjustments && c->adjustments == plan->adjustments.owner ? c->without_items[i] : 0;
}

bool counts_saw_expired(const struct counts *c, const struct hub_cluster *cluster)
{
    return map_get(&c->expired, cluster->name);
}

void counts_forget(struct counts *c, const struct hub_scorer *s)
{
    free(map_take(&c->tallies, s->name));
}

/* ---- What changes by time alone ---- */

int64_t scorer_patience_ms(const struct hub_scorer *s)
{
    const int64_t period_ms = 5 * 60 * 1000; /* between reports of an agent in which only times change */
    int64_t ms = s->effective.interval_ms > period_ms ? s->effective.interval_ms : period_ms;

    return s->distributed_ms ? s->distributed_ms + 2 * ms : INT64_MAX;
}

int64_t counts_next_change_ms(const struct counts *c, const struct observed *seen, unix_ms now)
{
    const struct scorers *scorers = &seen->scorers;
    const struct fleet_adjustments *adjustments = &seen->configs.used.adjustments;
    int64_t next_ms = c->expiry_ms;

    for (size_t i = 0; i < scorers->n; i++) {
        int64_t until_ms = scorer_patience_ms(scorers->by_age[i]);

        if (until_ms > now.ms && until_ms < next_ms)
            next_ms = until_ms;
    }
    for (size_t i = 0; i < adjustments->n; i++) {
        int64_t until_ms = adjustments->list[i].what.until.ms;

        if (until_ms > now.ms && until_ms < next_ms)
            next_ms = until_ms;
    }
    return next_ms;
}
