/* What the hub holds is right, also while no round ends, after an answer was lost, and for items that an
 * earlier process has left there. */
#include "controller/kube/condition.h"
#include "controller/kube/list_error.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/time.h"
#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "exporter/score/scorer_state.h"
#include "test/unit/placement/writes_world.h"

#include <time.h>

/* `"out" sets -100` */
#define OUT "[{\"name\":\"out\",\"scoreName\":\"*\",\"set\":-100}]"

static void adjust(struct world *w, const char *list)
{
    struct adjustments a = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    assert_int_equal(adjustments_parse(&a, str_of(list), &why), 0);
    placement_adjust(w->placement, &a);
    adjustments_done(&a);
}

/* How often the status was written; *ret_last is the index of the last request that did. */
static size_t count_writes(struct world *w, size_t *ret_last)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        if (strncmp(fake_kube_asked(w->f, i), "PATCH", 5) != 0)
            continue;
        *ret_last = i;
        n++;
    }
    return n;
}

/* The index of the nth write of the status, which is the last. Watches may ask in between. */
static size_t nth_write(struct world *w, size_t n)
{
    size_t last = 0;

    for (int i = 0; i < 100 && count_writes(w, &last) < n; i++)
        fake_kube_settle(w->f);
    fake_kube_idle(w->f);
    assert_int_equal(count_writes(w, &last), n);
    return last;
}

static json_t *condition_of(json_t *body, const char *type)
{
    json_t *c;
    size_t i;

    json_array_foreach(kube_list(body, "status", "conditions", NULL), i, c)
    {
        if (strcmp(kube_str(c, "type", NULL), type) == 0)
            return c;
    }
    return NULL;
}

/* text: NULL if the condition is absent. */
static void assert_condition(struct world *w, size_t i, const char *type, const char *reason,
                             const char *text)
{
    json_t *o = body_of(w, i), *c = condition_of(o, type);

    if (text) {
        assert_non_null(c);
        assert_string_equal(kube_str(c, "reason", NULL), reason);
        assert_string_equal(kube_str(c, "message", NULL), text);
    } else {
        assert_null(c);
    }
    json_decref(o);
}

/* ---- No round ends ---- */

/* A scoring API that asks to be left alone for an hour. Request 2, and the first write. */
static void fall_back_for_an_hour(struct world *w)
{
    begin(w, "");
    fake_push(w->f->server,
              (struct fake_answer){.status = 503, .headers = "Retry-After: 3600\r\n", .only_path = "/s"});
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_status(w, nth_write(w, 1), -9, until(w, 180000), "False");
}

/* The fallback is valid for all of it, and written once in half a validity. */
static void renews_a_fallback_between_rounds(void **state)
{
    struct world *w = *state;

    fall_back_for_an_hour(w);
    for (size_t i = 2; i < 5; i++) {
        fake_kube_advance(w->f, 80000);
        (void)nth_write(w, i - 1);
        push(w, SCORES "/my-score", 200, "{}");
        fake_kube_advance(w->f, 20000);
        assert_status(w, nth_write(w, i), -9, until(w, 180000), "False");
    }
}

/* A hub that refuses the renewal is asked again by the back-off of writes alone. */
static void renews_a_fallback_no_more_often_while_the_hub_refuses(void **state)
{
    struct world *w = *state;
    size_t last, n;

    fall_back_for_an_hour(w);
    for (int i = 0; i < 100; i++)
        push(w, SCORES "/my-score", 422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"code\":422}");
    for (int i = 0; i < 28; i++) { /* then the watch, which is silent, is checked */
        fake_kube_advance(w->f, 5000);
        fake_kube_settle(w->f);
    }
    n = count_writes(w, &last);
    assert_true(n > 3 && n < 11);
}

