/* The requests to the hub, step by step. */
#include "controller/kube/condition.h"
#include "controller/kube/list_error.h"
#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "test/metric_value.h"
#include "test/unit/placement/placement_world.h"
#include "test/unit/placement/writes_world.h"

#define CONFLICT "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}"

static void creates_an_object_then_writes_its_status(void **state)
{
    struct world *w = *state;
    json_t *o;

    begin(w, "");
    first_write(w);
    o = body_of(w, 3);
    assert_string_equal(kube_name(o), "my-score");
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    assert_string_equal(kube_annotation(o, "dynamic-scoring.open-cluster-management.io/owner"), "ns/addon");
    assert_null(kube_get(o, "status", NULL)); /* it would be dropped */
    json_decref(o);
    assert_status(w, 4, 41, until(w, 180000), "True");
    assert_int_equal(placement_behind(w->placement), 0);
    assert_string_equal(placement_error(w->placement, &w->scorer->summary), "");
}

static void writes_nothing_until_half_of_the_validity_has_passed(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 41.2);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    push_scores(w, 41);
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    assert_status(w, 7, 41, until(w, 180000), "True");
}

/* Rounds near to what the hub has only prolong its validity, and what is written then is the newest. A
 * change of the state is written at once. */
static void holds_back_what_is_within_the_tolerance(void **state)
{
    struct world *w = *state;

    begin(w, "");
    push_scores(w, 41.9);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", scoreTolerance: 5");
    round_to(w, 2000);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);

    push_scores(w, 46);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    assert_int_equal(placement_behind(w->placement), 0);

    push_scores(w, 38); /* half of the validity has passed */
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    assert_status(w, 7, 38, until(w, 180000), "True");
    fake_kube_idle(w->f);

    push_scores(w, 44); /* 3 from the first, but 6 from the last */
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 9, "PATCH " SCORES "/my-score/status");
    assert_status(w, 9, 44, until(w, 180000), "True");
}

/* As request i writes it. */
static bool condition_is(struct world *w, size_t i, const char *type, const char *status)
{
    json_t *o;
    bool is;

    assert_asked(w, i, "PATCH " SCORES "/my-score/status");
    o = body_of(w, i);
    is = kube_condition_is(kube_condition(kube_get(o, "status", NULL), type), status);

    json_decref(o);
    return is;
}

/* A condition about the items says what the object has, so noise around a bound is no reason to write. What
 * is written has the items and the condition of one round. */
static void hold_back_around(struct world *w, const char *type, double without, double with)
{
    begin(w, "");
    push_scores(w, without);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", scoreTolerance: 5");
    round_to(w, 2000);
    assert_true(condition_is(w, 4, type, "False"));
    fake_kube_idle(w->f);

    push_scores(w, with);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    assert_int_equal(placement_behind(w->placement), 0);

    push_scores(w, with); /* half of the validity has passed */
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_true(condition_is(w, 7, type, "True"));
}

static void holds_back_noise_around_0(void **state)
{
    hold_back_around(*state, "Rounded", -0.5, 0.5);
}

static void holds_back_noise_around_the_highest_value(void **state)
{
    hold_back_around(*state, "Clamped", 99, 101);
}

static void writes_the_newest_state_after_the_write_under_way(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    fake_push(w->f->server, (struct fake_answer){.body = "{}", .delay_ms = 500, .only_path = SCORES});
    push_scores(w, 1);
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    push_scores(w, 2);
    push_scores(w, 3);
    round_to(w, 60000); /* both while the first write waits for its answer */
    round_to(w, 60000);
    assert_int_equal(fake_requests(w->f->server), 9);
    push(w, SCORES, 200, "{}");
    assert_asked(w, 9, "PATCH " SCORES "/my-score/status");
    assert_status(w, 9, 3, until(w, 180000), "True");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 10);
}

static void retries_a_failed_write_with_the_newest_state(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 1);
    push(w, SCORES, 500, "{\"kind\":\"Status\",\"message\":\"etcdserver: leader changed\",\"code\":500}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_error(w->placement, &w->scorer->summary), "leader changed"));
    assert_int_equal(placement_behind(w->placement), 1);
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_string_equal(placement_error(w->placement, &w->scorer->summary), "");
    assert_int_equal(placement_behind(w->placement), 0);
}

