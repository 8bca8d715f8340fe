#include "controller/hub/state/hub_internal.h"

#include <stdio.h>

enum {
    INTERVALS = 3, /* so many may be missed: so long the agent keeps a score */
    LATE_MS = 15 * 60 *
              1000, /* clocks differ, and reports whose times alone have changed come every five minutes */
};

bool cluster_unapplied(const struct hub_cluster *c, bool in_sync)
{
    return in_sync && !c->found.applied && c->found.why[0];
}

static bool kept_lately(const struct hub_cluster *c)
{
    return c->kept_at.ms && mono_diff(c->kept_at, loop_now(c->hub->o.loop)) < LATE_MS;
}

/* The interval is the newest summary's: an agent that has just got it, or works by an older one, is not judged by it. */
static bool is_old(const struct hub_cluster *c, bool in_sync, const struct report_cell *cell,
                   int64_t interval_ms, unix_ms now)
{
    return in_sync && !c->report.refused && !kept_lately(c) && cell->succeeded &&
           now.ms - (int64_t)cell->succeeded * 1000 > INTERVALS * interval_ms + LATE_MS;
}

enum pair pair_look(const struct hub_cluster *c, bool in_sync, const struct report_cell *cell,
                    int64_t interval_ms, unix_ms now)
{
    const struct report *r = &c->report;

    if (c->away)
        return PAIR_AWAY;
    if (c->why[0])
        return PAIR_NOT_WRITTEN;
    if (cluster_unapplied(c, in_sync))
        return PAIR_NOT_APPLIED;
    if (!r->there)
        return PAIR_SILENT;
    if (cell && report_cell_fails(cell))
        return PAIR_FAILING;
    if (cell && report_cell_scores(cell))
        return is_old(c, in_sync, cell, interval_ms, now) ? PAIR_OLD
               : r->refused                               ? PAIR_OUTDATED
                                                          : PAIR_SCORING;
    if (r->refused)
        return PAIR_REFUSED;
    return cell || !r->not_shown ? PAIR_WAITING : PAIR_CUT;
}

static const struct {
    enum pair_class class;
    const char *word;
    bool has_why;
} pairs[] = {
    [PAIR_FAILING] = {PAIR_FAILS, "failing", true},
    [PAIR_NOT_WRITTEN] = {PAIR_FAILS, "notWritten", true},
    [PAIR_NOT_APPLIED] = {PAIR_FAILS, "notApplied", true},
    [PAIR_REFUSED] = {PAIR_FAILS, "refused", true},
    [PAIR_SCORING] = {PAIR_SCORES, "ok", false},
    [PAIR_OUTDATED] = {PAIR_SCORES, "refused", true},
    [PAIR_WAITING] = {PAIR_WAITS, "waiting", false},
    [PAIR_SILENT] = {PAIR_IS_SILENT, "silent", false},
    [PAIR_AWAY] = {PAIR_IS_SILENT, "silent", true},
    [PAIR_OLD] = {PAIR_IS_SILENT, "silent", true},
    [PAIR_CUT] = {PAIR_IS_SILENT, "silent", true},
};

enum pair_class pair_class(enum pair p)
{
    return pairs[p].class;
}

bool pair_has_why(enum pair p)
{
    return pairs[p].has_why;
}

const char *pair_word(enum pair p, const struct report_cell *cell)
{
    return p == PAIR_FAILING ? report_state_word(cell->state) : pairs[p].word;
}

static const char *cell_why(const struct hub_cluster *c, const struct report_cell *cell)
{
    const char *error = report_error(&c->report, cell);

    if (*error)
        return error;
    return cell->placement ? "its AddOnPlacementScore cannot be written" : report_state_word(cell->state);
}

static void put_old(char out[PAIR_WHY_BYTES], const struct report_cell *cell)
{
    char at[32];

    unix_ms_format((unix_ms){(int64_t)cell->succeeded * 1000}, at);
    (void)snprintf(out, PAIR_WHY_BYTES, "its last success was at %.19sZ", at);
}

void pair_why(char out[PAIR_WHY_BYTES], const struct hub_cluster *c, enum pair p,
              const struct report_cell *cell)
{
    const struct {
        const char *before, *text;
    } says[] = {
        [PAIR_FAILING] = {"", p == PAIR_FAILING ? cell_why(c, cell) : ""},
        [PAIR_NOT_WRITTEN] = {"", c->why},
        [PAIR_NOT_APPLIED] = {"", c->found.why},
        [PAIR_REFUSED] = {"the agent refuses its configuration: ", cstr(c->report.trouble)},
        [PAIR_OUTDATED] = {"the agent refuses its configuration, an older one is in force: ",
                           cstr(c->report.trouble)},
        [PAIR_AWAY] = {"the cluster is not available: ", cstr(c->away)},
        [PAIR_CUT] = {"the agent's report has no room for all of its scorers", ""},
    };

    if (p == PAIR_OLD)
        put_old(out, cell);
    else
        (void)snprintf(out, PAIR_WHY_BYTES, "%s%s", p < ARRAY_SIZE(says) ? cstr(says[p].before) : "",
                       p < ARRAY_SIZE(says) ? cstr(says[p].text) : "");
}
