/* Which of several facts decides a pair's state, and the words for it. */
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"
#include "exporter/base/clock.h"
#include "exporter/score/scorer_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { INTERVAL_MS = 60000, GRACE_S = 3 * 60 + 15 * 60 };

static const unix_ms now = {1795242181000}; /* 2026-11-21T06:23:01Z */

struct world {
    struct pair_facts f;
    struct report report;
    struct report_cell cell;
    char *error;
    bool unnamed, behind;
};

/* An available cluster that is in sync, and whose agent reports "ok". */
static void all_well(struct world *w)
{
    static char trouble[] = "f:1:2: error: no";

    *w = (struct world){.cell = {.state = SCORER_OK, .succeeded = 1795242181}};
    w->f = (struct pair_facts){
        .in_sync = true, .applied = true, .sent_ms_ago = INT64_MAX, .interval_ms = INTERVAL_MS, .now = now};
    w->report = (struct report){.exists = true, .config_ok = true, .problem = trouble, .errors = &w->error};
}

static void away(struct world *w)
{
    w->f.unavailable_because = "no lease";
}

static void without_agent(struct world *w)
{
    w->f.addon_unavailable_because = "no pod";
}

static void away_and_without_agent(struct world *w)
{
    away(w);
    without_agent(w);
}

static void away_and_unwritten(struct world *w)
{
    away(w);
    w->f.write_error = "forbidden";
}

static void unwritten(struct world *w)
{
    w->f.write_error = "forbidden";
    w->f.in_sync = false;
}

static void unapplied(struct world *w)
{
    w->f.apply_error = "no namespace";
}

/* The error is about the previous ManifestWork. */
static void unapplied_before(struct world *w)
{
    unapplied(w);
    w->f.in_sync = false;
}

static void no_report(struct world *w)
{
    w->report = (struct report){0};
    w->unnamed = true;
}

static void elsewhere(struct world *w)
{
    w->f.addon_namespace = "open-cluster-management-agent-addon";
    w->f.agent_namespace = "dynamic-scoring";
}

static void elsewhere_and_no_report(struct world *w)
{
    elsewhere(w);
    no_report(w);
}

static void elsewhere_and_no_report_and_behind(struct world *w)
{
    elsewhere_and_no_report(w);
    w->f.in_sync = false;
}

static void elsewhere_and_away(struct world *w)
{
    elsewhere_and_no_report(w);
    away(w);
}

static void no_report_and_unconfirmed(struct world *w)
{
    no_report(w);
    w->f.applied = false;
}

static void no_report_and_behind(struct world *w)
{
    no_report(w);
    w->f.in_sync = false;
}

static void failing(struct world *w)
{
    static char error[] = "no answer";

    w->error = error;
    w->cell = (struct report_cell){.state = SCORER_FAILING, .error = 1};
}

static void stale(struct world *w)
{
    w->cell = (struct report_cell){.state = SCORER_STALE, .succeeded = 1};
}

static void stale_but_never_scored(struct world *w)
{
    w->cell = (struct report_cell){.state = SCORER_STALE};
}

static void unplaced(struct world *w)
{
    w->cell.placement = true;
}

static void empty(struct world *w)
{
    w->cell.state = SCORER_EMPTY;
}

static void empty_with_words(struct world *w)
{
    static char error[] = "the scoring API returned no results; fallbackScore is used";

    empty(w);
    w->error = error;
    w->cell.no_items = true;
    w->cell.error = 1;
}

static void without_items(struct world *w)
{
    static char error[] = "no item from 3 results of the scoring API; there are no scores";

    w->error = error;
    w->cell.no_items = true;
    w->cell.error = 1;
}

static void without_items_for_a_reason_unknown(struct world *w)
{
    w->cell.no_items = true;
}

