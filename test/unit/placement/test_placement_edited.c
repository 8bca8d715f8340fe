/* Objects that other writers change. */
#include "test/unit/placement/writes_world.h"

/* The first write as above, requests 4 and 5, while the watch waits for its next attempt. */
static void write_unwatched(struct world *w)
{
    const struct placement_options o = {
        .hub = w->f->kube, .metrics = w->metrics, .cluster_name = "c1", .owner = "ns/addon"};

    fake_kube_list(w->f, "10", NULL, "");
    fake_kube_watch(w->f, FAKE_WATCH_ENDS, fake_kube_bookmark(w->f, "11"));
    fake_push(w->f->server,
              (struct fake_answer){.status = 503, .headers = "Retry-After: 30\r\n", .only_path = SCORES "?"});
    assert_int_equal(placement_new(&w->placement, &o), 0);
    fake_kube_requests(w->f, 2);
    fake_kube_idle(w->f);
    fake_kube_advance(w->f, 5000);
    fake_kube_requests(w->f, 3);
    fake_kube_idle(w->f);
    push_scores(w, 41.9);
    push(w, SCORES, 201, "{}");
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"20\"}}");
    add_scorer(w, "");
    round_to(w, 2000);
    assert_asked(w, 5, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
}

/* The answer to the watch's next attempt. */
static void push_events(struct world *w, const char *events)
{
    fake_push(w->f->server,
              (struct fake_answer){.mode = FAKE_HANG_LATE,
                                   .body = fake_kube_text(w->f, "%s%*s", events, (int)strlen(events), ""),
                                   .only_path = SCORES "?"});
}

/* Lets the watch try again, request 6. */
static void watch_again(struct world *w)
{
    fake_kube_advance(w->f, 40000);
    fake_kube_requests(w->f, 7);
}

/* An event with the status as it was written, but for the value of its item if that is not 41. */
static const char *event_of(struct world *w, const char *type, const char *version, int value)
{
    json_t *o = body_of(w, 5);
    char *text;
    const char *event;

    assert_int_equal(json_object_set_new(json_array_get(kube_list(o, "status", "scores", NULL), 0), "value",
                                         json_integer(value)),
                     0);
    text = json_dumps(json_object_get(o, "status"), JSON_COMPACT);
    event = fake_kube_text(w->f, OWNED, "my-score", "ns/addon", text);
    free(text);
    json_decref(o);
    text = strstr((char *)(uintptr_t)event, "\"5\"");
    event = fake_kube_text(w->f, "%.*s\"%s\"%s", (int)(text - event), event, version, text + 3);
    return fake_kube_event(w->f, type, event);
}

static void writes_an_edited_score_again_at_once(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(
        w, fake_kube_text(w->f, "%s%s", event_of(w, "ADDED", "20", 41), event_of(w, "MODIFIED", "21", 99)));
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"22\"}}");
    watch_again(w);
    assert_asked(w, 7, "PATCH " SCORES "/my-score/status");
    assert_string_equal(fake_request(w->f->server, 7)->body, fake_request(w->f->server, 5)->body);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 8);
    assert_int_equal(placement_behind(w->placement), 0);
}

/* Its own write, an older version, and what others did to the metadata. */
static void writes_nothing_for_events_that_show_what_was_written(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(w, fake_kube_text(w->f, "%s%s%s", event_of(w, "ADDED", "19", 7),
                                  event_of(w, "MODIFIED", "20", 41), event_of(w, "MODIFIED", "21", 41)));
    watch_again(w);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 7);
}

static void backs_off_while_another_writer_keeps_editing(void **state)
{
    struct world *w = *state;

    write_unwatched(w);
    push_events(w, fake_kube_text(w->f, "%s%s%s", event_of(w, "MODIFIED", "21", 99),
                                  event_of(w, "MODIFIED", "23", 99), event_of(w, "MODIFIED", "25", 99)));
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"22\"}}");
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"24\"}}");
    watch_again(w);
    assert_asked(w, 8, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 9);
    push(w, SCORES "/my-score/", 200, "{\"metadata\":{\"resourceVersion\":\"26\"}}");
    fake_kube_advance(w->f, 3000);
    assert_asked(w, 9, "PATCH " SCORES "/my-score/status");
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 10);
}

/* To the watch, which selects by the label, the object is deleted then. */
static void takes_back_an_object_without_its_label(void **state)
{
    struct world *w = *state;
    json_t *o;

    write_unwatched(w);
    push_events(
        w, fake_kube_text(w->f, "%s%s", event_of(w, "ADDED", "20", 41), event_of(w, "DELETED", "21", 41)));
    push(w, SCORES, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    push(w, SCORES "/my-score", 200,
         "{\"metadata\":{\"name\":\"my-score\",\"annotations\":{"
         "\"dynamic-scoring.open-cluster-management.io/owner\":\"ns/addon\"}}}");
    push(w, SCORES "/my-score", 200, "{}");
    push(w, SCORES "/my-score/", 200, "{}");
    watch_again(w);
    assert_asked(w, 7, "POST " SCORES);
    assert_asked(w, 8, "GET " SCORES "/my-score");
    assert_asked(w, 9, "PATCH " SCORES "/my-score");
    assert_asked(w, 10, "PATCH " SCORES "/my-score/status");
    o = body_of(w, 9);
    assert_string_equal(kube_label(o, "dynamic-scoring.open-cluster-management.io/managed-by"), "agent");
    json_decref(o);
    fake_kube_idle(w->f);
    assert_string_equal(placement_trouble(w->placement, w->scorer), "");
    assert_int_equal(fake_requests(w->f->server), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_an_edited_score_again_at_once),
        TEST(writes_nothing_for_events_that_show_what_was_written),
        TEST(backs_off_while_another_writer_keeps_editing),
        TEST(takes_back_an_object_without_its_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
