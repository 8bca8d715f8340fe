/* When rounds happen and how long scores live, on a clock that the test moves. Rounds are real: a scoring API
 * is asked over HTTP, with no source. */
#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/error.h"
#include "exporter/score/secrets.h"
#include "exporter/score/source.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ONE_SCORE "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":1.5}]}"

static mono_ms now = {1000000};
static unix_ms wall = {1795000000000};

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return now;
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return wall;
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

struct world {
    struct fake_server *api;
    struct loop *loop;
    struct http *http;
    struct metrics *metrics;
    struct secret_files secrets;
    struct source_env source;
    struct limits limits;
    struct scorer_env env;
    struct summary summary;
    struct scorer *scorer;
    size_t left, published, withdrawn, ended;
    int64_t published_at_ms;
};

static size_t series_left(void *arg, const struct scorer *s)
{
    (void)s;
    return ((struct world *)arg)->left;
}

static void publish(void *arg, struct scorer *s, struct batch *b)
{
    struct world *w = arg;

    (void)s;
    w->published++;
    w->published_at_ms = b->at.ms;
}

static void withdraw(void *arg, struct scorer *s)
{
    (void)s;
    ((struct world *)arg)->withdrawn++;
}

static void ended(void *arg, struct scorer *s)
{
    (void)s;
    ((struct world *)arg)->ended++;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    now.ms = 1000000;
    wall.ms = 1795000000000;
    w->api = fake_new();
    fake_default(w->api, (struct fake_answer){.body = ONE_SCORE});
    assert_int_equal(loop_new(&w->loop, &fake_clock), 0);
    assert_int_equal(http_new(&w->http, w->loop, "test/1"), 0);
    assert_int_equal(metrics_new(&w->metrics, METRIC_OWNER_LOOP), 0);
    secret_files_init(&w->secrets, NULL);
    w->source = (struct source_env){w->loop, w->http, &w->secrets.secrets, 1 << 20, "c1"};
    w->limits = (struct limits){1 << 20, 0, 100, 1000, 256, 300000, 3};
    w->left = 100;
    w->env = (struct scorer_env){&w->source, w->metrics, "c1",  &w->limits, series_left,
                                 publish,    withdraw,   ended, w,          false};
    w->summary = (struct summary){
        .name = (char *)"s",
        .score_name = (char *)"s",
        .source.type = SOURCE_NONE,
        .scoring_endpoint = (char *)(uintptr_t)fake_url(w->api, "/scoring"),
        .interval_ms = 60000,
        .dimension_format = (char *)"${scoreName}",
    };
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    (void)scorer_free(w->scorer);
    (void)http_free(w->http);
    (void)metrics_free(w->metrics);
    (void)loop_free(w->loop);
    (void)fake_free(w->api);
    free(w);
    return 0;
}

static void start(struct world *w)
{
    assert_int_equal(scorer_new(&w->scorer, &w->env, &w->summary), 0);
}

/* Turns until n rounds have ended in all; real time passes only while the answer is under way. */
static void turn_until_ended(struct world *w, size_t n)
{
    for (int i = 0; i < 2000 && w->ended < n; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_int_equal(w->ended, n);
}

static void pass(struct world *w, int64_t ms)
{
    now.ms += ms;
    wall.ms += ms;
    for (int i = 0; i < 3; i++)
        assert_int_equal(loop_turn(w->loop, 0), 0);
}

static void first_round(struct world *w)
{
    start(w);
    pass(w, 2000);
    turn_until_ended(w, 1);
}

static void starts_the_first_round_at_once_with_jitter(void **state)
{
    struct world *w = *state;
    int64_t wait;

    start(w);
    wait = scorer_status(w->scorer)->next_ms - wall.ms;
    assert_in_range(wait, 0, 2000);
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
        assert_in_range(scorer_status(w->scorer)->next_ms - wall.ms, 0, 100);
        w->scorer = scorer_free(w->scorer);
    }
}

