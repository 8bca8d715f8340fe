/* Watches of a store that goes back in time, as after a restore from a backup; with fake_kube_new(). */
#include "controller/kube/reach.h"
#include "controller/kube/resource.h"
#include "controller/kube/watch.h"
#include "test/fakes/fake_server.h"
#include "test/unit/kube/watch_world.h"

/* The API server refuses a version from the future. */
static void lists_anew_after_a_version_from_the_future(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "500", NULL, obj(t, "a", "499"));
    fake_kube_status(f, 504, "Timeout", "Too large resource version: 500, current: 60");
    fake_kube_list(f, "60", NULL, obj(t, "a", "50"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "61"));
    begin(t);
    expect(t, 2, "+ns/a@499 synced ");
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    fake_kube_advance(f, 1000);
    expect(t, 3, "+ns/a@50 restored +ns/a@61 ");
    assert_watches_from(t, 3, "60");
    assert_int_equal(kube_era(f->kube), 2);
}

/* Or it would open the stream, and send nothing: the check is before that. Objects that have the same version
 * may be others, as `a` is here. */
static void lists_anew_after_a_short_restart(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "500", NULL,
                   fake_kube_text(f, "%s,%s,%s", obj(t, "a", "50"), obj(t, "b", "400"), obj(t, "c", "450")));
    fake_kube_watch(f, FAKE_WATCH_ENDS, set(t, "c", "501"));
    fake_kube_check(f, "60");
    fake_kube_list(f, "60", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "50"), obj(t, "c", "40")));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "61"));
    begin(t);
    expect(t, 5, "+ns/a@50 +ns/b@400 +ns/c@450 synced +ns/c@501 ");
    fake_kube_advance(f, 500);
    expect(t, 5, "+ns/a@50 +ns/c@40 -ns/b restored +ns/a@61 ");
    assert_checks(t, 2);
    assert_lists(t, 3);
    assert_watches_from(t, 4, "60");
}

/* A new leader has its watches ask anew: a stream that is cut short for that is resumed after a check. */
static void lists_anew_when_hurried_after_a_restore(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "500", NULL, obj(t, "a", "499"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, "\n");
    fake_kube_check(f, "60");
    fake_kube_list(f, "60", NULL, obj(t, "a", "50"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "a", "61"));
    begin(t);
    expect(t, 2, "+ns/a@499 synced ");
    fake_kube_requests(f, 2);
    kube_watch_hurry(t->watch);
    expect(t, 3, "+ns/a@50 restored +ns/a@61 ");
    assert_checks(t, 2);
    assert_lists(t, 3);
    assert_watches_from(t, 4, "60");
}

/* An ordinary restart costs one small request, and nothing is reported again. */
static void resumes_where_the_store_is_as_new(void **state)
{
    static const char *const versions[] = {"11", "12", "99999999999999999999"};
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "10", NULL, obj(t, "a", "9"));
    fake_kube_watch(f, FAKE_WATCH_CUT, set(t, "a", "11"));
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        fake_kube_check(f, versions[i]);
        fake_kube_watch(f, FAKE_WATCH_CUT, "");
    }
    begin(t);
    expect(t, 3, "+ns/a@9 synced +ns/a@11 ");
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        fake_kube_advance(f, 60000);
        assert_checks(t, 2 + 2 * i);
        assert_watches_from(t, 3 + 2 * i, "11");
        fake_kube_idle(f);
    }
    assert_int_equal(kube_era(f->kube), 1);
}

/* Versions that cannot be compared tell nothing: the list does. */
static void lists_where_versions_are_no_numbers(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "x", NULL, obj(t, "a", "9"));
    fake_kube_watch(f, FAKE_WATCH_ENDS, set(t, "a", "y"));
    fake_kube_check(f, "z");
    fake_kube_list(f, "z", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "w"));
    begin(t);
    expect(t, 3, "+ns/a@9 synced +ns/a@y ");
    fake_kube_advance(f, 500);
    expect(t, 2, "-ns/a +ns/b@w ");
    assert_int_equal(kube_era(f->kube), 1);
}

/* A stream that is open and brings nothing, not even bookmarks, for longer than they take. */
static void lists_after_a_stream_that_heard_nothing(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;

    fake_kube_list(f, "500", NULL, obj(t, "a", "499"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, "\n");
    fake_kube_list(f, "600", NULL, obj(t, "b", "550")); /* the store has passed what the watch knew */
    fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "b", "601"));
    begin(t);
    expect(t, 2, "+ns/a@499 synced ");
    fake_kube_requests(f, 2);
    fake_kube_idle(f);
    fake_kube_advance(f, 150000);
    fake_kube_idle(f);
    fake_kube_advance(f, 1000);
    expect(t, 4, "+ns/b@550 -ns/a restored +ns/b@601 ");
    assert_lists(t, 2);
}

