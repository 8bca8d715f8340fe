#include "controller/hub/pages/status_view_pair.h"

const struct report_cell *view_report(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return hub_pair_is_selected(s, c) ? report_find(&c->report, s->hub->entry_scores[s->entry]) : NULL;
}

bool view_pair_troubled(const struct hub_scorer *s, const struct hub_cluster *c)
{
    return pair_info[hub_pair_state(s, c, view_report(s, c), !c->behind)].has_reason;
}

void view_pair_of(struct view_pair *ret, const struct hub_scorer *s, const struct hub_cluster *c)
{
    const struct report_cell *cell = view_report(s, c);
    enum pair_state state = hub_pair_state(s, c, cell, !c->behind);

    *ret = (struct view_pair){.cell = pair_state_shown(state, c->behind),
                              .scores = pair_info[state].class == PAIR_CLASS_SCORING};
    hub_pair_reason(ret->why, ret->cell, c, cell);
}