static void creates_a_vanished_object_again(void **state)
{
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    push_scores(w, 1);
    push(w, SCORES, 404,
         "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"details\":{\"name\":\"my-score\"}}");
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 7, "POST " SCORES);
    assert_asked(w, 8, "PATCH " SCORES "/my-score/status");
}

static void assert_patched_version(struct world *w, size_t i, const char *version)
{
    json_t *o;

    assert_asked(w, i, "PATCH " SCORES "/my-score/status");
    o = body_of(w, i);
    assert_string_equal(cstr(kube_str(o, "metadata", "resourceVersion", NULL)), version);
    json_decref(o);
}

/* Another program has deleted the object and made its own of that name, and no watch has shown it yet. The
 * API server refuses what was meant for the version before. */
static void writes_no_status_into_an_object_made_anew(void **state)
{
    struct world *w = *state;

    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", "{}"));
    push_scores(w, 41.9);
    push(w, SCORES, 409, CONFLICT);
    push(w, SCORES, 200,
         "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"my-score\",\"resourceVersion\":\"12\",\"labels\":{"
         "\"app.kubernetes.io/managed-by\":\"Helm\"}}}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_patched_version(w, 3, "5");
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 5);
    assert_non_null(strstr(placement_error(w->placement, &w->scorer->summary),
                           "c1/my-score was created by Helm and is left alone"));
}

/* It is still ours, and a writer who never rests keeps changing it: one look at it, then a back-off. */
static void writes_the_status_of_an_object_that_others_have_changed(void **state)
{
    struct world *w = *state;

    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", "{}"));
    push_scores(w, 41.9);
    push(w, SCORES, 409, CONFLICT);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED_AT("7"), "my-score", "ns/addon", "{}"));
    push(w, SCORES, 409, CONFLICT);
    add_scorer(w, "");
    round_to(w, 2000);
    assert_patched_version(w, 3, "5");
    assert_asked(w, 4, "GET " SCORES "/my-score");
    assert_patched_version(w, 5, "7");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6);
    assert_int_equal(placement_behind(w->placement), 1);

    push(w, SCORES, 409, CONFLICT);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED_AT("9"), "my-score", "ns/addon", "{}"));
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED_AT("10"), "my-score", "ns/addon", "{}"));
    fake_kube_advance(w->f, 3000);
    assert_patched_version(w, 8, "9");
    fake_kube_idle(w->f);
    assert_int_equal(placement_behind(w->placement), 0);
    assert_string_equal(placement_error(w->placement, &w->scorer->summary), "");
}

/* Not before the scorers are known. */
static void deletes_objects_without_a_scorer(void **state)
{
    struct world *w = *state;

    begin(w, fake_kube_text(w->f, OWNED "," OWNED, "old", "ns/addon", "{}", "theirs", "ns/other", "{}"));
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 2);
    push(w, SCORES, 200, "{}");
    placement_sync(w->placement, &(struct summaries){0}, 3);
    assert_asked(w, 2, "DELETE " SCORES "/old");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 3);
}

