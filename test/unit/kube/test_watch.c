/* Lists and watches when all goes as it should, or nearly; with fake_kube_new(). */
#include "controller/kube/version.h"
#include "controller/kube/watch.h"
#include "exporter/base/buf.h"
#include "test/fakes/fake_server.h"
#include "test/unit/kube/watch_world.h"

enum { MAX_PAGES = 10000 }; /* of a list */

static void lists_then_watches(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    char encoding[64];

    fake_kube_list(f, "10", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "3"), obj(t, "b", "4")));
    fake_kube_watch(
        f, FAKE_WATCH_STAYS,
        fake_kube_text(f, "%s%s%s%s", set(t, "a", "11"), fake_kube_event(f, "ADDED", obj(t, "c", "12")),
                       fake_kube_bookmark(f, "20"), fake_kube_event(f, "DELETED", obj(t, "b", "21"))));
    begin(t);
    assert_false(kube_watch_synced(t->watch));
    expect(t, 6, "+ns/a@3 +ns/b@4 synced +ns/a@11 +ns/c@12 -ns/b ");
    assert_true(kube_watch_synced(t->watch));
    assert_null(kube_watch_error(t->watch));
    assert_true(kube_watch_has(t->watch, "ns", "a"));
    assert_true(kube_watch_has(t->watch, "ns", "c"));
    assert_false(kube_watch_has(t->watch, "ns", "b"));
    assert_lists(t, 0);
    assert_watches_from(t, 1, "10");
    assert_true(fake_header(fake_request(f->server, 0), "Accept-Encoding", encoding, sizeof(encoding)));
    assert_string_equal(encoding, "gzip");
    assert_true(fake_header(fake_request(f->server, 1), "Accept-Encoding", encoding, sizeof(encoding)));
    assert_string_equal(encoding, "identity");
}

static void watches_a_single_object(void **state)
{
    struct told *t = *state;
    struct kube_watch_options o = options(t);

    o.name = "config";
    o.label_selector = "l";
    fake_kube_list(t->f, "1", NULL, "");
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "2"));
    t->watch = kube_watch_new(t->f->kube, &o);
    expect(t, 1, "synced ");
    assert_string_equal(
        fake_kube_asked(t->f, 0),
        "GET "
        "/api/v1/namespaces/ns/configmaps?labelSelector=l&fieldSelector=metadata.name%3Dconfig&limit=100");
}

static void lists_page_by_page(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", "t=1/", obj(t, "a", "1"));
    fake_kube_list(f, "10", "t2", obj(t, "b", "2"));
    fake_kube_list(f, "10", NULL, obj(t, "c", "3"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "11"));
    begin(t);
    expect(t, 4, "+ns/a@1 +ns/b@2 +ns/c@3 synced ");
    assert_string_equal(fake_kube_asked(f, 1),
                        "GET /api/v1/namespaces/ns/configmaps?limit=100&continue=t%3D1%2F");
    assert_string_equal(fake_kube_asked(f, 2), "GET /api/v1/namespaces/ns/configmaps?limit=100&continue=t2");
    assert_watches_from(t, 3, "10");
}

/* 410 in the middle of a list: once more from its start, and what came before is not told twice. */
static void lists_anew_after_an_expired_continue_token(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", "old", fake_kube_text(f, "%s,%s", obj(t, "a", "1"), obj(t, "b", "1")));
    fake_kube_status(f, 410, "Expired", "The provided continue parameter is too old");
    fake_kube_list(f, "20", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "1"), obj(t, "c", "15")));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    begin(t);
    expect(t, 2, "+ns/a@1 +ns/b@1 ");
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    fake_kube_advance(f, 1000);
    expect(t, 3, "+ns/c@15 -ns/b synced ");
    assert_string_equal(fake_kube_asked(f, 2), "GET /api/v1/namespaces/ns/configmaps?limit=100");
    assert_watches_from(t, 3, "20");
}

