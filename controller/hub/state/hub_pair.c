#include "controller/hub/state/hub_pair.h"

#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

static struct pair_facts pair_reason_facts(const struct hub_cluster *c, const struct report_cell *cell)
{
    return (struct pair_facts){
        .unavailable_because = c->unavailable,
        .addon_unavailable_because = c->addon_unavailable,
        .write_error = c->write_error,
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
    f.sent_ms_ago = c->last_write.at.ms ? mono_diff(c->last_write.at, loop_now(l)) : INT64_MAX;
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