/* It says where its scores go, and no longer that the hub has them. */
static void deletes_the_object_of_a_scorer_that_has_another_destination(void **state)
{
    static const char items[] = "dynamic_scoring_placement_items{score_name=\"My_Score\"}";
    static const char last[] =
        "dynamic_scoring_placement_last_write_timestamp_seconds{score_name=\"My_Score\"}";
    struct world *w = *state;

    begin(w, "");
    first_write(w);
    assert_true(metric_value(w->metrics, items) == 1);
    assert_true(metric_value(w->metrics, last) > 0);
    push(w, SCORES, 200, "{}");
    change_scorer(w, ", scoreDestination: None");
    assert_asked(w, 5, "DELETE " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_true(metric_value(w->metrics, items) == 0);
    assert_true(metric_value(w->metrics, last) == 0);
    assert_int_equal(placement_behind(w->placement), 0);
}

/* A create whose answer said that it failed, and whose scorer is gone when that comes: the object is looked
 * for. */
static void lose_a_create(struct world *w, const char *owner, bool is_deleted)
{
    begin(w, "");
    push_scores(w, 41.9);
    push(w, SCORES, 504, "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 3, "POST " SCORES);
    fake_kube_idle(w->f);
    placement_sync(w->placement, &(struct summaries){0}, 3);
    assert_int_equal(placement_behind(w->placement), 1);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", owner, "{}"));
    if (is_deleted)
        push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    if (is_deleted)
        assert_asked(w, 5, "DELETE " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), is_deleted ? 6 : 5);
    assert_int_equal(placement_behind(w->placement), 0);
}

static void deletes_what_a_create_left_behind(void **state)
{
    lose_a_create(*state, "ns/addon", true);
}

static void leaves_what_another_has_created_meanwhile(void **state)
{
    lose_a_create(*state, "ns/other", false);
}

/* The object exists already, and the scorer is removed before a GET has told whose it is. */
static void deletes_what_an_earlier_life_left_behind(void **state)
{
    struct world *w = *state;

    begin(w, "");
    push_scores(w, 41.9);
    push(w, SCORES, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    push(w, SCORES, 504, "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    placement_sync(w->placement, &(struct summaries){0}, 3);
    assert_int_equal(placement_behind(w->placement), 1);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", "{}"));
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 6, "DELETE " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_int_equal(placement_behind(w->placement), 0);
}

/* ---- An add-on that moves from namespace "before" to "ns" ---- */

/* The other agent has begun to lead: the answer to a write shows its name. */
static void lose_to_the_other_namespace(struct world *w)
{
    begin(w, "");
    first_write(w);
    push_scores(w, 1);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "after/addon", "{}"));
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_non_null(strstr(placement_error(w->placement, &w->scorer->summary),
                           "c1/my-score has been taken over by after/addon"));
    push_scores(w, 2);
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
}

static void neither_writes_nor_deletes_what_was_taken_over(void **state)
{
    struct world *w = *state;

    lose_to_the_other_namespace(w);
    placement_sync(w->placement, &(struct summaries){0}, 3);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
}

/* The delete comes too late, and its precondition fails. */
static void deletes_no_newer_version_of_another_owner(void **state)
{
    struct world *w = *state;

    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", "{}"));
    push(w, SCORES, 409, CONFLICT);
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "after/addon", "{}"));
    placement_sync(w->placement, &(struct summaries){0}, 3);
    assert_asked(w, 2, "DELETE " SCORES "/my-score");
    assert_asked(w, 3, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 4);
    assert_int_equal(placement_behind(w->placement), 0);
}

/* Five minutes after it was lost, the object is looked at again. */
static void look_again(struct world *w, const char *status)
{
    lose_to_the_other_namespace(w);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "after/addon", status));
    push(w, SCORES, 200, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", "{}"));
    fake_kube_advance(w->f, 240000);
    assert_asked(w, 9, "POST " SCORES);
    assert_asked(w, 10, "GET " SCORES "/my-score");
    fake_kube_idle(w->f);
}

static void leaves_valid_scores_to_whoever_took_them_over(void **state)
{
    struct world *w = *state;

    look_again(w, "{\"validUntil\":\"2126-01-01T00:00:00Z\"}");
    assert_int_equal(fake_requests(w->f->server), 11);
}

/* An old agent that restarts in the middle of the move, and then ends. */
static void takes_back_scores_that_have_expired(void **state)
{
    struct world *w = *state;

    look_again(w, "{\"validUntil\":\"2016-01-01T00:00:00Z\"}");
    assert_asked(w, 11, "PATCH " SCORES "/my-score");
}

static void keeps_valid_scores_when_the_first_round_after_a_restart_fails(void **state)
{
    struct world *w = *state;
    const char *valid =
        fake_kube_text(w->f,
                       "{\"scores\":[{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\",\"conditions\":["
                       "{\"type\":\"Scored\",\"status\":\"False\",\"lastTransitionTime\":\"%s\"}]}",
                       until(w, 100000), until(w, -500000));
    const char *since = until(w, -500000), *end = until(w, 100000);
    json_t *o;

    begin(w, fake_kube_text(w->f, OWNED, "my-score", "ns/addon", valid));
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 3, "PATCH " SCORES "/my-score/status");
    assert_status(w, 3, 7, end, "False");
    o = body_of(w, 3);
    assert_string_equal(
        kube_str(json_array_get(kube_list(o, "status", "conditions", NULL), 0), "lastTransitionTime", NULL),
        since);
    json_decref(o);
    push(w, "/s", 500, "no");
    push(w, SCORES, 200, "{}");
    w->f->clock.wall.ms += 100000;
    round_to(w, 10000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score/status");
    assert_status(w, 5, -9, until(w, 180000), "False");
}