/* As etcd recommends it for Kubernetes: versions go on far ahead, and the history is gone. Objects that are
 * older than what was known of them, or that had been deleted, show it. */
static void lists_anew_where_versions_go_on_far_ahead(void **state)
{
    static const struct {
        const char *items, *told;
        unsigned n;
    } cases[] = {
        {"a@9 b@8", "+ns/a@9 +ns/b@8 restored +ns/z@1000011 ", 4}, /* b had been deleted */
        {"c@700000 a@7", "+ns/c@700000 +ns/c@700000 +ns/a@7 restored +ns/z@1000011 ",
         5},                                                /* a had been changed */
        {"a@9 c@700000", "+ns/c@700000 +ns/z@1000011 ", 2}, /* nothing went back */
    };
    struct told *t = *state;
    struct fake_kube *f = t->f;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char first[8], second[8], first_version[16], second_version[16];
        bool is_back = strstr(cases[i].told, "restored");
        const char *items;
        unsigned era = kube_era(f->kube);

        assert_int_equal(
            sscanf(cases[i].items, "%7[^@]@%15s %7[^@]@%15s", first, first_version, second, second_version),
            4);
        items = fake_kube_text(f, "%s,%s", obj(t, first, first_version), obj(t, second, second_version));
        fake_kube_list(f, "10", NULL, fake_kube_text(f, "%s,%s", obj(t, "a", "9"), obj(t, "b", "8")));
        fake_kube_watch(f, FAKE_WATCH_ENDS, fake_kube_event(f, "DELETED", obj(t, "b", "11")));
        fake_kube_check(f, "1000000");
        fake_kube_status(f, 410, "Expired", "too old resource version");
        fake_kube_list(f, "1000010", NULL, items);
        if (is_back)
            fake_kube_list(f, "1000010", NULL, items);
        fake_kube_watch(f, FAKE_WATCH_STAYS, set(t, "z", "1000011"));
        begin(t);
        expect(t, 4, "+ns/a@9 +ns/b@8 synced -ns/b ");
        fake_kube_advance(f, 500);
        fake_kube_idle(f);
        fake_kube_advance(f, 1500);
        expect(t, cases[i].n, cases[i].told);
        assert_int_equal(kube_era(f->kube), era + is_back);
        t->watch = kube_watch_free(t->watch);
    }
}

/* What one watch finds counts for all of the client: another's stream is open, and would hear nothing. */
static void tells_all_watches_of_the_client(void **state)
{
    struct told *t = *state;
    struct fake_kube *f = t->f;
    struct told other = {.f = f};
    struct kube_watch_options o = options(&other);

    o.resource = &kube_secrets;
    fake_push(f->server,
              (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"500\"},\"items\":[{"
                                           "\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\","
                                           "\"resourceVersion\":\"50\"}}]}",
                                   .only_path = "/api/v1/namespaces/ns/secrets"});
    fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG_LATE,
                                              .body = "                                        ",
                                              .only_path = "/api/v1/namespaces/ns/secrets"});
    other.watch = kube_watch_new(f->kube, &o);
    expect(&other, 2, "+ns/s@50 synced ");
    fake_push(f->server,
              (struct fake_answer){.body = "{\"metadata\":{\"resourceVersion\":\"60\"},\"items\":[{"
                                           "\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\","
                                           "\"resourceVersion\":\"50\"}}]}",
                                   .only_path = "/api/v1/namespaces/ns/secrets"});
    fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG_LATE,
                                              .body = "                                        ",
                                              .only_path = "/api/v1/namespaces/ns/secrets"});
    fake_kube_list(f, "500", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_ENDS, set(t, "c", "501"));
    fake_kube_check(f, "60");
    fake_kube_list(f, "60", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "61"));
    begin(t);
    expect(t, 2, "synced +ns/c@501 ");
    fake_kube_advance(f, 500);
    expect(&other, 2, "+ns/s@50 restored ");
    expect(t, 2, "-ns/c restored ");
    other.watch = kube_watch_free(other.watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lists_anew_after_a_version_from_the_future), CASE(lists_anew_after_a_short_restart),
        CASE(lists_anew_when_hurried_after_a_restore),    CASE(resumes_where_the_store_is_as_new),
        CASE(lists_where_versions_are_no_numbers),        CASE(lists_after_a_stream_that_heard_nothing),
        CASE(lists_anew_where_versions_go_on_far_ahead),  CASE(tells_all_watches_of_the_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
