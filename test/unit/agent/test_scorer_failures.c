/* What a failed round leads to: the next one, the metrics, the status. */
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "test/metric_value.h"
#include "test/unit/agent/scorer_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void retries_a_transient_failure_with_back_off(void **state)
{
    struct world *w = *state;
    static const int64_t base[] = {5000, 10000, 20000, 40000, 60000, 60000};

    fake_default(w->api, (struct fake_answer){.status = 503});
    first_round(w);
    for (size_t i = 0; i < ARRAY_SIZE(base); i++) {
        int64_t wait = w->scorer->status.next_ms - wall.ms;
        assert_in_range(wait, 5000, base[i] + base[i] / 5 * 2);
        if (i < 3) /* later the next round by schedule may come first */
            assert_true(wait >= base[i]);
        pass(w, wait);
        turn_until_ended(w, i + 2);
    }
    assert_int_equal(w->scorer->status.failures, ARRAY_SIZE(base) + 1);
}

/* For every interval, number of failures, duration of the rounds and jitter: a failure is followed by a pause
 * of min(5 s, interval), and rounds never start more often than while the scorer is well. */
static void is_not_asked_more_often_while_it_fails(void **state)
{
    static const int64_t intervals[] = {1000, 2000, 4900, 5000, 5100, 7000, 9000, 30000, 300000};
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 503});
    for (size_t i = 0; i < ARRAY_SIZE(intervals) * 4; i++) {
        int64_t interval = intervals[i / 4], least = interval < 5000 ? interval : 5000;

        w->summary.interval_ms = interval;
        w->ended = 0;
        first_round(w);
        for (size_t n = 2; n < 12; n++) {
            int64_t pause = w->scorer->status.next_ms - wall.ms;
            int64_t took = (int64_t)(n * i) * 97 % (interval * 3 / 2);

            assert_in_range(pause, least, interval + interval / 5 * 2);
            pass(w, pause);
            if (w->scorer->status.running) {
                now.ms += took;
                wall.ms += took;
            }
            turn_until_ended(w, n);
        }
        w->scorer = scorer_free(w->scorer);
    }
}

static void is_stale_only_if_it_ever_scored(void **state)
{
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 503});
    first_round(w);
    assert_int_equal(scorer_state(w->scorer), SCORER_FAILING);
    assert_null(w->scorer->batch);
}

static void counts_each_round_as_a_success_or_a_failure(void **state)
{
    struct world *w = *state;

    fake_push(w->api, (struct fake_answer){.body = "{\"results\":[]}"});
    fake_push(w->api, (struct fake_answer){.body = "not JSON"});
    first_round(w);
    pass(w, 60000);
    turn_until_ended(w, 2);
    w->source.max_answer = 1 << 20;
    w->summary.sources = &(struct summary_source){.type = SOURCE_PROMETHEUS,
                                                  .endpoint = (char *)"ftp://source", /* nothing is sent */
                                                  .query = (char *)"up"};
    w->summary.n_sources = 1;
    scorer_change(w->scorer, &w->summary);
    pass(w, 0);
    turn_until_ended(w, 3);
    assert_true(
        metric_value(w->metrics, "dynamic_scoring_requests_total{score_name=\"s\",status=\"success\"}") == 1);
    assert_true(
        metric_value(w->metrics, "dynamic_scoring_requests_total{score_name=\"s\",status=\"failure\"}") == 2);
    /* The earlier kind of failure is over, though its series stays. */
    assert_true(
        metric_value(
            w->metrics,
            "dynamic_scoring_consecutive_failures{class=\"json\",score_name=\"s\",stage=\"scoring\"}") == 0);
    assert_true(
        metric_value(
            w->metrics,
            "dynamic_scoring_consecutive_failures{class=\"url\",score_name=\"s\",stage=\"source\"}") == 2);
}

static void names_the_stage_and_the_url_of_a_failure(void **state)
{
    struct world *w = *state;
    char url[128], want[256], text[256];
    const char *host = strstr(w->summary.scoring_endpoint, "//") + 2;

    (void)snprintf(url, sizeof(url), "http://me:s3cret@%s", host);
    w->summary.scoring_endpoint = url;
    fake_push(w->api, (struct fake_answer){.status = 503});
    first_round(w);
    (void)snprintf(want, sizeof(want), "scoring failed, http://%s: HTTP 503 Service Unavailable", host);
    scorer_error_text(w->scorer, text, sizeof(text));
    assert_string_equal(text, want);
    pass(w, 60000);
    turn_until_ended(w, 2);
    scorer_error_text(w->scorer, text, sizeof(text));
    assert_string_equal(text, "");
    assert_string_equal(w->scorer->status.url, "");
}

static void retries_a_permanent_failure_at_the_next_round(void **state)
{
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 404});
    first_round(w);
    assert_in_range(w->scorer->status.next_ms - wall.ms, 58000, 60000);
}

static void honours_retry_after(void **state)
{
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 429, .headers = "Retry-After: 200\r\n"});
    first_round(w);
    assert_int_equal(w->scorer->status.next_ms - wall.ms, 200000);
}

