#include "controller/hub/state/state.h"

#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"

#include <malloc.h>

/* ---- One pair ---- */

static struct pair_facts pair_reason_facts(const struct hub_cluster *c, const struct report_cell *cell)
{
    return (struct pair_facts){
        .unavailable_because = c->unavailable,
        .addon_unavailable_because = c->addon_unavailable,
        .write_error = c->write.trouble,
        .apply_error = c->work.applied ? "" : c->work.why,
        .in_sync = !c->behind,
        .applied = c->work.applied,
        .report = &c->report,
        .cell = cell,
    };
}

bool hub_pair_is_selected(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return c->managed && c->group && s->entry < s->hub->n_entries && plan_group_has(c->group, s->entry);
}

enum pair_state hub_pair_state(const struct hub_scorer *s, const struct hub_cluster *c,
                               const struct report_cell *cell, bool in_sync)
{
    const struct loop *l = s->hub->o.loop;
    struct pair_facts f = pair_reason_facts(c, cell);

    if (!hub_pair_is_selected(s, c)) {
        f.not_sent = !c->managed || !c->group || s->entry >= s->hub->n_entries;
        f.no_room = !f.not_sent && plan_group_lacks(s->hub->plan, c->group, s->entry);
        f.masked = !f.not_sent && !f.no_room;
    }
    f.in_sync = in_sync;
    f.sent_ms_ago = c->write.written_at.ms ? mono_diff(c->write.written_at, loop_now(l)) : INT64_MAX;
    f.interval_ms = s->effective.interval_ms;
    f.now = loop_wall(l);
    return pair_state(&f);
}

void hub_pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state state, const struct hub_cluster *c,
                     const struct report_cell *cell)
{
    const struct pair_facts f = pair_reason_facts(c, cell);

    pair_reason(ret, state, &f);
}

/* ---- The fleet ---- */

static unsigned tally_rank(enum pair_state p)
{
    return pair_info[p].class == PAIR_CLASS_FAILING ? 0 : pair_is_pending(p) ? 2 : 1;
}

/* Failing clusters first and pending ones last, then by name, so that a status does not change without a
 * reason. */
static bool tally_precedes(enum pair_state p, const struct hub_cluster *c, enum pair_state than,
                           const struct hub_cluster *of)
{
    unsigned a = tally_rank(p), b = tally_rank(than);

    return a != b ? a < b : strcmp(c->name, of->name) < 0;
}

static void tally_name_pair(struct tally *t, const struct hub_cluster *c, enum pair_state p,
                            const struct report_cell *cell)
{
    size_t at = t->n_named;

    while (at > 0 && tally_precedes(p, c, t->named[at - 1].pair, t->named[at - 1].cluster))
        at--;
    if (at == HUB_NAMED_CLUSTERS)
        return;
    t->n_named = size_min(t->n_named + 1, HUB_NAMED_CLUSTERS);
    memmove(&t->named[at + 1], &t->named[at], (t->n_named - 1 - at) * sizeof(t->named[0]));
    t->named[at].cluster = c;
    t->named[at].cell = cell;
    t->named[at].pair = p;
}

/* Whether its ManifestWork failed, rather than takes its time. */
static bool tally_has_error(const struct hub_cluster *c)
{
    return c->write.trouble[0] || (!c->work.applied && c->work.why[0]);
}

static void tally_name_cluster(struct hub_totals *t, const struct hub_cluster *c)
{
    bool fails = tally_has_error(c);
    size_t at = t->n_named;

    while (at > 0 &&
           (fails != tally_has_error(t->named[at - 1]) ? fails : strcmp(c->name, t->named[at - 1]->name) < 0))
        at--;
    if (at == HUB_NAMED_CLUSTERS)
        return;
    t->n_named = size_min(t->n_named + 1, HUB_NAMED_CLUSTERS);
    memmove(&t->named[at + 1], &t->named[at], (t->n_named - 1 - at) * sizeof(t->named[0]));
    t->named[at] = c;
}