static void keeps_the_rhythm_of_rounds(void **state)
{
    struct world *w = *state;
    int64_t due, first;

    first_round(w);
    first = scorer_status(w->scorer)->next_ms;
    for (size_t i = 2; i < 6; i++) {
        due = scorer_status(w->scorer)->next_ms;
        assert_int_equal(due, first + (int64_t)(i - 2) * 60000);
        pass(w, due - wall.ms - 1);
        assert_false(scorer_status(w->scorer)->running);
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
    first = scorer_status(w->scorer)->next_ms;
    pass(w, first - wall.ms);
    assert_true(scorer_status(w->scorer)->running);
    pass(w, 100000); /* more than one interval goes by */
    turn_until_ended(w, 2);
    assert_int_equal(scorer_status(w->scorer)->next_ms, first + 120000);
}

static void retries_a_transient_failure_with_back_off(void **state)
{
    struct world *w = *state;
    static const int64_t base[] = {5000, 10000, 20000, 40000, 60000, 60000};

    fake_default(w->api, (struct fake_answer){.status = 503});
    first_round(w);
    for (size_t i = 0; i < ARRAY_SIZE(base); i++) {
        int64_t wait = scorer_status(w->scorer)->next_ms - wall.ms;
        assert_in_range(wait, 5000, base[i] + base[i] / 5 * 2);
        if (i < 3) /* later the next round by schedule may come first */
            assert_true(wait >= base[i]);
        pass(w, wait);
        turn_until_ended(w, i + 2);
    }
    assert_int_equal(scorer_status(w->scorer)->failures, ARRAY_SIZE(base) + 1);
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
            int64_t pause = scorer_status(w->scorer)->next_ms - wall.ms;
            int64_t took = (int64_t)(n * i) * 97 % (interval * 3 / 2);

            assert_in_range(pause, least, interval + interval / 5 * 2);
            pass(w, pause);
            if (scorer_status(w->scorer)->running) {
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
    assert_null(scorer_batch(w->scorer));
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
    w->summary.source = (struct summary_source){.type = SOURCE_PROMETHEUS,
                                                .endpoint = (char *)"ftp://source", /* nothing is sent */
                                                .query = (char *)"up"};
    assert_int_equal(scorer_change(w->scorer, &w->summary), 0);
    pass(w, 0);
    turn_until_ended(w, 3);
    assert_true(metric_get(w->metrics, METRIC_REQUESTS, LV("s", "success")) == 1);
    assert_true(metric_get(w->metrics, METRIC_REQUESTS, LV("s", "failure")) == 2);
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
    scorer_error_text(scorer_status(w->scorer), text, sizeof(text));
    assert_string_equal(text, want);
    pass(w, 60000);
    turn_until_ended(w, 2);
    scorer_error_text(scorer_status(w->scorer), text, sizeof(text));
    assert_string_equal(text, "");
    assert_string_equal(scorer_status(w->scorer)->url, "");
}

static void retries_a_permanent_failure_at_the_next_round(void **state)
{
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 404});
    first_round(w);
    assert_in_range(scorer_status(w->scorer)->next_ms - wall.ms, 58000, 60000);
}

static void honours_retry_after(void **state)
{
    struct world *w = *state;

    fake_default(w->api, (struct fake_answer){.status = 429, .headers = "Retry-After: 200\r\n"});
    first_round(w);
    assert_int_equal(scorer_status(w->scorer)->next_ms - wall.ms, 200000);
}

