/* When rounds happen and how long scores live. */
#include "exporter/score/scorer_state.h"
#include "test/metric_value.h"
#include "test/unit/agent/scorer_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void starts_the_first_round_at_once_with_jitter(void **state)
{
    struct world *w = *state;
    int64_t wait;

    start(w);
    wait = w->scorer->status.next_ms - wall.ms;
    assert_in_range(wait, 0, 1500);
    assert_int_equal(scorer_state(w->scorer), SCORER_WAITING);
    pass(w, wait);
    turn_until_ended(w, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_OK);
    assert_int_equal(w->published, 1);
    assert_string_equal(fake_request(w->api, 0)->body, "{\"data\":[]}");
}

static void limits_jitter_to_a_tenth_of_the_interval(void **state)
{
    struct world *w = *state;

    w->summary.interval_ms = 1000;
    for (int i = 0; i < 50; i++) {
        start(w);
        assert_in_range(w->scorer->status.next_ms - wall.ms, 0, 100);
        w->scorer = scorer_free(w->scorer);
    }
}

static void keeps_the_rhythm_of_rounds(void **state)
{
    struct world *w = *state;
    int64_t due, first;

    first_round(w);
    first = w->scorer->status.next_ms;
    for (size_t i = 2; i < 6; i++) {
        due = w->scorer->status.next_ms;
        assert_int_equal(due, first + (int64_t)(i - 2) * 60000);
        pass(w, due - wall.ms - 1);
        assert_false(w->scorer->status.running);
        pass(w, 1 + (int64_t)i * 7); /* a little late: what follows is not */
        turn_until_ended(w, i);
    }
}

static void skips_the_rounds_that_a_long_one_covers(void **state)
{
    struct world *w = *state;
    int64_t first;

    fake_push(w->api, (struct fake_answer){.body = ONE_SCORE});
    fake_push(w->api, (struct fake_answer){.body = ONE_SCORE, .delay_ms = 50});
    first_round(w);
    first = w->scorer->status.next_ms;
    pass(w, first - wall.ms);
    assert_true(w->scorer->status.running);
    pass(w, 100000); /* more than one interval goes by */
    turn_until_ended(w, 2);
    assert_int_equal(w->scorer->status.next_ms, first + 120000);
}

static void renews_scores_with_each_good_round(void **state)
{
    struct world *w = *state;

    first_round(w);
    for (size_t i = 2; i < 10; i++) {
        pass(w, 60000);
        turn_until_ended(w, i);
        assert_int_equal(w->withdrawn, 0);
    }
    assert_int_equal(w->published, 9);
}

/* The schedule is on a clock that does not jump; only what people see follows the wall clock. */
static void keeps_the_schedule_when_the_wall_clock_jumps(void **state)
{
    struct world *w = *state;

    first_round(w);
    wall.ms -= 86400000ll * 365;
    pass(w, 60000);
    turn_until_ended(w, 2);
    assert_int_equal(w->published_at_ms, wall.ms);
    wall.ms += 86400000ll * 3650;
    pass(w, 30000);
    assert_int_equal(w->ended, 2);
    assert_int_equal(w->withdrawn, 0);
    pass(w, 30000);
    turn_until_ended(w, 3);
}

/* The machine slept for an hour: its scores are too old, and rounds that it missed are not made up for. */
static void expires_scores_while_the_machine_sleeps(void **state)
{
    struct world *w = *state;

    first_round(w);
    fake_push(w->api, (struct fake_answer){.body = ONE_SCORE, .delay_ms = 50});
    pass(w, 3600000);
    assert_int_equal(w->withdrawn, 1);
    assert_null(w->scorer->batch);
    assert_true(w->scorer->status.running);
    turn_until_ended(w, 2);
    assert_non_null(w->scorer->batch);
    assert_int_equal(fake_requests(w->api), 2);
    assert_in_range(w->scorer->status.next_ms - wall.ms, 1, 60000);
}

static void keeps_the_rhythm_when_the_clock_goes_back(void **state)
{
    struct world *w = *state;
    int64_t wait;

    first_round(w);
    wait = w->scorer->status.next_ms - wall.ms;
    now.ms -= 86400000ll * 30;
    pass(w, 0); /* the time between two readings is lost */
    pass(w, wait - 1);
    assert_int_equal(w->ended, 1);
    assert_false(w->scorer->status.running);
    pass(w, 1);
    turn_until_ended(w, 2);
    assert_int_equal(w->scorer->status.next_ms - wall.ms, 60000);
    assert_int_equal(w->withdrawn, 0);
}