static void refused_and_without_items(struct world *w)
{
    without_items(w);
    w->report.config_rejected = true;
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

static void too_old_but_new_to_the_agent(struct world *w)
{
    too_old(w);
    w->f.sent_ms_ago = 15 * 60 * 1000 - 1;
}

static void too_old_and_out_of_sync(struct world *w)
{
    too_old(w);
    w->f.in_sync = false;
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
    w->report.config_rejected = true;
    w->report.config_ok = false;
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
    w->cell = (struct report_cell){.state = SCORER_WAITING};
}

static void not_named(struct world *w)
{
    w->unnamed = true;
}

static void cut(struct world *w)
{
    w->unnamed = true;
    w->report.not_shown = 3;
}

static void cut_but_named(struct world *w)
{
    waiting(w);
    w->report.not_shown = 3;
}

static void refused_and_waiting(struct world *w)
{
    refused_and_scoring(w);
    waiting(w);
}

static void behind(struct world *w)
{
    w->f.in_sync = false;
    w->behind = true;
}

static void behind_and_failing(struct world *w)
{
    behind(w);
    failing(w);
}

static void suspended(struct world *w)
{
    w->f.suspended = true;
    w->report.exists = false;
}

/* A report that says when its scores expire is believed, with half a minute for its way. */
static void valid_for_now(struct world *w)
{
    too_old(w);
    w->cell.life = (uint32_t)(w->f.now.ms / 1000 - w->cell.succeeded - 30) & 0x7ffff;
}

static void invalid_by_now(struct world *w)
{
    valid_for_now(w);
    w->cell.life--;
    w->f.sent_ms_ago = 0;
}

/* The agent has started anew, and the report before said how long its scores are good. */
static void waiting_with_valid_scores(struct world *w)
{
    valid_for_now(w);
    w->cell.state = SCORER_WAITING;
}

static void waiting_for_longer_than_scores_are_valid(struct world *w)
{
    invalid_by_now(w);
    w->cell.state = SCORER_WAITING;
}

static void waiting_with_valid_scores_but_unplaced(struct world *w)
{
    waiting_with_valid_scores(w);
    unplaced(w);
}

static void refused_and_waiting_with_valid_scores(struct world *w)
{
    refused_and_scoring(w);
    waiting_with_valid_scores(w);
}

/* In a roll-out of the agent its pod ends, and another one starts. */
static void rolled_out(struct world *w)
{
    without_agent(w);
    valid_for_now(w);
    w->f.addon_unavailable_since.ms = now.ms - 2 * 60 * 1000 + 1;
}

static void rolled_out_for_long(struct world *w)
{
    rolled_out(w);
    w->f.addon_unavailable_since.ms--;
}

static void rolled_out_and_expired(struct world *w)
{
    rolled_out(w);
    w->cell.life--;
}

static void rolled_out_and_failing(struct world *w)
{
    rolled_out(w);
    w->cell.state = SCORER_FAILING;
}

static void rolled_out_and_away(struct world *w)
{
    rolled_out(w);
    away(w);
}

static void unreadable(struct world *w)
{
    w->f.unreadable_because = "hub: list manifestworks: forbidden";
}

static void unreadable_and_expired(struct world *w)
{
    unreadable(w);
    too_old(w);
}

static void unreadable_and_no_report(struct world *w)
{
    unreadable(w);
    no_report(w);
}

static void unreadable_and_elsewhere(struct world *w)
{
    unreadable_and_expired(w);
    elsewhere(w);
}

static void unreadable_and_away(struct world *w)
{
    unreadable_and_expired(w);
    away(w);
}

static void unreadable_and_failing(struct world *w)
{
    unreadable(w);
    failing(w);
}

#define UNREADABLE "ManifestWorks cannot be read: hub: list manifestworks: forbidden"

static void elsewhere_and_expired(struct world *w)
{
    elsewhere(w);
    too_old(w);
}

static void elsewhere_and_failing(struct world *w)
{
    elsewhere(w);
    failing(w);
}

#define ELSEWHERE                                                                                     \
    "the add-on is installed in namespace open-cluster-management-agent-addon, but its ConfigMap is " \
    "in dynamic-scoring: set agentInstallNamespace: dynamic-scoring in its AddOnDeploymentConfig"

static void too_old_by_a_clock(struct world *w)
{
    too_old(w);
    w->report.clock_offset_s = 125;
}

static void too_old_by_a_clock_ahead(struct world *w)
{
    too_old(w);
    w->report.clock_offset_s = -40;
}

static const struct {
    void (*arrange)(struct world *w);
    enum pair_state state, shown;
    enum pair_class class;
    const char *word, *reason;
} cases[] = {
#define SAME(s)   s, s
#define SCORING   PAIR_CLASS_SCORING
#define FAILING   PAIR_CLASS_FAILING
#define WAITING   PAIR_CLASS_WAITING
#define SILENT    PAIR_CLASS_SILENT
#define NOT_THERE PAIR_CLASS_UNSELECTED
    {all_well, SAME(PAIR_OK), SCORING, "ok", ""},
    {empty, SAME(PAIR_EMPTY), PAIR_CLASS_EMPTY, "empty",
     "the source returned no series, or the scoring API no results"},
    {empty_with_words, SAME(PAIR_EMPTY), PAIR_CLASS_EMPTY, "empty",
     "the scoring API returned no results; fallbackScore is used"},
    {without_items, SAME(PAIR_NO_ITEMS), PAIR_CLASS_EMPTY, "empty",
     "no item from 3 results of the scoring API; there are no scores"},
    {without_items_for_a_reason_unknown, SAME(PAIR_NO_ITEMS), PAIR_CLASS_EMPTY, "empty",
     "no result of the scoring API leads to an item"},
    {refused_and_without_items, SAME(PAIR_NO_ITEMS), PAIR_CLASS_EMPTY, "empty",
     "no item from 3 results of the scoring API; there are no scores"},
    {suspended, SAME(PAIR_SUSPENDED), PAIR_CLASS_SUSPENDED, "suspended",
     "not called, as the hub finds the scoring API unhealthy"},
    {valid_for_now, SAME(PAIR_OK), SCORING, "ok", ""},
    {invalid_by_now, SAME(PAIR_EXPIRED), SILENT, "silent",
     "its scores have expired: the last success was at 2026-11-21T06:05:00Z"},
    {unapplied_before, SAME(PAIR_OK), SCORING, "ok", ""},
    {just_young_enough, SAME(PAIR_OK), SCORING, "ok", ""},
    {of_no_known_time, SAME(PAIR_OK), SCORING, "ok", ""},
    {from_the_future, SAME(PAIR_OK), SCORING, "ok", ""},
    {too_old_but_new_to_the_agent, SAME(PAIR_OK), SCORING, "ok", ""},
    {too_old_and_out_of_sync, SAME(PAIR_OK), SCORING, "ok", ""},
    {away, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the cluster is not available: no lease"},
    {without_agent, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the add-on is not available: no pod"},
    {away_and_without_agent, SAME(PAIR_UNAVAILABLE), SILENT, "silent",
     "the cluster is not available: no lease"},
    {away_and_unwritten, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the cluster is not available: no lease"},
    {unwritten, SAME(PAIR_NOT_WRITTEN), FAILING, "notWritten", "ManifestWork not written: forbidden"},
    {unapplied, SAME(PAIR_NOT_APPLIED), FAILING, "notApplied", "ManifestWork not applied: no namespace"},
    {no_report, SAME(PAIR_NO_REPORT), SILENT, "silent",
     "the ManifestWork is applied, but no agent has reported"},
    {no_report_and_unconfirmed, SAME(PAIR_NO_REPORT), SILENT, "silent",
     "the work agent has not applied the ManifestWork yet"},
    {no_report_and_behind, SAME(PAIR_NO_REPORT), SILENT, "silent", "its ManifestWork is not up to date yet"},
    {elsewhere, SAME(PAIR_OK), SCORING, "ok", ""},
    {elsewhere_and_no_report, SAME(PAIR_ELSEWHERE), SILENT, "silent", ELSEWHERE},
    {elsewhere_and_no_report_and_behind, SAME(PAIR_ELSEWHERE), SILENT, "silent", ELSEWHERE},
    {elsewhere_and_expired, SAME(PAIR_ELSEWHERE), SILENT, "silent", ELSEWHERE},
    {elsewhere_and_failing, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
    {elsewhere_and_away, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the cluster is not available: no lease"},
    {failing, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
    {failing_for_long, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
    {stale, SAME(PAIR_STALE), FAILING, "stale", "stale"},
    {stale_but_never_scored, SAME(PAIR_FAILING), FAILING, "failing", "failing"},
    {unplaced, SAME(PAIR_NOT_PLACED), FAILING, "notPlaced",
     "AddOnPlacementScore not written: the agent does not say why"},
    {too_old, SAME(PAIR_EXPIRED), SILENT, "silent",
     "its scores have expired: the last success was at 2026-11-21T06:05:00Z"},
    {too_old_by_a_clock, SAME(PAIR_EXPIRED), SILENT, "silent",
     "its scores have expired: the last success was at 2026-11-21T06:05:00Z; the agent's clock is 125 s "
     "behind that of the hub's API server"},
    {too_old_by_a_clock_ahead, SAME(PAIR_EXPIRED), SILENT, "silent",
     "its scores have expired: the last success was at 2026-11-21T06:05:00Z; the agent's clock is 40 s "
     "ahead of that of the hub's API server"},
    {too_old_and_empty, SAME(PAIR_EXPIRED), SILENT, "silent",
     "its scores have expired: the last success was at 2026-11-21T06:05:00Z"},
    {refused, SAME(PAIR_REFUSED), FAILING, "refused",
     "the agent rejected its configuration: f:1:2: error: no"},
    {refused_and_waiting, SAME(PAIR_REFUSED), FAILING, "refused",
     "the agent rejected its configuration: f:1:2: error: no"},
    {refused_and_scoring, SAME(PAIR_OLD_CONFIG), SCORING, "refused",
     "the agent rejected its configuration, an older one stays active: f:1:2: error: no"},
    {refused_and_failing, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
    {waiting, SAME(PAIR_WAITING), WAITING, "waiting", "no round has finished yet"},
    {not_named, SAME(PAIR_WAITING), WAITING, "waiting", "the agent has not reported the scorer yet"},
    {cut, SAME(PAIR_REPORT_FULL), SILENT, "silent", "the agent's report has no room for all of its scorers"},
    {cut_but_named, SAME(PAIR_WAITING), WAITING, "waiting", "no round has finished yet"},
    {waiting_with_valid_scores, SAME(PAIR_OK), SCORING, "ok", ""},
    {waiting_for_longer_than_scores_are_valid, SAME(PAIR_WAITING), WAITING, "waiting",
     "no round has finished yet"},
    {waiting_with_valid_scores_but_unplaced, SAME(PAIR_NOT_PLACED), FAILING, "notPlaced",
     "AddOnPlacementScore not written: the agent does not say why"},
    {refused_and_waiting_with_valid_scores, SAME(PAIR_OLD_CONFIG), SCORING, "refused",
     "the agent rejected its configuration, an older one stays active: f:1:2: error: no"},
    {rolled_out, SAME(PAIR_OK), SCORING, "ok", ""},
    {rolled_out_for_long, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the add-on is not available: no pod"},
    {rolled_out_and_expired, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the add-on is not available: no pod"},
    {rolled_out_and_failing, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the add-on is not available: no pod"},
    {rolled_out_and_away, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the cluster is not available: no lease"},
    {unreadable, SAME(PAIR_OK), SCORING, "ok", ""},
    {unreadable_and_expired, SAME(PAIR_UNREADABLE), SILENT, "silent", UNREADABLE},
    {unreadable_and_no_report, SAME(PAIR_UNREADABLE), SILENT, "silent", UNREADABLE},
    {unreadable_and_elsewhere, SAME(PAIR_UNREADABLE), SILENT, "silent", UNREADABLE},
    {unreadable_and_away, SAME(PAIR_UNAVAILABLE), SILENT, "silent", "the cluster is not available: no lease"},
    {unreadable_and_failing, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
    {behind, PAIR_OK, PAIR_BEHIND, WAITING, "behind", ""},
    {behind_and_failing, SAME(PAIR_FAILING), FAILING, "failing", "no answer"},
};

static void decides_by_the_fact_that_matters_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world w;
        char reason[PAIR_REASON_BYTES];
        enum pair_state s, shown;

        all_well(&w);
        cases[i].arrange(&w);
        w.f.report = &w.report;
        w.f.cell = w.unnamed ? NULL : &w.cell;
        s = pair_state(&w.f);
        shown = pair_state_shown(s, w.behind);
        pair_reason(reason, shown, &w.f);
        if (s != cases[i].state || shown != cases[i].shown || pair_info[shown].class != cases[i].class ||
            strcmp(pair_info[shown].word, cases[i].word) != 0 || strcmp(reason, cases[i].reason) != 0 ||
            pair_info[shown].has_reason != (*reason != '\0'))
            fail_msg("case %zu: state %d, shown %d, %s, \"%s\"", i, (int)s, (int)shown, pair_info[shown].word,
                     reason);
    }
}

static void has_words_for_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAIR_STATES; i++) {
        assert_non_null(pair_info[i].word);
        assert_non_null(pair_info[i].severity);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(pair_info[i].label, pair_info[k].label);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_by_the_fact_that_matters_most),
        cmocka_unit_test(has_words_for_every_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
