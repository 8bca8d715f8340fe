/* Lists and watches, through all that an API server and a network do to them; with fake_kube_new(). */
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/clock.h"
#include "test/fakes/fake_server.h"
#include "test/unit/kube/watch_world.h"

/* A watch that ends as soon as it begins is not asked for in a busy loop. */
static void backs_off_when_streams_end_at_once(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    for (unsigned i = 0; i < 100; i++) {
        fake_kube_watch(f, FAKE_WATCH_ENDS, "");
        fake_kube_check(f, "10");
    }
    begin(t);
    fake_kube_requests(f, 2);
    live(t, 300);
    assert_in_range(fake_requests(f->server), 15, 32); /* each with a check */
    expect(t, 1, "synced ");
}

static void ignores_half_a_line_at_the_end(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_ENDS, fake_kube_text(f, "%s%.40s", set(t, "a", "11"), set(t, "b", "12")));
    fake_kube_check(f, "12");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "12"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    fake_kube_advance(f, 500);
    expect(t, 1, "+ns/b@12 ");
    assert_watches_from(t, 3, "11");
}

/* The first cut is nothing to tell: the watch goes on from where it was. A server that stays away is. */
static void reports_no_error_for_one_broken_connection(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    int64_t heard;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_CUT, fake_kube_text(f, "%s%.40s", set(t, "a", "11"), set(t, "b", "12")));
    fake_push(f->server, (struct fake_answer){.mode = FAKE_CLOSE});
    fake_kube_check(f, "12");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "12"));
    begin(t);
    assert_int_equal(kube_watch_heard(t->watch).ms, 0);
    expect(t, 2, "synced +ns/a@11 ");
    heard = f->clock.wall.ms;
    fake_kube_advance(f, 1000);
    expect(t, 1, "error ");
    assert_int_equal(kube_watch_heard(t->watch).ms, heard);
    assert_checks(t, 2);
    assert_non_null(strstr(kube_watch_error(t->watch), "hub: list configmaps ns: "));
    fake_kube_advance(f, 2000);
    expect(t, 2, "ok +ns/b@12 ");
    assert_int_equal(kube_watch_heard(t->watch).ms, f->clock.wall.ms);
    assert_watches_from(t, 4, "11");
}

/* A back-off, and a stream that died without a word, are cut short; what was told is not told again. */
static void hurries_past_a_backoff_and_a_dead_stream(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    fake_push(f->server, (struct fake_answer){.mode = FAKE_CLOSE});
    fake_kube_check(f, "12");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "12"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    kube_watch_hurry(t->watch);
    fake_kube_requests(f, 3);
    expect(t, 1, "error ");
    kube_watch_hurry(t->watch);
    expect(t, 2, "ok +ns/b@12 ");
    assert_checks(t, 2);
    assert_checks(t, 3);
    assert_watches_from(t, 4, "11");
}

/* Bookmarks come each minute: what a stream has not told for longer than that is not worth a resumption. */
static void lists_anew_when_hurried_after_a_long_silence(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    fake_kube_list(f, "20", NULL, obj(t, "a", "19"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "21"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    assert_false(kube_watch_is_current(t->watch)); /* it may have more to tell */
    fake_kube_advance(f, 76000);
    assert_true(kube_watch_is_current(t->watch));
    kube_watch_hurry(t->watch);
    assert_false(kube_watch_is_current(t->watch));
    expect(t, 3, "+ns/a@19 restored +ns/b@21 ");
    assert_lists(t, 2);
    assert_watches_from(t, 3, "20");
    assert_false(kube_watch_is_current(t->watch));
    fake_kube_advance(f, 1000);
    assert_true(kube_watch_is_current(t->watch));
}

/* A stream that tells nothing is current once it could have begun to. */
static void is_current_a_second_after_a_check(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    fake_kube_check(f, "12");
    fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG});
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    kube_watch_hurry(t->watch);
    assert_false(kube_watch_is_current(t->watch));
    assert_checks(t, 2);
    assert_watches_from(t, 3, "11");
    fake_kube_idle(f);
    assert_false(kube_watch_is_current(t->watch));
    fake_kube_advance(f, 1000);
    assert_true(kube_watch_is_current(t->watch));
}