/* Followed for ever it would be as many requests as the server can answer. */
static void backs_off_from_a_continue_token_that_repeats(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", "t", obj(t, "a", "1"));
    fake_kube_list(f, "10", "t", obj(t, "b", "1"));
    fake_kube_list(f, "20", NULL, obj(t, "b", "1"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    begin(t);
    expect(t, 3, "+ns/a@1 +ns/b@1 error ");
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    assert_string_equal(kube_watch_error(t->watch), "the API server repeats a continue token");
    fake_kube_advance(f, 1000);
    expect(t, 3, "-ns/a ok synced ");
    assert_null(kube_watch_error(t->watch));
    assert_string_equal(fake_kube_asked(f, 2), "GET /api/v1/namespaces/ns/configmaps?limit=100");
}

/* Begins a list of which the first `n` pages are followed by another one. */
static void list_pages(struct told *t, size_t n)
{
    enum { TOGETHER = 1000 };

    for (size_t i = 0; i < n; i++)
        fake_kube_list(t->f, "10", i % 2 ? "odd" : "even", "");
    begin(t);
    for (size_t i = TOGETHER; i <= n; i += TOGETHER)
        fake_kube_requests(t->f, i);
}

static void lists_as_many_pages_as_a_list_may_have(void **state)
{
    struct told *t = *state;

    list_pages(t, MAX_PAGES - 1);
    fake_kube_list(t->f, "10", NULL, obj(t, "a", "1"));
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "11"));
    expect(t, 2, "+ns/a@1 synced ");
    fake_kube_requests(t->f, MAX_PAGES + 1);
    assert_watches_from(t, MAX_PAGES, "10");
}

/* Before it asks for the page that would be one too many. */
static void backs_off_from_a_list_without_an_end(void **state)
{
    struct told *t = *state;

    list_pages(t, MAX_PAGES);
    expect(t, 1, "error ");
    assert_string_equal(kube_watch_error(t->watch), "a list has more than 10000 pages");
    assert_int_equal(fake_requests(t->f->server), MAX_PAGES);
    fake_kube_list(t->f, "20", NULL, obj(t, "a", "1"));
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "21"));
    fake_kube_advance(t->f, 1000);
    expect(t, 3, "+ns/a@1 ok synced ");
    assert_lists(t, MAX_PAGES);
}

static void asks_for_smaller_pages_when_one_is_too_large(void **state)
{
    struct told *t = *state;
    struct kube_watch_options o = options(t);

    o.page = 3;
    fake_push(t->f->server, (struct fake_answer){.body = " ", .repeat = 17 << 20});
    fake_kube_list(t->f, "1", NULL, obj(t, "a", "1"));
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "2"));
    t->watch = kube_watch_new(t->f->kube, &o);
    expect(t, 2, "+ns/a@1 synced ");
    assert_string_equal(fake_kube_asked(t->f, 0), "GET /api/v1/namespaces/ns/configmaps?limit=3");
    assert_string_equal(fake_kube_asked(t->f, 1), "GET /api/v1/namespaces/ns/configmaps?limit=1");
}

static void reads_a_compressed_list(void **state)
{
    struct told *t = *state;
    const char *body =
        fake_kube_text(t->f, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[%s]}", obj(t, "a", "1"));

    fake_push(t->f->server, (struct fake_answer){.mode = FAKE_GZIP, .body = body});
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "6"));
    begin(t);
    expect(t, 2, "+ns/a@1 synced ");
}

/* A stream in pieces of one byte, each in a chunk of its own. */
static void reads_a_stream_split_anywhere(void **state)
{
    struct told *t = *state;
    const char *lines = fake_kube_text(t->f, "%s%s", set(t, "a", "2"), set(t, "b", "3"));

    fake_kube_list(t->f, "1", NULL, "");
    fake_push(t->f->server, (struct fake_answer){.mode = FAKE_CHUNKED, .body = lines});
    begin(t);
    expect(t, 3, "synced +ns/a@2 +ns/b@3 ");
}