static void starts_a_round_and_keeps_scores_on_a_changed_summary(void **state)
{
    struct world *w = *state;
    struct summary other = w->summary;

    first_round(w);
    other.scoring_endpoint = (char *)(uintptr_t)fake_url(w->api, "/other");
    other.interval_ms = 30000;
    scorer_change(w->scorer, &other);
    assert_non_null(w->scorer->batch);
    pass(w, 0);
    turn_until_ended(w, 2);
    assert_string_equal(fake_request(w->api, 1)->target, "/other");
    assert_int_equal(w->withdrawn, 0);
    assert_int_equal(w->scorer->status.next_ms - wall.ms, 30000);
    assert_true(metric_value(w->metrics, "dynamic_scoring_interval_seconds{score_name=\"s\"}") == 30);
}

static void cancels_the_running_round_on_a_change(void **state)
{
    struct world *w = *state;
    struct summary other = w->summary;

    fake_push(w->api, (struct fake_answer){.mode = FAKE_HANG});
    start(w);
    pass(w, 2000);
    for (int i = 0; i < 500 && fake_requests(w->api) == 0; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    other.interval_ms = 30000;
    scorer_change(w->scorer, &other);
    pass(w, 0);
    turn_until_ended(w, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_OK);
}

/* Whether /metrics has this line. */
static bool shows(const struct world *w, const char *line)
{
    BUF_AUTO(text, 1 << 20);

    metrics_render(w->metrics, &text);
    buf_putc(&text, '\0');
    assert_int_equal(buf_failed(&text), 0);
    return strstr(text.p, line);
}

/* A query that found nothing says nothing once there is none: SourceEmpty would never end. */
static void forgets_the_series_of_a_source_that_is_gone(void **state)
{
    struct world *w = *state;
    struct summary without = w->summary;
    struct summary_source source = {.type = SOURCE_PROMETHEUS,
                                    .endpoint = (char *)(uintptr_t)fake_url(w->api, "/query"),
                                    .query = (char *)"up",
                                    .range_s = 60,
                                    .step_s = 60};

    w->summary.sources = &source;
    w->summary.n_sources = 1;
    fake_push(w->api, (struct fake_answer){.body = "{\"data\":{\"result\":[]}}"});
    first_round(w);
    assert_true(shows(w, "\ndynamic_scoring_source_series{score_name=\"s\"} 0\n"));
    scorer_change(w->scorer, &without);
    assert_false(shows(w, "dynamic_scoring_source_series"));
    pass(w, 0);
    turn_until_ended(w, 2);
    assert_false(shows(w, "dynamic_scoring_source_series"));
}

static void counts_expired_scores_from_0(void **state)
{
    struct world *w = *state;

    start(w);
    assert_true(shows(w, "\ndynamic_scoring_expired_total{score_name=\"s\"} 0\n"));
}

static void removes_its_metrics_when_freed(void **state)
{
    struct world *w = *state;
    BUF_AUTO(text, 1 << 20);

    first_round(w);
    w->scorer = scorer_free(w->scorer);
    metrics_render(w->metrics, &text);
    assert_int_equal(buf_failed(&text), 0);
    assert_int_equal(text.n, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(starts_the_first_round_at_once_with_jitter),
        T(limits_jitter_to_a_tenth_of_the_interval),
        T(keeps_the_rhythm_of_rounds),
        T(skips_the_rounds_that_a_long_one_covers),
        T(renews_scores_with_each_good_round),
        T(keeps_the_schedule_when_the_wall_clock_jumps),
        T(keeps_the_rhythm_when_the_clock_goes_back),
        T(expires_scores_while_the_machine_sleeps),
        T(starts_a_round_and_keeps_scores_on_a_changed_summary),
        T(cancels_the_running_round_on_a_change),
        T(forgets_the_series_of_a_source_that_is_gone),
        T(counts_expired_scores_from_0),
        T(removes_its_metrics_when_freed),
    };

    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