static void expires_scores_after_three_intervals(void **state)
{
    struct world *w = *state;

    first_round(w);
    fake_default(w->api, (struct fake_answer){.status = 500, .body = "{\"error\":\"no\"}"});
    pass(w, 179000);
    turn_until_ended(w, 2);
    assert_int_equal(scorer_state(w->scorer), SCORER_FAILING);
    assert_non_null(w->scorer->batch);
    assert_int_equal(w->withdrawn, 0);
    pass(w, 1000 + 2000);
    for (int i = 0; i < 500 && w->withdrawn == 0; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_int_equal(w->withdrawn, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_STALE);
    assert_null(w->scorer->batch);
    assert_true(metric_value(w->metrics, "dynamic_scoring_series{score_name=\"s\"}") == 0);
    assert_true(metric_value(w->metrics,
                             "dynamic_score_timestamp_seconds{ds_cluster=\"c1\",ds_score_name=\"s\"}") == 0);
    assert_true(metric_value(w->metrics, "dynamic_scoring_expired_total{score_name=\"s\"}") == 1);
}

/* Each change begins a round, which could renew the scores, and cancels the one before. */
static void expires_scores_while_changes_cut_rounds_short(void **state)
{
    struct world *w = *state;

    first_round(w);
    fake_default(w->api, (struct fake_answer){.mode = FAKE_HANG});
    for (int64_t ms = 0; ms < 4 * 60000; ms += 40000) {
        scorer_change(w->scorer, &w->summary);
        pass(w, 40000);
    }
    assert_int_equal(w->withdrawn, 1);
    assert_int_equal(w->ended, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_STALE);
}

static void says_why_there_are_no_scores_while_a_round_hangs(void **state)
{
    struct world *w = *state;
    char text[256];

    first_round(w);
    assert_null(scorer_stale_reason(w->scorer));
    fake_default(w->api, (struct fake_answer){.body = ONE_SCORE, .delay_ms = 300});
    pass(w, 60000);
    assert_true(w->scorer->status.running);
    pass(w, 120000);
    assert_int_equal(w->withdrawn, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_STALE);
    scorer_error_text(w->scorer, text, sizeof(text));
    assert_string_equal(text, "the scores of the last round have expired, and no round has ended since");
    assert_string_equal(scorer_stale_reason(w->scorer), text);
}

static void names_the_limit_and_its_number(void **state)
{
    struct world *w = *state;

    w->limits.series_per_scorer = 1;
    w->left = 1;
    fake_default(w->api,
                 (struct fake_answer){.body = "{\"results\":[{\"metric\":{\"node\":\"a\"},\"score\":1},"
                                              "{\"metric\":{\"node\":\"b\"},\"score\":1}]}"});
    first_round(w);
    assert_int_equal(w->scorer->status.last.error, ROUND_SERIES);
    assert_string_equal(
        w->scorer->status.last.reason,
        "too many series: limits.seriesPerScorer is 1; raise it in the file of --config.file");
    assert_true(
        metric_value(w->metrics,
                     "dynamic_scoring_limit_hits_total{limit=\"series_per_scorer\",score_name=\"s\"}") == 1);

    w->limits.series_per_scorer = 100;
    pass(w, 60000);
    turn_until_ended(w, 2);
    assert_string_equal(w->scorer->status.last.reason,
                        "too many series: limits.series (1000 for all scorers) leaves 1 for this scorer; "
                        "raise it in the file of --config.file");
    assert_true(
        metric_value(w->metrics, "dynamic_scoring_limit_hits_total{limit=\"series\",score_name=\"s\"}") == 1);

    w->limits.response_bytes = w->source.max_answer = 10;
    pass(w, 60000);
    turn_until_ended(w, 3);
    assert_non_null(
        strstr(w->scorer->status.last.reason,
               "exceeds the limit of 10 bytes; raise limits.responseBytes in the file of --config.file"));
    assert_true(metric_value(w->metrics,
                             "dynamic_scoring_limit_hits_total{limit=\"response_bytes\",score_name=\"s\"}") ==
                1);
}

/* That of the headers cannot be set, and happens to have the same number. */
static void names_no_setting_for_the_limit_of_headers(void **state)
{
    static char headers[300 << 10];
    struct world *w = *state;

    for (size_t i = 0; i + 1000 < sizeof(headers); i += 1000) {
        memset(headers + i, 'x', 1000);
        memcpy(headers + i, "X: ", 3);
        memcpy(headers + i + 998, "\r\n", 2);
    }
    w->limits.response_bytes = w->source.max_answer = 256 << 10;
    fake_default(w->api, (struct fake_answer){.headers = headers, .body = "{}"});
    first_round(w);
    assert_int_equal(w->scorer->status.last.error, ROUND_TOO_LARGE);
    assert_string_equal(w->scorer->status.last.reason, "response headers exceed the limit of 262144 bytes");
    assert_true(metric_value(w->metrics,
                             "dynamic_scoring_limit_hits_total{limit=\"response_bytes\",score_name=\"s\"}") !=
                1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(retries_a_transient_failure_with_back_off),
        T(is_not_asked_more_often_while_it_fails),
        T(is_stale_only_if_it_ever_scored),
        T(counts_each_round_as_a_success_or_a_failure),
        T(names_the_stage_and_the_url_of_a_failure),
        T(retries_a_permanent_failure_at_the_next_round),
        T(honours_retry_after),
        T(expires_scores_after_three_intervals),
        T(expires_scores_while_changes_cut_rounds_short),
        T(says_why_there_are_no_scores_while_a_round_hangs),
        T(names_the_limit_and_its_number),
        T(names_no_setting_for_the_limit_of_headers),
    };

    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
