/* What a scorer comes to on a cluster: which of what is known counts, and what is said of it. */
#include "controller/hub/state/hub_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { INTERVAL_MS = 60000, GRACE_S = 3 * 60 + 15 * 60 };

static const unix_ms now = {1795242181000}; /* 2026-11-21T06:23:01Z */

struct world {
    struct hub_cluster c;
    struct report_cell cell;
    char *error;
    bool out_of_sync, unnamed;
};

/* A cluster that is well, and whose agent says "ok". */
static void all_well(struct world *w)
{
    static char trouble[] = "f:1:2: error: no";

    *w = (struct world){.cell = {.state = REPORT_OK, .succeeded = 1795242181}};
    w->c.found = (struct work_found){.exists = true, .frame = true, .applied = true};
    w->c.report = (struct report){.there = true, .config_ok = true, .trouble = trouble, .errors = &w->error};
}

static void away(struct world *w)
{
    static char why[] = "no lease";

    w->c.away = why;
}

static void away_and_unwritten(struct world *w)
{
    away(w);
    (void)snprintf(w->c.why, sizeof(w->c.why), "forbidden");
}

static void unwritten(struct world *w)
{
    (void)snprintf(w->c.why, sizeof(w->c.why), "forbidden");
    w->out_of_sync = true;
}

static void unapplied(struct world *w)
{
    w->c.found.applied = false;
    (void)snprintf(w->c.found.why, sizeof(w->c.found.why), "no namespace");
}

/* It has not said anything yet. */
static void not_applied_yet(struct world *w)
{
    w->c.found.applied = false;
}

/* What could not be applied is no longer what is to be applied. */
static void unapplied_before(struct world *w)
{
    unapplied(w);
    w->out_of_sync = true;
}

static void no_report(struct world *w)
{
    w->c.report = (struct report){0};
    w->unnamed = true;
}

static void failing(struct world *w)
{
    static char error[] = "no answer";

    w->error = error;
    w->cell = (struct report_cell){.state = REPORT_FAILING, .error = 1};
}

static void stale(struct world *w)
{
    w->cell = (struct report_cell){.state = REPORT_STALE};
}

static void unplaced(struct world *w)
{
    w->cell.placement = true;
}

static void empty(struct world *w)
{
    w->cell.state = REPORT_EMPTY;
}

static void just_young_enough(struct world *w)
{
    w->cell.succeeded -= GRACE_S;
}

static void too_old(struct world *w)
{
    w->cell.succeeded -= GRACE_S + 1;
}

static void too_old_and_empty(struct world *w)
{
    too_old(w);
    empty(w);
}

static void of_no_known_time(struct world *w)
{
    w->cell.succeeded = 0;
}

static void from_the_future(struct world *w)
{
    w->cell.succeeded += 100000;
}

static void failing_for_long(struct world *w)
{
    failing(w);
    too_old(w);
}

static void refused(struct world *w)
{
    w->c.report.refused = true;
    w->c.report.config_ok = false;
    w->unnamed = true;
}

static void refused_and_scoring(struct world *w)
{
    refused(w);
    w->unnamed = false;
}

static void refused_and_failing(struct world *w)
{
    refused_and_scoring(w);
    failing(w);
}

static void waiting(struct world *w)
{
    w->cell = (struct report_cell){.state = REPORT_WAITING};
}

static void not_named(struct world *w)
{
    w->unnamed = true;
}

static void cut(struct world *w)
{
    w->unnamed = true;
    w->c.report.not_shown = 3;
}

static void cut_but_named(struct world *w)
{
    waiting(w);
    w->c.report.not_shown = 3;
}

static const struct {
    void (*arrange)(struct world *w);
    enum pair pair;
    enum pair_class class;
    const char *word, *why;
} cases[] = {
    {all_well, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {empty, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {not_applied_yet, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {unapplied_before, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {just_young_enough, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {of_no_known_time, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {from_the_future, PAIR_SCORING, PAIR_SCORES, "ok", ""},
    {away, PAIR_AWAY, PAIR_IS_SILENT, "silent", "the cluster is not available: no lease"},
    {away_and_unwritten, PAIR_AWAY, PAIR_IS_SILENT, "silent", "the cluster is not available: no lease"},
    {unwritten, PAIR_NOT_WRITTEN, PAIR_FAILS, "notWritten", "forbidden"},
    {unapplied, PAIR_NOT_APPLIED, PAIR_FAILS, "notApplied", "no namespace"},
    {no_report, PAIR_SILENT, PAIR_IS_SILENT, "silent", ""},
    {failing, PAIR_FAILING, PAIR_FAILS, "failing", "no answer"},
    {failing_for_long, PAIR_FAILING, PAIR_FAILS, "failing", "no answer"},
    {stale, PAIR_FAILING, PAIR_FAILS, "stale", "stale"},
    {unplaced, PAIR_FAILING, PAIR_FAILS, "ok", "its AddOnPlacementScore cannot be written"},
    {too_old, PAIR_OLD, PAIR_IS_SILENT, "silent", "its last success was at 2026-11-21T06:05:00Z"},
    {too_old_and_empty, PAIR_OLD, PAIR_IS_SILENT, "silent", "its last success was at 2026-11-21T06:05:00Z"},
    {refused, PAIR_REFUSED, PAIR_FAILS, "refused", "the agent refuses its configuration: f:1:2: error: no"},
    {refused_and_scoring, PAIR_OUTDATED, PAIR_SCORES, "refused",
     "the agent refuses its configuration, an older one is in force: f:1:2: error: no"},
    {refused_and_failing, PAIR_FAILING, PAIR_FAILS, "failing", "no answer"},
    {waiting, PAIR_WAITING, PAIR_WAITS, "waiting", ""},
    {not_named, PAIR_WAITING, PAIR_WAITS, "waiting", ""},
    {cut, PAIR_CUT, PAIR_IS_SILENT, "silent", "the agent's report has no room for all of its scorers"},
    {cut_but_named, PAIR_WAITING, PAIR_WAITS, "waiting", ""},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        const struct report_cell *cell;
        char why[PAIR_WHY_BYTES];
        enum pair p;

        all_well(&w);
        cases[i].arrange(&w);
        cell = w.unnamed ? NULL : &w.cell;
        p = pair_look(&w.c, !w.out_of_sync, cell, INTERVAL_MS, now);
        pair_why(why, &w.c, p, cell);
        if (p != cases[i].pair || pair_class(p) != cases[i].class ||
            strcmp(pair_word(p, cell), cases[i].word) != 0 || strcmp(why, cases[i].why) != 0 ||
            pair_has_why(p) != (*why != '\0'))
            fail_msg("case %zu: %d, class %d, %s, \"%s\"", i, (int)p, (int)pair_class(p), pair_word(p, cell),
                     why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