/* The timeout may be longer than scores are valid. */
static void says_that_scores_have_expired_while_a_round_hangs(void **state)
{
    struct world *w = *state;
    size_t i;

    w->limits.round_ms = 600000;
    begin(w, "");
    push_scores(w, 41.9);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", timeout: 9m");
    round_to(w, 2000);
    (void)nth_write(w, 1);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 60000);
    fake_kube_requests(w->f, 6);
    fake_kube_advance(w->f, 125000);
    i = nth_write(w, 2);
    assert_condition(
        w, i, "Scored", "Expired",
        "the scores of the last round have expired, and no round has ended since; there are no scores");
    assert_string_equal(placement_why_no_items(w->placement, "My_Score"), "");
    assert_int_equal(scorer_state(w->scorer), SCORER_STALE);
}

/* ---- A clock that is set ---- */

static const char *http_date(struct world *w, int64_t ahead_ms)
{
    time_t s = (time_t)((w->f->clock.wall.ms - ahead_ms) / 1000);
    char text[40];
    struct tm tm;

    (void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&s, &tm));
    return fake_kube_text(w->f, "Date: %s\r\n", text);
}

/* As the agent's report has it. */
static int64_t last_success_by_the_hub(const struct world *w)
{
    return w->scorer->status.succeeded_ms + placement_clock_set_by_ms(w->placement, "My_Score") +
           kube_clock_offset_ms(w->f->kube);
}

static void assert_near(int64_t a_ms, int64_t b_ms)
{
    assert_true(a_ms - b_ms < KUBE_CLOCK_STEP_MS && b_ms - a_ms < KUBE_CLOCK_STEP_MS);
}

static int64_t scored_since(struct world *w, size_t i)
{
    json_auto_t *o = body_of(w, i);
    const json_t *scored = kube_condition(kube_get(o, "status", NULL), "Scored");

    return kube_time_parse(cstr(kube_str(scored, "lastTransitionTime", NULL))).ms;
}

/* One that was an hour ahead: when it is set right, the last scores are valid for no longer, and the time of
 * the last success stays. */
static void ends_scores_in_time_when_its_clock_is_set(void **state)
{
    enum { AHEAD_MS = 3600 * 1000 };
    struct world *w = *state;
    const char *end;
    int64_t succeeded_ms;

    begin(w, "");
    w->f->clock.wall.ms += AHEAD_MS;
    push_scores(w, 41.9);
    fake_push(w->f->server, (struct fake_answer){.status = 201,
                                                 .headers = http_date(w, AHEAD_MS - 2000),
                                                 .body = "{}",
                                                 .only_path = SCORES});
    fake_push(w->f->server, (struct fake_answer){
                                .headers = http_date(w, AHEAD_MS - 2000), .body = "{}", .only_path = SCORES});
    add_scorer(w, "");
    round_to(w, 2000);
    end = until(w, 180000 - AHEAD_MS);
    assert_status(w, nth_write(w, 1), 41, end, "True");
    assert_near(scored_since(w, nth_write(w, 1)), w->f->clock.wall.ms - AHEAD_MS);
    succeeded_ms = last_success_by_the_hub(w);
    assert_near(succeeded_ms, w->f->clock.wall.ms - AHEAD_MS);
    w->f->clock.wall.ms -= AHEAD_MS;
    assert_int_equal(last_success_by_the_hub(w), succeeded_ms);
    fake_push(w->f->server,
              (struct fake_answer){.headers = http_date(w, 0), .body = "{}", .only_path = SCORES});
    push(w, SCORES, 200, "{}");
    adjust(w, OUT);
    assert_status(w, nth_write(w, 3), -100, end, "True"); /* the third says that the clock is right */
    assert_near(last_success_by_the_hub(w), succeeded_ms);
    push(w, SCORES, 200, "{}");
    adjust(w, "");
    assert_status(w, nth_write(w, 4), 41, end, "True");
}

/* ---- An answer that never came ---- */

/* The hub may have what was sent: that the wanted state is again the one before it, is no reason to leave it
 * there. */
