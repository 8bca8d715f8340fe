#include "controller/hub/pages/view.h"
#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/pair.h"
#include "exporter/base/buf.h"
#include "exporter/score/state.h"
#include "exporter/ui/out.h"
#include "test/unit/hub/pages/view_world.h"

enum { NOTHING = -1 }; /* not in the agent's report */

static void has_pair(const struct hub_scorer *s, const struct hub_cluster *c, enum pair_state state,
                     bool scores, const char *error)
{
    BUF_AUTO(b, 1 << 20);
    struct out o = out_begin(&b);
    char want[256];

    assert_int_equal(view_pair(s, c), state);
    out_puts(&o, "{");
    view_pair_members(&o, s, c);
    assert_int_equal(out_end(&o), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    (void)snprintf(want, sizeof(want),
                   "{\"state\":\"%s\",\"label\":\"%s\",\"severity\":\"%s\",\"scores\":%s,\"error\":%s",
                   pair_info[state].word, pair_info[state].label, pair_info[state].severity,
                   scores ? "true" : "false", *error ? "\"" : "null");
    assert_has(&b, want);
    assert_has(&b, error);
}

/* pair.c decides the state; here it meets what the hub knows. */
static void shows_each_state_of_a_selected_pair(void **state)
{
    static const struct {
        const char *why, *unapplied, *away;
        bool behind, applied, reports, placement;
        int says;
        const char *said;
        enum pair_state cell;
        const char *word, *error;
        bool scores;
    } cases[] = {
        {"", "", NULL, false, true, true, false, SCORER_OK, "", PAIR_OK, "ok", "", true},
        {"", "", NULL, false, true, true, false, SCORER_EMPTY, "", PAIR_EMPTY, "ok", "", true},
        {"", "", NULL, false, true, true, false, SCORER_WAITING, "", PAIR_WAITING, "waiting",
         "no round has finished yet", false},
        {"", "", NULL, false, true, true, false, SCORER_FAILING, "502", PAIR_FAILING, "failing", "502",
         false},
        {"", "", NULL, false, true, true, false, SCORER_STALE, "502", PAIR_FAILING, "failing", "502", false},
        {"", "", NULL, false, true, true, true, SCORER_OK, "403", PAIR_NOT_PLACED, "notPlaced", "403", false},
        {"", "", NULL, false, true, true, false, NOTHING, "", PAIR_WAITING, "waiting",
         "not reported the scorer yet", false},
        {"", "", NULL, false, true, false, false, NOTHING, "", PAIR_NO_REPORT, "silent",
         "no agent has reported", false},
        {"", "", "gone", false, true, true, false, SCORER_OK, "", PAIR_UNAVAILABLE, "silent", "gone", false},
        {"", "", "gone", true, true, true, false, SCORER_OK, "", PAIR_UNAVAILABLE, "silent", "gone", false},
        {"", "denied", NULL, false, false, true, false, SCORER_OK, "", PAIR_NOT_APPLIED, "notApplied",
         "denied", false},
        /* What is wrong is wrong; all else is behind. */
        {"", "denied", NULL, true, false, true, false, SCORER_OK, "", PAIR_BEHIND, "behind", "", true},
        {"", "", NULL, true, true, false, false, NOTHING, "", PAIR_BEHIND, "behind", "", false},
        {"", "", NULL, true, true, true, false, SCORER_FAILING, "502", PAIR_FAILING, "failing", "502", false},
        {"403", "", NULL, true, true, true, false, SCORER_OK, "", PAIR_NOT_WRITTEN, "notWritten", "403",
         false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        WORLD(w);
        struct hub_scorer *s = add_scorer(w, "s", "s");
        struct hub_cluster *c = add_cluster(w, "c", 1);

        if (cases[i].says != NOTHING) {
            add_report(c, s, (enum scorer_state)cases[i].says, *cases[i].said ? cases[i].said : NULL);
            c->report.cells[0].placement = cases[i].placement;
        }
        c->report.exists = cases[i].reports;
        c->unavailable = cases[i].away ? strdup(cases[i].away) : NULL;
        c->work.applied = cases[i].applied;
        (void)strcpy(c->work.why, cases[i].unapplied);
        (void)strcpy(c->write_error, cases[i].why);
        c->behind = cases[i].behind;
        has_pair(s, c, cases[i].cell, cases[i].scores, cases[i].error);
        assert_string_equal(pair_info[cases[i].cell].word, cases[i].word);
    }
}

static void has_state(const struct hub_scorer *s, const struct hub_cluster *c, enum pair_state state)
{
    has_pair(s, c, state, false, "");
    assert_null(view_report(s, c));
}

static void says_why_a_pair_is_not_selected(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s"), *masked = add_scorer(w, "masked", "masked");
    struct hub_scorer *large = add_scorer(w, "large", "large"), *out = add_scorer(w, "out", "out");
    struct hub_cluster *c = add_cluster(w, "c", 1), *new = add_cluster(w, "new", 0);

    (void)state;
    add_report(c, masked, SCORER_FAILING, "of before");
    (void)strcpy(c->write_error, "HTTP 403");
    ((struct plan_group *)(uintptr_t)c->group)->left_out = 1;
    out->entry = SIZE_MAX;
    has_state(masked, c, PAIR_MASKED);
    has_state(large, c, PAIR_NO_ROOM);
    has_state(out, c, PAIR_NOT_SENT);
    free((void *)(uintptr_t) new->group);
    new->group = NULL;
    has_state(s, new, PAIR_NOT_SENT);
    c->managed = false;
    has_state(s, c, PAIR_NOT_SENT);
}

static void names_the_worst_that_is_wrong_with_a_cluster(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s");
    struct hub_cluster *c = add_cluster(w, "c", 1);

    (void)state;
    assert_int_equal(view_cluster_state(c), CLUSTER_OK);
    c->behind = true;
    assert_int_equal(view_cluster_state(c), CLUSTER_BEHIND);
    c->report.exists = true;
    assert_int_equal(view_cluster_state(c), CLUSTER_AGENT_TROUBLE);
    add_report(c, s, SCORER_STALE, "502");
    assert_int_equal(view_cluster_state(c), CLUSTER_FAILING);
    assert_int_equal(view_cluster_failing(c), 1);
    c->unavailable = strdup("gone");
    assert_int_equal(view_cluster_state(c), CLUSTER_UNAVAILABLE);
    not_applied(c, "denied");
    assert_int_equal(view_cluster_state(c), CLUSTER_NOT_APPLIED);
    (void)strcpy(c->write_error, "HTTP 403");
    assert_int_equal(view_cluster_state(c), CLUSTER_NOT_WRITTEN);
}

static void has_scorer(const struct hub_scorer *s, enum view_scorer_state state)
{
    struct view_scorer v;

    assert_int_equal(view_scorer_make(&v, s), 0);
    assert_int_equal(v.state, state);
    view_scorer_done(&v);
}

static void tells_ready_scorers_with_a_problem_apart(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s"), *other = add_scorer(w, "t", "t");

    (void)state;
    has_scorer(s, VIEW_READY);
    s->tally.failing = 1;
    has_scorer(s, VIEW_DEGRADED);
    s->tally.failing = 0;
    s->younger = other;
    has_scorer(s, VIEW_DEGRADED);
    s->younger = NULL;
    (void)strcpy(s->spec_error, "no");
    has_scorer(s, VIEW_NOT_READY);
    s->spec_error[0] = '\0';
    s->probe->status.health = HEALTH_UNKNOWN;
    has_scorer(s, VIEW_UNKNOWN);
    w->hub.leading = false;
    s->object = json_pack("{s:{s:[{s:s,s:s}]}}", "status", "conditions", "type", "Ready", "status", "True");
    has_scorer(s, VIEW_READY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_each_state_of_a_selected_pair),
        cmocka_unit_test(says_why_a_pair_is_not_selected),
        cmocka_unit_test(names_the_worst_that_is_wrong_with_a_cluster),
        cmocka_unit_test(tells_ready_scorers_with_a_problem_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
