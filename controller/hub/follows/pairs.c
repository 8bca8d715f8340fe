/* Gathers the facts about one scorer on one cluster, from which rules/pair.c decides its state. Asked by
 * counts, statuses and pages. Owns nothing, changes nothing; loop thread. */
#include "controller/hub/follows/pairs.h"

#include "controller/hub/follows/target.h"
#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "exporter/base/clock.h"

static bool pair_is_sent(const struct fleet *f, const struct hub_scorer *s, const struct hub_cluster *c)
{
    return c->managed && c->group && s->share.entry < f->plan->n;
}

const struct report_cell *fleet_pair_cell(const struct fleet *f, const struct hub_scorer *s,
                                          const struct hub_cluster *c)
{
    return pair_is_sent(f, s, c) && plan_group_has(c->group, s->share.entry)
               ? report_find(&c->report, f->plan->entries[s->share.entry].score)
               : NULL;
}

struct pair_facts pair_facts_of_cluster(const struct fleet *f, const struct hub_cluster *c)
{
    mono_ms sent_at = c->write.object.written_at;

    return (struct pair_facts){
        .in_sync = cluster_is_up_to_date(c),
        .applied = c->work.applied,
        .sent_ms_ago = sent_at.ms ? mono_diff(sent_at, f->now) : INT64_MAX,
        .unavailable_because = c->unavailable,
        .addon_unavailable_because = c->addon_unavailable,
        .addon_unavailable_since = {c->addon_unavailable_ms},
        .unreadable_because = observed_refusal(f->seen, HUB_WORKS, f->now),
        .addon_namespace = c->addon_namespace,
        .agent_namespace = f->o->agent_namespace,
        .write_error = cstr(cluster_write_error(c)),
        .apply_error = c->work.applied ? "" : cstr(c->unapplied),
        .report = &c->report,
        .now = f->wall,
    };
}

enum pair_state fleet_pair_state(const struct fleet *f, const struct hub_scorer *s,
                                 const struct hub_cluster *c, struct pair_facts *ret)
{
    *ret = pair_facts_of_cluster(f, c);
    ret->suspended = s->share.place == PLACE_SUSPENDED;
    ret->cell = fleet_pair_cell(f, s, c);
    ret->interval_ms = s->effective.interval_ms;
    if (!pair_is_sent(f, s, c))
        return PAIR_NOT_SENT;
    if (plan_group_has(c->group, s->share.entry))
        return pair_state(ret);
    if (plan_group_outdates(f->plan, c->group, s->share.entry))
        return PAIR_OUTDATED;
    if (plan_group_lacks(f->plan, c->group, s->share.entry))
        return PAIR_NO_ROOM;
    return s->spec.placements ? PAIR_NOT_SENT : PAIR_MASKED;
}