/* When asked to: a list tells what a dead stream does not. */
static void lists_anew_on_request(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    mono_ms began;

    fake_kube_list(f, "10", NULL, obj(t, "a", "9"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    fake_kube_list(f, "20", NULL, obj(t, "b", "19"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "21"));
    begin(t);
    expect(t, 3, "+ns/a@9 synced +ns/a@11 ");
    fake_kube_advance(f, 5000);
    began = f->clock.mono;
    assert_true(mono_before(kube_watch_listed(t->watch), began));
    kube_watch_relist(t->watch);
    expect(t, 3, "+ns/b@19 -ns/a +ns/b@21 ");
    assert_lists(t, 2);
    assert_int_equal(kube_watch_listed(t->watch).ms, began.ms);
}

static void knows_a_kind_that_is_not_installed(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_push(f->server, (struct fake_answer){.status = 404, .body = "404 page not found\n"});
    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "11"));
    begin(t);
    expect(t, 1, "error ");
    assert_int_equal(kube_watch_refused(t->watch), KUBE_NO_KIND);
    fake_kube_advance(f, 2000);
    expect(t, 2, "ok synced ");
    assert_int_equal(kube_watch_refused(t->watch), KUBE_OK);
}

static void lists_again_after_a_410_status(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "1"), obj(t, "b", "1")));
    fake_kube_status(f, 410, "Expired", "too old resource version: 10 (99)");
    fake_kube_list(f, "100", NULL, fake_kube_text(f, "%s,%s", obj(t, "b", "1"), obj(t, "c", "50")));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "101"));
    begin(t);
    expect(t, 3, "+ns/a@1 +ns/b@1 synced ");
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    assert_int_equal(fake_requests(f->server), 2);
    fake_kube_advance(f, 1000);
    expect(t, 2, "+ns/c@50 -ns/a ");
    assert_lists(t, 2);
    assert_watches_from(t, 3, "100");
}

static void lists_again_after_a_410_event(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    const char *error = fake_kube_event(
        f, "ERROR",
        "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version\"}");

    fake_kube_list(f, "10", NULL, obj(t, "a", "1"));
    fake_kube_watch(f, FAKE_WATCH_STAYS,
                    fake_kube_text(f, "%s%s%s", set(t, "b", "11"), error, set(t, "x", "12")));
    fake_kube_list(f, "100", NULL, obj(t, "b", "11"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "101"));
    begin(t);
    expect(t, 3, "+ns/a@1 synced +ns/b@11 ");
    fake_kube_advance(f, 1000);
    expect(t, 1, "-ns/a ");
    assert_watches_from(t, 3, "100");
}

/* Each list leads to an expired watch: the lists back off. */
static void backs_off_when_each_list_expires(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    for (unsigned i = 0; i < 200; i++) {
        fake_kube_list(f, "10", NULL, obj(t, "a", "1"));
        fake_kube_status(f, 410, "Expired", "too old");
    }
    begin(t);
    live(t, 600);
    assert_in_range(fake_requests(f->server), 20, 60);
    expect(t, 2, "+ns/a@1 synced ");
}

static void retries_after_other_error_events(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    const char *error =
        fake_kube_event(f, "ERROR", "{\"kind\":\"Status\",\"code\":500,\"message\":\"etcd is\\nslow\"}");

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, error);
    fake_kube_check(f, "10");
    fake_kube_watch(f, FAKE_WATCH_STAYS, error);
    fake_kube_check(f, "10");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    begin(t);
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    fake_kube_advance(f, 1000);
    expect(t, 2, "synced error ");
    assert_string_equal(kube_watch_error(t->watch), "hub: watch configmaps: etcd is slow");
    fake_kube_advance(f, 2000);
    expect(t, 2, "ok +ns/a@11 ");
    assert_watches_from(t, 5, "10");
}

static void waits_for_retry_after(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_push(f->server, (struct fake_answer){.status = 429,
                                              .headers = "Retry-After: 10\r\nContent-Type: text/plain\r\n",
                                              .body = "Too many requests, please try again later."});
    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "11"));
    begin(t);
    expect(t, 1, "error ");
    assert_non_null(strstr(kube_watch_error(t->watch), "HTTP 429 Too Many Requests: Too many requests"));
    fake_kube_advance(f, 9900);
    fake_kube_idle(f);
    assert_int_equal(fake_requests(f->server), 1);
    fake_kube_advance(f, 2700);
    expect(t, 2, "ok synced ");
}

static void keeps_its_objects_through_a_long_outage(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    size_t asked;

    fake_kube_list(f, "10", NULL, obj(t, "a", "1"));
    begin(t);
    expect(t, 3, "+ns/a@1 synced error ");
    asked = fake_requests(f->server);
    live(t, 6 * 3600);
    /* Every 30 to 60 seconds. */
    assert_in_range(fake_requests(f->server) - asked, 6 * 60 - 5, 6 * 120 + 20);
    assert_true(kube_watch_has(t->watch, "ns", "a"));
    fake_kube_list(f, "90", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "1"), obj(t, "b", "80")));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "91"));
    fake_kube_advance(f, 60000);
    fake_kube_turn(f, &t->n, 3);
    fake_kube_idle(f);
    /* The text changed once, from the watch's to the list's. */
    assert_string_equal(t->all, "error +ns/b@80 ok ");
    assert_int_equal(t->synced, 1);
}

