#include "controller/hub/pages/status_view_pair.h"
#include "test/unit/hub/pages/view_world.h"

enum { NOTHING = -1 }; /* the agent says nothing of it */

/* What is said of a cluster that is to have the scorer is pair.c's; here it gets its place among all others. */
static void each_has_its_place(void **state)
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
        {"", "", NULL, false, true, true, false, SCORER_WAITING, "", PAIR_WAITING, "waiting", "", false},
        {"", "", NULL, false, true, true, false, SCORER_FAILING, "502", PAIR_FAILING, "failing", "502",
         false},
        {"", "", NULL, false, true, true, false, SCORER_STALE, "502", PAIR_STALE, "stale", "502", false},
        {"", "", NULL, false, true, true, true, SCORER_OK, "403", PAIR_NOT_PLACED, "notPlaced", "403", false},
        {"", "", NULL, false, true, true, false, NOTHING, "", PAIR_WAITING, "waiting", "", false},
        {"", "", NULL, false, true, false, false, NOTHING, "", PAIR_NO_REPORT, "silent", "", false},
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
        struct view_pair pair;

        if (cases[i].says != NOTHING) {
            add_report(c, s, (enum scorer_state)cases[i].says, *cases[i].said ? cases[i].said : NULL);
            c->report.cells[0].placement = cases[i].placement;
        }
        c->report.there = cases[i].reports;
        c->unavailable = cases[i].away ? strdup(cases[i].away) : NULL;
        c->work.applied = cases[i].applied;
        (void)strcpy(c->work.why, cases[i].unapplied);
        (void)strcpy(c->write_error, cases[i].why);
        c->behind = cases[i].behind;
        view_pair_of(&pair, s, c);
        if (pair.cell != cases[i].cell || strcmp(pair_info[pair.cell].word, cases[i].word) != 0 ||
            pair.scores != cases[i].scores || !strstr(pair.why, cases[i].error) ||
            !*pair.why != !*cases[i].error)
            fail_msg("case %zu: %s: %s", i, pair_info[pair.cell].word, pair.why);
        assert_int_equal(view_pair_troubled(s, c), *pair.why != '\0');
    }
}

static void has_cell(const struct hub_scorer *s, const struct hub_cluster *c, enum pair_state cell)
{
    struct view_pair pair;

    view_pair_of(&pair, s, c);
    assert_int_equal(pair.cell, cell);
    assert_string_equal(pair.why, "");
    assert_false(pair.scores);
    assert_false(view_pair_troubled(s, c));
    assert_null(view_report(s, c));
}

static void who_is_not_to_have_it(void **state)
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
    has_cell(masked, c, PAIR_MASKED);
    has_cell(large, c, PAIR_NO_ROOM);
    has_cell(out, c, PAIR_NOT_SENT);
    free((void *)(uintptr_t) new->group);
    new->group = NULL;
    has_cell(s, new, PAIR_NOT_SENT);
    c->managed = false;
    has_cell(s, c, PAIR_NOT_SENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_place),
        cmocka_unit_test(who_is_not_to_have_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