/* A finalizer of another holds the object, whose scorer was removed: one that is added again is another. */
static void takes_no_scores_of_an_object_that_is_about_to_go(void **state)
{
    struct world *w = *state;
    const char *going = fake_kube_text(
        w->f,
        "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"my-score\",\"resourceVersion\":\"5\","
        "\"deletionTimestamp\":\"2026-11-21T06:23:01Z\",\"finalizers\":[\"example.com/held\"],"
        "\"labels\":{\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"
        "\"dynamic-scoring.open-cluster-management.io/owner\":\"ns/addon\"}},\"status\":{\"scores\":["
        "{\"name\":\"x\",\"value\":7}],\"validUntil\":\"%s\"}}",
        until(w, 100000));

    begin(w, "");
    push(w, "/s", 500, "no");
    push(w, SCORES, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    push(w, SCORES, 200, going);
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 4, "GET " SCORES "/my-score");
    assert_asked(w, 5, "PATCH " SCORES "/my-score/status");
    assert_status(w, 5, -9, until(w, 180000), "False");
    fake_kube_idle(w->f);
    push(w, "/s", 500, "no");
    round_to(w, 10000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 7); /* nothing has changed */
}

static void assert_scored(struct world *w, size_t i, const char *reason, const char *words)
{
    json_t *o = body_of(w, i);
    const json_t *scored = json_array_get(kube_list(o, "status", "conditions", NULL), 0);

    assert_string_equal(kube_str(scored, "reason", NULL), reason);
    assert_non_null(strstr(kube_str(scored, "message", NULL), words));
    json_decref(o);
}