static void resumes_after_a_clean_end(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_ENDS, set(t, "a", "11"));
    fake_kube_check(f, "11");
    fake_kube_watch(f, FAKE_WATCH_ENDS, fake_kube_bookmark(f, "15"));
    fake_kube_check(f, "16");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "16"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    fake_kube_advance(f, 500);
    fake_kube_requests(f, 4);
    assert_checks(t, 2);
    assert_watches_from(t, 3, "11");
    fake_kube_idle(f);
    fake_kube_advance(f, 500);
    expect(t, 1, "+ns/b@16 ");
    assert_watches_from(t, 5, "15");
}

/* What is older than what is known does not come through, nor does what is the same. */
static void ignores_events_that_are_not_newer(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, obj(t, "a", "9"));
    fake_kube_watch(f, FAKE_WATCH_ENDS,
                    fake_kube_text(f, "%s%s%s%s%s%s%s", set(t, "a", "100"), set(t, "a", "99"),
                                   set(t, "a", "100"), fake_kube_event(f, "DELETED", obj(t, "a", "98")),
                                   set(t, "a", "101"), fake_kube_bookmark(f, "50"),
                                   fake_kube_event(f, "DELETED", obj(t, "x", "102"))));
    fake_kube_check(f, "102");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "103"));
    begin(t);
    expect(t, 4, "+ns/a@9 synced +ns/a@100 +ns/a@101 ");
    fake_kube_advance(f, 500);
    assert_watches_from(t, 3, "102");
}

static void compares_versions(void **state)
{
    static const struct {
        const char *a, *b;
        bool newer;
    } cases[] = {{"2", "1", true},
                 {"1", "2", false},
                 {"10", "9", true},
                 {"9", "10", false},
                 {"7", "7", false},
                 {"007", "7", false},
                 {"08", "7", true},
                 {"x", "y", true},
                 {"x", "x", false},
                 {"5", "x", true},
                 {"99999999999999999999999", "99999999999999999999998", true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(kube_version_newer(cases[i].a, cases[i].b), cases[i].newer);
}

static void watches_on_with_a_rotated_token(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    char value[64];

    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_ENDS, set(t, "a", "11"));
    fake_kube_status(f, 401, "Unauthorized", "Unauthorized");
    fake_kube_check(f, "12");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "12"));
    begin(t);
    expect(t, 2, "synced +ns/a@11 ");
    fake_kube_file(f, "token", "second");
    fake_kube_advance(f, 500);
    expect(t, 1, "+ns/b@12 ");
    assert_true(fake_header(fake_request(f->server, 3), "Authorization", value, sizeof(value)));
    assert_string_equal(value, "Bearer second");
    assert_watches_from(t, 4, "11");
}

/* A reader that is slower than its server: what has come is bounded, and nothing is lost. */
static void keeps_up_with_many_events_in_bounded_memory(void **state)
{
    enum { EVENTS = 15000 };
    struct told *t = *state;
    struct fake_kube *f = t->f;
    BUF_AUTO(lines, 8 << 20);

    for (unsigned i = 0; i < EVENTS; i++)
        buf_printf(&lines,
                   "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\","
                   "\"resourceVersion\":\"%u\"}}}\n",
                   1000 + i);
    buf_putc(&lines, '\0');
    assert_int_equal(buf_failed(&lines), 0);
    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_ENDS, lines.p);
    fake_kube_check(f, "15999");
    begin(t);
    fake_kube_turn(f, &t->n, EVENTS + 1);
    fake_kube_settle(f);
    assert_int_equal(t->errors, 0);
    fake_kube_advance(f, 1000);
    assert_watches_from(t, 3, "15999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lists_then_watches),
        CASE(watches_a_single_object),
        CASE(lists_page_by_page),
        CASE(lists_anew_after_an_expired_continue_token),
        CASE(backs_off_from_a_continue_token_that_repeats),
        CASE(lists_as_many_pages_as_a_list_may_have),
        CASE(backs_off_from_a_list_without_an_end),
        CASE(asks_for_smaller_pages_when_one_is_too_large),
        CASE(reads_a_compressed_list),
        CASE(reads_a_stream_split_anywhere),
        CASE(resumes_after_a_clean_end),
        CASE(ignores_events_that_are_not_newer),
        CASE(compares_versions),
        CASE(watches_on_with_a_rotated_token),
        CASE(keeps_up_with_many_events_in_bounded_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
