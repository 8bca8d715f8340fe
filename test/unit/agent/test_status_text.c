#include "exporter/agent/status_text.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"
#include "test/unit/agent/status_world.h"

static void has_a_hint_for_each_error(void **state)
{
    (void)state;
    for (enum round_error e = ROUND_OK; e < ROUND_ERRORS; e++) {
        assert_non_null(status_hint(e, STAGE_SOURCE));
        assert_true(*status_hint(e, STAGE_SCORING));
    }
}

static void counts_scorers_by_state(void **state)
{
    struct totals t;
    WORLD(w);

    (void)state;
    add(w, good_scorer((char *)"a"));
    add(w, good_scorer((char *)"b"));
    add(w, bad_scorer(SCORER_STALE, STAGE_SOURCE, ROUND_DNS, "no"));
    t = status_totals(&w->agent);
    assert_int_equal(t.by_state[SCORER_OK], 2);
    assert_int_equal(t.by_state[SCORER_STALE], 1);
    assert_int_equal(t.series, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_hint_for_each_error),
        cmocka_unit_test(counts_scorers_by_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
