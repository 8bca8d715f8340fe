#include "controller/hub/pages/status_view_pair.h"

static bool is_to_have(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return c->managed && c->group && s->entry < s->hub->n_entries && plan_group_has(c->group, s->entry);
}

const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return is_to_have(s, c) ? report_find(&c->report, s->hub->entry_scores[s->entry]) : NULL;
}

static enum view_cell failing_cell(const struct report_cell *report)
{
    return report->state == REPORT_FAILING ? CELL_FAILING
           : report->state == REPORT_STALE ? CELL_STALE
                                           : CELL_NOT_PLACED;
}

static enum view_cell cell_of(enum pair p, const struct report_cell *report)
{
    static const enum view_cell cells[] = {
        [PAIR_NOT_WRITTEN] = CELL_NOT_WRITTEN,
        [PAIR_NOT_APPLIED] = CELL_NOT_APPLIED,
        [PAIR_REFUSED] = CELL_REFUSED,
        [PAIR_OUTDATED] = CELL_OUTDATED,
        [PAIR_WAITING] = CELL_WAITING,
        [PAIR_SILENT] = CELL_SILENT,
        [PAIR_AWAY] = CELL_AWAY,
        [PAIR_OLD] = CELL_OLD,
        [PAIR_CUT] = CELL_CUT,
    };

    if (p == PAIR_FAILING)
        return failing_cell(report);
    if (p == PAIR_SCORING)
        return report->state == REPORT_EMPTY ? CELL_EMPTY : CELL_OK;
    return cells[p];
}

/* Of a cluster that is to have it. */
static enum pair look(const struct hub_scorer *s, const struct hub_cluster *c,
                      const struct report_cell *report)
{
    return pair_look(c, !c->behind, report, s->effective.interval_ms, loop_wall(s->hub->o.loop));
}

bool view_pair_troubled(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return is_to_have(s, c) && pair_has_why(look(s, c, view_report(s, c)));
}

static void put(struct view_pair *ret, const struct hub_scorer *s, const struct hub_cluster *c)
{
    const struct report_cell *report = view_report(s, c);
    enum pair p = look(s, c, report);

    *ret = (struct view_pair){
        .cell = cell_of(p, report), .word = pair_word(p, report), .scores = pair_class(p) == PAIR_SCORES};
    if (c->behind && !pair_has_why(p)) {
        ret->cell = CELL_BEHIND;
        ret->word = "behind";
        return;
    }
    pair_why(ret->why, c, p, report);
}

void view_pair_of(struct view_pair *ret, const struct hub_scorer *s, const struct hub_cluster *c)
{
    if (is_to_have(s, c))
        put(ret, s, c);
    else if (!c->managed || !c->group || s->entry >= s->hub->n_entries)
        *ret = (struct view_pair){.cell = CELL_NOT_SENT, .word = "notSent"};
    else if (plan_group_lacks(s->hub->plan, c->group, s->entry))
        *ret = (struct view_pair){.cell = CELL_NO_ROOM, .word = "noRoom"};
    else
        *ret = (struct view_pair){.cell = CELL_MASKED, .word = "masked"};
}