static bool tally_is_unapplied(const struct hub_cluster *c, bool in_sync)
{
    return in_sync && !c->work.applied && c->work.why[0];
}

static void tally_count_error(struct cluster_errors *e, const struct hub_cluster *c)
{
    if (!e->first || strcmp(c->name, e->first->name) < 0)
        e->first = c;
    e->n++;
}

/* What a round says about the scoring API. One that the source failed says nothing. */
static void tally_count_health(struct tally *t, const struct hub_cluster *c, enum pair_state p,
                               const struct report_cell *cell)
{
    bool failed = p == PAIR_FAILING || p == PAIR_STALE;

    if (pair_info[p].class == PAIR_CLASS_SCORING || p == PAIR_NOT_PLACED)
        t->api_healthy++;
    else if (failed && cell->api_failed)
        tally_count_error(&t->api_unhealthy, c);
}

/* One scorer on one cluster selected for it. */
static void tally_count_pair(struct hub_scorer *s, struct hub_cluster *c, bool in_sync,
                             const struct report_cell *cell)
{
    struct tally *t = &s->tally;
    enum pair_state p = hub_pair_state(s, c, cell, in_sync);
    size_t *const counts[PAIR_CLASSES] = {[PAIR_CLASS_SCORING] = &t->scoring,
                                          [PAIR_CLASS_FAILING] = &t->failing,
                                          [PAIR_CLASS_WAITING] = &t->waiting,
                                          [PAIR_CLASS_SILENT] = &t->silent};

    t->selected++;
    t->up_to_date += in_sync;
    t->applied += in_sync && c->work.applied;
    ++*counts[pair_info[p].class];
    tally_count_health(t, c, p, cell);
    t->unwritten += p == PAIR_NOT_WRITTEN;
    t->unapplied += p == PAIR_NOT_APPLIED;
    t->stuck += tally_is_unapplied(c, in_sync);
    t->unavailable += p == PAIR_UNAVAILABLE;
    if (c->write.trouble[0])
        tally_count_error(&t->write_errors, c);
    if (!c->work.applied && c->work.why[0])
        tally_count_error(&t->apply_errors, c);
    else if (in_sync && !c->work.applied)
        tally_count_error(&t->unconfirmed, c);
    c->has_expired_score |= p == PAIR_EXPIRED;
    if (pair_info[p].has_reason)
        tally_name_pair(t, c, p, cell);
}

/* Entries and cells are both sorted by the hash of their score names: one pass matches them. */
static void tally_count_scorers(struct hub *h, struct hub_cluster *c, bool in_sync)
{
    size_t at = 0;

    for (size_t k = 0; k < h->n_entries; k++) {
        size_t i = h->entries_by_score[k];
        uint64_t score = h->entry_scores[i];
        const struct report_cell *cell = NULL;

        while (at < c->report.n && c->report.cells[at].score < score)
            at++;
        if (at < c->report.n && c->report.cells[at].score == score)
            cell = &c->report.cells[at];
        if (h->entry_scorers[i] && plan_group_has(c->group, i))
            tally_count_pair(h->entry_scorers[i], c, in_sync, cell);
    }
}

static void tally_count_no_room(struct hub *h, const struct hub_cluster *c)
{
    for (size_t i = 0; i < h->n_entries; i++)
        if (h->entry_scorers[i] && plan_group_lacks(h->plan, c->group, i))
            h->entry_scorers[i]->tally.no_room++;
}