static void writes_again_after_a_lost_answer(void **state)
{
    struct world *w = *state;
    const char *end;

    begin(w, "");
    first_write(w);
    end = until(w, 180000);
    fake_push(w->f->server, (struct fake_answer){.status = 504,
                                                 .body = "{\"kind\":\"Status\",\"code\":504}",
                                                 .held = true,
                                                 .only_path = SCORES});
    adjust(w, OUT);
    assert_status(w, nth_write(w, 2), -100, end, "True");
    adjust(w, "");
    push(w, SCORES, 200, "{}");
    fake_release(w->f->server);
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 10000);
    assert_status(w, nth_write(w, 3), 41, end, "True");
    fake_kube_advance(w->f, 10000);
    (void)nth_write(w, 3);
}

/* ---- A scorer that is removed, and added again ---- */

/* Perhaps with another source: what the removed one said is gone, also where its object still is. */
static void gives_a_scorer_added_again_no_scores_of_the_removed_one(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    fake_push(w->f->server, (struct fake_answer){.body = "{}", .held = true, .only_path = SCORES});
    placement_sync(w->placement, &(struct summaries){0}, 3);
    assert_asked(w, 5, "DELETE " SCORES "/my-score");
    placement_sync(w->placement, &w->summaries, 3);
    fake_release(w->f->server);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    push_scores(w, 7);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_status(w, nth_write(w, 2), 7, until(w, 180000), "True");
}

/* ---- Items that an earlier process has left ---- */

#define SLOW "{\"name\":\"slow\",\"scoreName\":\"*\",\"add\":-30}"

/* adjusted: the condition's message; NULL for none. The first round fails. Requests 2 and 3. */
static void find(struct world *w, const char *valid_until, const char *adjusted, const char *adjustments)
{
    const char *condition = "", *status;

    if (adjusted)
        condition = fake_kube_text(
            w->f, "{\"type\":\"Adjusted\",\"status\":\"True\",\"reason\":\"Adjusted\",\"message\":\"%s\"}",
            adjusted);
    status = fake_kube_text(
        w->f, "{\"scores\":[{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\",\"conditions\":[%s]}",
        valid_until, condition);
    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", status));
    adjust(w, adjustments);
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    add_scorer(w, "");
    round_to(w, 2000);
    (void)nth_write(w, 1);
}

static void adjusts_what_it_found(void **state)
{
    struct world *w = *state;
    const char *end = until(w, 100000);

    find(w, end, NULL, "");
    assert_status(w, 3, 7, end, "False");
    assert_condition(w, 3, "Adjusted", "", NULL);
    push(w, SCORES, 200, "{}");
    adjust(w, "[" SLOW "]");
    assert_status(w, nth_write(w, 2), -23, end, "False");
    assert_condition(w, 4, "Adjusted", "Adjusted", "\"slow\" adds -30");
    push(w, SCORES, 200, "{}");
    adjust(w, OUT);
    assert_status(w, nth_write(w, 3), -100, end, "False");
    push(w, SCORES, 200, "{}");
    adjust(w, "");
    assert_status(w, nth_write(w, 4), 7, end, "False");
    assert_condition(w, 6, "Adjusted", "", NULL);
}

static void adjusts_nothing_twice(void **state)
{
    struct world *w = *state;
    const char *end = until(w, 100000);

    find(w, end, "\\\"slow\\\" adds -30", "[" SLOW "]");
    assert_status(w, 3, 7, end, "False");
    assert_condition(w, 3, "Adjusted", "Adjusted", "\"slow\" adds -30");
    push(w, SCORES, 200, "{}");
    adjust(w, OUT);
    assert_status(w, nth_write(w, 2), -100, end, "False");
    assert_condition(w, 4, "Adjusted", "Adjusted", "\"out\" sets -100");
    push(w, SCORES, 200, "{}");
    adjust(w, ""); /* what it was before is not known */
    assert_status(w, nth_write(w, 3), 7, end, "False");
    assert_condition(w, 5, "Adjusted", "Adjusted", "\"slow\" adds -30");
}