static void keeps_the_last_scores_of_an_empty_result_then_falls_back(void **state)
{
    struct world *w = *state;
    const char *end;
    size_t i;

    begin(w, "");
    push_scores(w, 41);
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    end = until(w, 180000);
    push(w, "/s", 200, "{\"results\":[]}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    assert_status(w, 6, 41, end, "False");
    assert_scored(w, 6, "NoResults", "the scoring API returned no results; the last scores stay");
    push(w, "/s", 200, "{\"results\":[]}");
    round_to(w, 60000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/s"});
    push(w, SCORES, 200, "{}");
    fake_kube_advance(w->f, 60000); /* the scores end without a round that does */
    fake_kube_requests(w->f, 10);
    fake_kube_idle(w->f);
    i = strncmp(fake_kube_asked(w->f, 8), "PATCH", 5) == 0 ? 8 : 9;
    assert_status(w, i, -9, until(w, 180000), "False");
    assert_scored(w, i, "NoResults", "fallbackScore is used");
}

static void falls_back_to_the_one_item_of_a_scorer_that_never_had_any(void **state)
{
    struct world *w = *state;

    begin(w, "");
    push(w, "/s", 200, "{\"results\":[{\"metric\":{},\"score\":NaN}]}");
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    add_scorer(w, ", fallbackScore: -9");
    round_to(w, 2000);
    assert_asked(w, 4, "PATCH " SCORES "/my-score/status");
    assert_status(w, 4, -9, until(w, 180000), "False");
    assert_scored(w, 4, "NoItems", "skipped 1 NaN or infinite; fallbackScore is used");
}

static void writes_an_empty_result_at_once_without_a_fallback(void **state)
{
    struct world *w = *state;
    json_t *o;

    begin(w, "");
    first_write(w);
    push(w, "/s", 200, "{\"results\":[]}");
    push(w, SCORES, 200, "{}");
    round_to(w, 60000);
    assert_asked(w, 6, "PATCH " SCORES "/my-score/status");
    assert_scored(w, 6, "NoResults", "; there are no scores");
    o = body_of(w, 6);
    assert_int_equal(json_array_size(kube_list(o, "status", "scores", NULL)), 0);
    json_decref(o);
}

/* Two scorers, of whose rounds the test tells the placement itself. */
static void add_two_scorers(struct world *w)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    const char *text = "- {scoreName: one, sourceType: None, scoringEndpoint: 'http://a.example/s'}\n"
                       "- {scoreName: two, sourceType: None, scoringEndpoint: 'http://a.example/s'}\n";

    problems_init(&p, "f");
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    summaries_parse(&w->summaries, d->root, PROBLEM_ERROR, &p);
    assert_int_equal(w->summaries.n, 2);
    placement_sync(w->placement, &w->summaries, w->limits.stale_intervals);
}

static void end_round(struct world *w, const char *score_name, double score)
{
    const int64_t life_ms = 180000;
    const struct result result = {"n1", "", score};
    const struct round_outcome o = {.reason = "",
                                    .results = 1,
                                    .batch = batch_of(score_name, &result, 1),
                                    .life_ms = life_ms,
                                    .expires_ms = w->f->clock.wall.ms + life_ms};

    placement_round_ended(w->placement, score_name, &o);
    (void)batch_unref(o.batch);
}

static void adjust_until(struct world *w, const char *end)
{
    const char *text =
        fake_kube_text(w->f, "[{\"name\":\"out\",\"scoreName\":\"*\",\"set\":-100,\"until\":\"%s\"}]", end);
    struct adjustments list = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    assert_int_equal(adjustments_parse(&list, str_of(text), &why), 0);
    placement_adjust(w->placement, &list);
}

/* The object's first round: a create and a status, requests i and i + 1. */
static void first_round_is_adjusted(struct world *w, const char *score_name, size_t i)
{
    push(w, SCORES, 201, "{}");
    push(w, SCORES, 200, "{}");
    end_round(w, score_name, 41);
    fake_kube_requests(w->f, i + 2);
    fake_kube_idle(w->f);
    assert_status(w, i + 1, -100, until(w, 180000), "True");
}

/* The clock is set beyond the end, so that a round comes before the timer, which runs by the other clock. */
static void ends_an_adjustment_everywhere_when_one_round_comes_before_its_timer(void **state)
{
    struct world *w = *state;

    begin(w, "");
    adjust_until(w, until(w, 10000));
    add_two_scorers(w);
    first_round_is_adjusted(w, "one", 2);
    first_round_is_adjusted(w, "two", 4);

    w->f->clock.wall.ms += 11000;
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 6); /* the timer has not seen it */

    push(w, SCORES, 200, "{}");
    push(w, SCORES, 200, "{}");
    end_round(w, "one", 41);
    assert_asked(w, 6, "PATCH " SCORES "/one/status");
    assert_status(w, 6, 41, until(w, 180000), "True");
    assert_asked(w, 7, "PATCH " SCORES "/two/status");
    assert_status(w, 7, 41, until(w, 169000), "True");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(creates_an_object_then_writes_its_status),
        TEST(writes_nothing_until_half_of_the_validity_has_passed),
        TEST(holds_back_what_is_within_the_tolerance),
        TEST(holds_back_noise_around_0),
        TEST(holds_back_noise_around_the_highest_value),
        TEST(writes_the_newest_state_after_the_write_under_way),
        TEST(retries_a_failed_write_with_the_newest_state),
        TEST(creates_a_vanished_object_again),
        TEST(writes_no_status_into_an_object_made_anew),
        TEST(writes_the_status_of_an_object_that_others_have_changed),
        TEST(deletes_objects_without_a_scorer),
        TEST(deletes_the_object_of_a_scorer_that_has_another_destination),
        TEST(deletes_what_a_create_left_behind),
        TEST(leaves_what_another_has_created_meanwhile),
        TEST(deletes_what_an_earlier_life_left_behind),
        TEST(neither_writes_nor_deletes_what_was_taken_over),
        TEST(deletes_no_newer_version_of_another_owner),
        TEST(leaves_valid_scores_to_whoever_took_them_over),
        TEST(takes_back_scores_that_have_expired),
        TEST(keeps_valid_scores_when_the_first_round_after_a_restart_fails),
        TEST(takes_no_scores_of_an_object_that_is_about_to_go),
        TEST(keeps_the_last_scores_of_an_empty_result_then_falls_back),
        TEST(falls_back_to_the_one_item_of_a_scorer_that_never_had_any),
        TEST(writes_an_empty_result_at_once_without_a_fallback),
        TEST(ends_an_adjustment_everywhere_when_one_round_comes_before_its_timer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