static void tally_count_cluster(struct hub *h, struct hub_cluster *c)
{
    struct hub_totals *t = &h->totals;
    bool in_sync = hub_cluster_in_sync(h, c) && c->group;
    bool unavailable = c->unavailable || c->addon_unavailable, fails = false;
    bool unapplied = tally_is_unapplied(c, in_sync);

    c->has_expired_score = false;
    t->works += c->work.exists;
    t->leaving += c->leaving && c->work.exists;
    if (c->behind) {
        double lag = (double)mono_diff(c->behind_since, loop_now(h->o.loop)) / 1000;

        t->lag_s = lag > t->lag_s ? lag : t->lag_s;
    }
    if (!c->managed)
        return;
    t->managed++;
    t->up_to_date += in_sync;
    t->behind += !in_sync;
    t->applied += in_sync && c->work.applied;
    t->unapplied += unapplied;
    t->reporting += c->report.exists;
    for (size_t i = 0; i < c->report.n && !fails && !unavailable; i++)
        fails = report_cell_fails(&c->report.cells[i]);
    t->with_failures += fails;
    t->scoring_all += c->report.exists && !fails && !unavailable;
    t->failing += c->write.trouble[0] != '\0';
    if (c->write.trouble[0] || (in_sync && !c->work.applied))
        tally_name_cluster(t, c);
    if (!c->group)
        return;
    t->largest = size_max(t->largest, c->group->bytes);
    tally_count_scorers(h, c, in_sync);
    if (c->group->left_out)
        tally_count_no_room(h, c);
}

void hub_tally(struct hub *h)
{
    struct hub_cluster *c;
    size_t at = 0;

    if (h->tallied)
        return;
    h->tallied = true;
    h->totals = (struct hub_totals){0};
    for (size_t i = 0; i < h->n_scorers; i++)
        h->by_age[i]->tally = (struct tally){0};
    while ((c = map_next(&h->clusters, &at)))
        tally_count_cluster(h, c);
    for (size_t i = 0; i < h->n_scorers; i++)
        h->totals.left_out += h->by_age[i]->tally.no_room > 0;
    /* Memory of a roll-out, bodies and connections by the dozen, is not needed until the next. */
    if (h->was_behind && h->totals.behind == 0)
        (void)malloc_trim(0);
    h->was_behind = h->totals.behind > 0;
}

/* Until the next count, which pages do not wait for, the pair named says what the new report says. */
static void tally_renew_named(struct hub_scorer *s, const struct hub_cluster *c, bool in_sync)
{
    struct tally *t = &s->tally;
    const struct report_cell *cell;
    size_t i = 0;

    while (i < t->n_named && t->named[i].cluster != c)
        i++;
    if (i == t->n_named)
        return;
    cell = report_find(&c->report, report_score(str_of(cstr(s->effective.score_name))));
    t->named[i].cell = cell;
    t->named[i].pair = hub_pair_state(s, c, cell, in_sync);
    if (!pair_info[t->named[i].pair].has_reason)
        memmove(&t->named[i], &t->named[i + 1], (--t->n_named - i) * sizeof(t->named[0]));
}

void hub_tally_renew(struct hub *h, const struct hub_cluster *c)
{
    bool in_sync = hub_cluster_in_sync(h, c) && c->group;

    for (size_t i = 0; i < h->n_scorers; i++)
        tally_renew_named(h->by_age[i], c, in_sync);
    h->tallied = false;
}

void hub_tally_forget(struct hub *h, const struct hub_cluster *c)
{
    size_t n = 0;

    for (size_t i = 0; i < h->totals.n_named; i++)
        if (h->totals.named[i] != c)
            h->totals.named[n++] = h->totals.named[i];
    h->totals.n_named = n;
    for (size_t k = 0; k < h->n_scorers; k++) {
        struct tally *t = &h->by_age[k]->tally;

        if (t->api_unhealthy.first == c)
            t->api_unhealthy.first = NULL;
        if (t->write_errors.first == c)
            t->write_errors.first = NULL;
        if (t->apply_errors.first == c)
            t->apply_errors.first = NULL;
        if (t->unconfirmed.first == c)
            t->unconfirmed.first = NULL;
        n = 0;
        for (size_t i = 0; i < t->n_named; i++)
            if (t->named[i].cluster != c)
                t->named[n++] = t->named[i];
        t->n_named = n;
    }
}