static void lists_again_after_an_oversized_event(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_push(f->server,
              (struct fake_answer){.body = "{\"type\":\"ADDED\",\"object\":\"", .repeat = 10 << 17});
    fake_kube_list(f, "20", NULL, obj(t, "a", "15"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    begin(t);
    expect(t, 2, "synced error ");
    assert_string_equal(kube_watch_error(t->watch), "hub: watch configmaps: an event exceeds 4194304 bytes");
    fake_kube_advance(f, 1000);
    expect(t, 2, "+ns/a@15 ok ");
}

static void lists_again_after_an_invalid_event(void **state)
{
    static const char *const lines[] = {
        "nonsense\n",
        "{}\n",
        "[]\n",
        "{\"type\":\"ODD\",\"object\":{}}\n",
        "{\"type\":\"ADDED\",\"object\":{}}\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
        "{\"type\":\"BOOKMARK\",\"object\":{}}\n",
        "{\"type\":7,\"object\":{}}\n"};
    struct told *t = *state;
    struct fake_kube *f = t->f;

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        fake_kube_list(f, "10", NULL, "");
        fake_kube_watch(f, FAKE_WATCH_STAYS, lines[i]);
    }
    begin(t);
    expect(t, 2, "synced error ");
    assert_string_equal(kube_watch_error(t->watch), "hub: watch configmaps: the data is not a watch event");
    for (size_t i = 1; i < ARRAY_SIZE(lines); i++) {
        fake_kube_advance(f, 60000);
        expect(t, 2, "ok error ");
        assert_lists(t, 2 * i);
    }
}

static void reports_an_invalid_list(void **state)
{
    static const char *const bodies[] = {"{}", "[]",
                                         "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}]}",
                                         "{\"metadata\":{},\"items\":[]}"};
    struct told *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        fake_push(t->f->server, (struct fake_answer){.body = bodies[i]});
    fake_push(t->f->server,
              (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}"});
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "2"));
    begin(t);
    expect(t, 1, "error ");
    for (size_t i = 1; i < ARRAY_SIZE(bodies); i++) {
        assert_non_null(strstr(kube_watch_error(t->watch), "not a list"));
        fake_kube_advance(t->f, 60000);
        fake_kube_requests(t->f, i + 1);
        fake_kube_idle(t->f);
    }
    fake_kube_advance(t->f, 60000);
    expect(t, 2, "ok synced ");
}

static void reports_a_right_taken_away(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, obj(t, "a", "1"));
    fake_kube_status(f, 403, "Forbidden", "User u cannot watch");
    fake_kube_status(f, 403, "Forbidden", "User u cannot list");
    fake_kube_list(f, "20", NULL, obj(t, "a", "1"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    begin(t);
    expect(t, 3, "+ns/a@1 synced error ");
    assert_string_equal(kube_watch_error(t->watch), "hub: watch configmaps ns: User u cannot watch");
    fake_kube_advance(f, 1000);
    expect(t, 1, "error ");
    assert_string_equal(kube_watch_error(t->watch), "hub: list configmaps ns: User u cannot list");
    fake_kube_advance(f, 1000);
    expect(t, 1, "ok ");
}

/* A connection that is dead without a word: nothing comes, not even bookmarks. Meanwhile the store may have
 * been restored, so that nothing is known for certain. */
static void gives_up_a_silent_connection(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "11"));
    fake_kube_list(f, "12", NULL, obj(t, "a", "11"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "13"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    fake_kube_advance(f, 149000);
    fake_kube_idle(f);
    assert_int_equal(fake_requests(f->server), 2);
    fake_kube_advance(f, 1000);
    fake_kube_idle(f);
    fake_kube_advance(f, 1000);
    expect(t, 3, "+ns/a@11 restored +ns/b@13 "); /* of `a` again: it may have been deleted, and restored */
    assert_watches_from(t, 3, "12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(backs_off_when_streams_end_at_once),
        CASE(ignores_half_a_line_at_the_end),
        CASE(reports_no_error_for_one_broken_connection),
        CASE(hurries_past_a_backoff_and_a_dead_stream),
        CASE(lists_anew_when_hurried_after_a_long_silence),
        CASE(is_current_a_second_after_a_check),
        CASE(lists_anew_on_request),
        CASE(knows_a_kind_that_is_not_installed),
        CASE(lists_again_after_a_410_status),
        CASE(lists_again_after_a_410_event),
        CASE(backs_off_when_each_list_expires),
        CASE(retries_after_other_error_events),
        CASE(waits_for_retry_after),
        CASE(keeps_its_objects_through_a_long_outage),
        CASE(lists_again_after_an_oversized_event),
        CASE(lists_again_after_an_invalid_event),
        CASE(reports_an_invalid_list),
        CASE(reports_a_right_taken_away),
        CASE(gives_up_a_silent_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