static void writes_found_items_again_when_the_object_vanishes(void **state)
{
    struct world *w = *state;
    const char *end = until(w, 100000);

    find(w, end, NULL, "");
    push(w, SCORES, 404,
         "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"details\":{\"name\":\"my-score\"}}");
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    adjust(w, OUT);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    adjust(w, "");
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 3000);
    assert_status(w, nth_write(w, 3), 7, end, "False");
}

/* An agent that started while the scorer was suspended. The scores found end, also while the first round
 * hangs. */
static void ends_what_it_found_before_the_first_round_has_ended(void **state)
{
    struct world *w = *state;
    const char *end = until(w, 100000), *status;
    size_t i;

    status = fake_kube_text(w->f, "{\"scores\":[{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\"}", end);
    w->limits.round_ms = 600000;
    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", status));
    push(w, SCORES "/my-score", 200, "{}");
    add_scorer(w, ", fallbackScore: -9, timeout: 9m, since: '2026-11-21T06:00:00Z'");
    assert_status(w, nth_write(w, 1), 7, end, "False");
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    change_scorer(w, ", fallbackScore: -9, timeout: 9m");
    fake_kube_advance(w->f, 2000);
    (void)nth_write(w, 1);
    push(w, SCORES "/my-score", 200, "{}");
    fake_kube_advance(w->f, 98000);
    i = nth_write(w, 2);
    assert_status(w, i, -9, until(w, 180000), "False");
    assert_condition(
        w, i, "Scored", "Expired",
        "the scores of the last round have expired, and no round has ended since; fallbackScore is used");
}

/* "my-score" was the object of a score of another name, before the scorer was renamed while no agent ran. */
static void takes_over_no_items_of_another_score(void **state)
{
    struct world *w = *state;
    json_t *o;
    size_t i;

    begin(w, fake_kube_text(
                 w->f,
                 "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"my-score\",\"resourceVersion\":\"5\","
                 "\"labels\":{\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},"
                 "\"annotations\":{\"dynamic-scoring.open-cluster-management.io/owner\":\"ns/addon\","
                 "\"dynamic-scoring.open-cluster-management.io/score-name\":\"my-score\"}},"
                 "\"status\":{\"scores\":[{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\"}}",
                 until(w, 100000)));
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    i = nth_write(w, 2);
    assert_status(w, i - 1, -9, until(w, 180000), "False");
    assert_asked(w, i, "PATCH " SCORES "/my-score");
    o = body_of(w, i);
    assert_string_equal(kube_annotation(o, "dynamic-scoring.open-cluster-management.io/score-name"),
                        "My_Score");
    json_decref(o);
}

/* Written by a wrong clock, or by hand. */
static void ends_what_it_found_no_later_than_its_own_scores(void **state)
{
    struct world *w = *state;
    const char *end = until(w, 180000);

    find(w, "2126-01-01T00:00:00Z", NULL, "");
    assert_status(w, 3, 7, end, "False");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renews_a_fallback_between_rounds),
        TEST(renews_a_fallback_no_more_often_while_the_hub_refuses),
        TEST(says_that_scores_have_expired_while_a_round_hangs),
        TEST(ends_scores_in_time_when_its_clock_is_set),
        TEST(writes_again_after_a_lost_answer),
        TEST(gives_a_scorer_added_again_no_scores_of_the_removed_one),
        TEST(adjusts_what_it_found),
        TEST(adjusts_nothing_twice),
        TEST(writes_found_items_again_when_the_object_vanishes),
        TEST(ends_what_it_found_before_the_first_round_has_ended),
        TEST(takes_over_no_items_of_another_score),
        TEST(ends_what_it_found_no_later_than_its_own_scores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