static void expires_scores_after_three_intervals(void **state)
{
    struct world *w = *state;
    size_t failed;

    first_round(w);
    fake_default(w->api, (struct fake_answer){.status = 500, .body = "{\"error\":\"no\"}"});
    pass(w, 179000);
    turn_until_ended(w, 2);
    assert_int_equal(scorer_state(w->scorer), SCORER_FAILING);
    assert_non_null(scorer_batch(w->scorer));
    assert_int_equal(w->withdrawn, 0);
    failed = w->ended;
    pass(w, 1000 + 2000);
    for (int i = 0; i < 500 && w->withdrawn == 0; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_true(w->ended > failed);
    assert_int_equal(w->withdrawn, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_STALE);
    assert_null(scorer_batch(w->scorer));
    assert_true(metric_get(w->metrics, METRIC_SERIES, LV("s")) == 0);
    assert_true(metric_get(w->metrics, METRIC_SCORE_TIMESTAMP, LV("c1", "s")) == 0);
    assert_true(metric_get(w->metrics, METRIC_EXPIRED, LV("s")) == 1);
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
    assert_null(scorer_batch(w->scorer));
    assert_true(scorer_status(w->scorer)->running);
    turn_until_ended(w, 3); /* the expiry is one */
    assert_non_null(scorer_batch(w->scorer));
    assert_int_equal(fake_requests(w->api), 2);
    assert_in_range(scorer_status(w->scorer)->next_ms - wall.ms, 1, 60000);
}

static void keeps_the_rhythm_when_the_clock_goes_back(void **state)
{
    struct world *w = *state;
    int64_t wait;

    first_round(w);
    wait = scorer_status(w->scorer)->next_ms - wall.ms;
    now.ms -= 86400000ll * 30;
    pass(w, 0); /* the time between two readings is lost */
    pass(w, wait - 1);
    assert_int_equal(w->ended, 1);
    assert_false(scorer_status(w->scorer)->running);
    pass(w, 1);
    turn_until_ended(w, 2);
    assert_int_equal(scorer_status(w->scorer)->next_ms - wall.ms, 60000);
    assert_int_equal(w->withdrawn, 0);
}

static void starts_a_round_and_keeps_scores_on_a_changed_summary(void **state)
{
    struct world *w = *state;
    struct summary other = w->summary;

    first_round(w);
    other.scoring_endpoint = (char *)(uintptr_t)fake_url(w->api, "/other");
    other.interval_ms = 30000;
    assert_int_equal(scorer_change(w->scorer, &other), 0);
    assert_non_null(scorer_batch(w->scorer));
    pass(w, 0);
    turn_until_ended(w, 2);
    assert_string_equal(fake_request(w->api, 1)->target, "/other");
    assert_int_equal(w->withdrawn, 0);
    assert_int_equal(scorer_status(w->scorer)->next_ms - wall.ms, 30000);
    assert_true(metric_get(w->metrics, METRIC_INTERVAL, LV("s")) == 30);
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
    assert_int_equal(scorer_change(w->scorer, &other), 0);
    pass(w, 0);
    turn_until_ended(w, 1);
    assert_int_equal(scorer_state(w->scorer), SCORER_OK);
}

static void removes_its_metrics_when_freed(void **state)
{
    struct world *w = *state;
    BUF_AUTO(text, 1 << 20);

    first_round(w);
    w->scorer = scorer_free(w->scorer);
    assert_int_equal(metrics_render(w->metrics, false, &text), 0);
    assert_int_equal(text.n, 0);
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
    assert_int_equal(scorer_status(w->scorer)->error, ROUND_SERIES);
    assert_string_equal(
        scorer_status(w->scorer)->reason,
        "too many series: limits.seriesPerScorer is 1; raise it in the file of --config.file");
    assert_true(metric_get(w->metrics, METRIC_LIMITS_HIT, LV("series_per_scorer", "s")) == 1);

    w->limits.series_per_scorer = 100;
    pass(w, 60000);
    turn_until_ended(w, 2);
    assert_string_equal(scorer_status(w->scorer)->reason,
                        "too many series: limits.series (1000 for all scorers) leaves 1 for this scorer; "
                        "raise it in the file of --config.file");
    assert_true(metric_get(w->metrics, METRIC_LIMITS_HIT, LV("series", "s")) == 1);

    w->limits.response_bytes = w->source.max_answer = 10;
    pass(w, 60000);
    turn_until_ended(w, 3);
    assert_non_null(
        strstr(scorer_status(w->scorer)->reason,
               "exceeds the limit of 10 bytes; raise limits.responseBytes in the file of --config.file"));
    assert_true(metric_get(w->metrics, METRIC_LIMITS_HIT, LV("response_bytes", "s")) == 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(starts_the_first_round_at_once_with_jitter),
        T(limits_jitter_to_a_tenth_of_the_interval),
        T(keeps_the_rhythm_of_rounds),
        T(skips_the_rounds_that_a_long_one_covers),
        T(retries_a_transient_failure_with_back_off),
        T(is_not_asked_more_often_while_it_fails),
        T(is_stale_only_if_it_ever_scored),
        T(counts_each_round_as_a_success_or_a_failure),
        T(names_the_stage_and_the_url_of_a_failure),
        T(retries_a_permanent_failure_at_the_next_round),
        T(honours_retry_after),
        T(expires_scores_after_three_intervals),
        T(renews_scores_with_each_good_round),
        T(keeps_the_schedule_when_the_wall_clock_jumps),
        T(expires_scores_while_the_machine_sleeps),
        T(keeps_the_rhythm_when_the_clock_goes_back),
        T(starts_a_round_and_keeps_scores_on_a_changed_summary),
        T(cancels_the_running_round_on_a_change),
        T(removes_its_metrics_when_freed),
        T(names_the_limit_and_its_number),
    };

    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
