/* An API server that goes away and comes back: who asks for it, who waits, and when all go on. */
#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/events.h"
#include "controller/kube/queue.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/watch.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { OBJECTS = 1000 };

static const struct fake_answer gone = {.mode = FAKE_CLOSE}, well = {.body = "{}"};

/* A queue of objects, each of which is one GET. */
struct world {
    struct fake_kube *f;
    struct kube_queue *queue;
    struct {
        struct world *w;
        struct kube_call *call;
        char key[16];
        unsigned done;
        int64_t done_at;
    } objects[OBJECTS];
    unsigned calls, done;
    struct kube_watch *watch;
    unsigned of_first_list, restored; /* objects that it has reported so, and how often it may have been */
};

static void on_answer(void *arg, struct kube_answer *a)
{
    __typeof__(((struct world *)NULL)->objects[0]) *o = arg;

    o->call = NULL;
    if (a->verdict == KUBE_OK) {
        o->done++;
        o->w->done++;
        o->done_at = o->w->f->clock.mono.ms;
    }
    kube_queue_done(o->w->queue, o->key, a->verdict == KUBE_OK, a->retry_after_ms);
}

static void work(void *arg, const char *key)
{
    struct world *w = arg;
    unsigned i = (unsigned)atoi(key);
    const struct kube_request rq = {
        .method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = key};

    w->calls++;
    w->objects[i].w = w;
    (void)snprintf(w->objects[i].key, sizeof(w->objects[i].key), "%s", key);
    w->objects[i].call = kube_start(w->f->kube, &rq, on_answer, &w->objects[i]);
}

static void add(struct world *w, unsigned objects)
{
    char key[16];

    for (unsigned i = 0; i < objects; i++) {
        (void)snprintf(key, sizeof(key), "%u", i);
        kube_queue_add(w->queue, key);
    }
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct kube_queue_options o = {
        .work = work, .arg = w, .max_active = 100, .per_second = 1000, .burst = OBJECTS};

    w->f = fake_kube_new();
    o.kube = w->f->kube;
    w->queue = kube_queue_new(w->f->loop, &o);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->queue = kube_queue_free(w->queue);
    w->f = fake_kube_free(w->f);
    free(w);
    return 0;
}

/* Passes the time in steps, in each of which all calls come to their end. */
static void pass(struct world *w, int64_t ms, int64_t step)
{
    for (; ms > 0; ms -= step) {
        fake_kube_advance(w->f, step);
        fake_kube_settle(w->f);
    }
}

static void set_server(struct world *w, struct fake_answer a)
{
    fake_kube_health(w->f, "/readyz", a);
    fake_kube_health(w->f, "/version", a);
    fake_default(w->f->server, a);
}

/* Every six seconds at most. */
static void assert_returns(struct world *w)
{
    assert_true(kube_is_unreachable(w->f->kube));
    for (unsigned i = 0; i < 60 && kube_is_unreachable(w->f->kube); i++)
        pass(w, 100, 100);
    assert_false(kube_is_unreachable(w->f->kube));
}

static void go_away(struct world *w, unsigned objects)
{
    add(w, objects);
    set_server(w, gone);
    pass(w, 3000, 100);
    assert_true(kube_is_unreachable(w->f->kube));
}

static void asks_once_in_five_seconds_while_a_thousand_objects_wait(void **state)
{
    struct world *w = *state;
    unsigned calls;
    size_t asked;

    go_away(w, OBJECTS);
    calls = w->calls;
    asked = fake_asides(w->f->server);
    pass(w, 90000, 500);
    add(w, OBJECTS); /* as a round does that ends meanwhile */
    pass(w, 1000, 500);
    assert_int_equal(w->calls, calls);
    assert_in_range(fake_asides(w->f->server) - asked, 15, 21);
}

static void spreads_all_that_waited_over_ten_seconds(void **state)
{
    struct world *w = *state;
    unsigned per_second[11] = {0};
    int64_t back;

    go_away(w, OBJECTS);
    pass(w, 90000, 500);
    set_server(w, well);
    assert_returns(w);
    back = w->f->clock.mono.ms;
    pass(w, 10100, 50);
    assert_int_equal(w->done, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++) {
        assert_int_equal(w->objects[i].done, 1);
        assert_in_range(w->objects[i].done_at - back, 0, 10100);
        per_second[(w->objects[i].done_at - back) / 1000]++;
    }
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(per_second[i], 40, 180);
    assert_int_equal(kube_queue_length(w->queue), 0);
}

/* The hub may refuse for a moment after its start; that is retried from the shortest back-off again. */
static void forgets_the_failures_of_the_outage(void **state)
{
    struct world *w = *state;

    fake_default(w->f->server, (struct fake_answer){.status = 503});
    add(w, 1);
    pass(w, 120000, 500);
    set_server(w, gone);
    pass(w, 300000, 500);
    assert_true(kube_is_unreachable(w->f->kube));
    set_server(w, well);
    fake_default(w->f->server, (struct fake_answer){.status = 403});
    assert_returns(w);
    pass(w, 10100, 100);
    fake_default(w->f->server, well);
    pass(w, 16100, 100); /* the longest back-off after five failures, with its jitter */
    assert_int_equal(w->done, 1);
}

static void knows_how_long_ago_an_absence_began(void **state)
{
    struct world *w = *state;

    assert_true(kube_absence_ms(w->f->kube) == INT64_MAX);
    go_away(w, 1);
    assert_in_range(kube_absence_ms(w->f->kube), 2000, 3000);
    pass(w, 20000, 500);
    set_server(w, well);
    assert_returns(w);
    pass(w, 30000, 500);
    assert_in_range(kube_absence_ms(w->f->kube), 52000, 60000);
}

static void takes_no_failing_object_for_an_absence(void **state)
{
    struct world *w = *state;

    fake_default(w->f->server, (struct fake_answer){.status = 503});
    add(w, 1);
    pass(w, 10000, 100);
    for (unsigned i = 0; i < 200; i++) {
        pass(w, 100, 100);
        assert_true(kube_absence_ms(w->f->kube) == INT64_MAX);
    }
}

static void does_not_hold_up_others_for_one_failing_object(void **state)
{
    struct world *w = *state;
    size_t asked = 0;

    for (unsigned i = 0; i < 20; i++)
        fake_push(w->f->server,
                  (struct fake_answer){.status = 503, .only_path = "/api/v1/namespaces/ns/configmaps/0"});
    fake_default(w->f->server, well);
    add(w, 1);
    for (unsigned i = 0; i < 60; i++) {
        pass(w, 1000, 500);
        assert_false(kube_is_unreachable(w->f->kube));
        asked = fake_asides(w->f->server);
    }
    assert_in_range(asked, 3, 13);
    add(w, 10);
    pass(w, 500, 500);
    assert_int_equal(w->done, 9);
}

static void takes_any_answer_but_5xx_for_life(void **state)
{
    static const struct {
        int status;
        bool alive;
    } cases[] = {{200, true}, {401, true},  {403, true},  {404, true},
                 {429, true}, {500, false}, {502, false}, {503, false}};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct fake_answer a = {.status = cases[i].status, .body = "{}"};

        go_away(w, 1);
        fake_kube_health(w->f, "/readyz", a);
        pass(w, 6000, 500);
        assert_int_equal(!kube_is_unreachable(w->f->kube), cases[i].alive);
        set_server(w, well);
        pass(w, 16000, 500);
        assert_int_equal(w->done, i + 1);
    }
}

/* 429 comes from a server that works: the object waits on its own, and nobody asks. */
static void does_not_take_429_for_an_absence(void **state)
{
    struct world *w = *state;

    fake_push(w->f->server, (struct fake_answer){.status = 429, .headers = "Retry-After: 30\r\n"});
    fake_default(w->f->server, well);
    add(w, 1);
    pass(w, 29000, 500);
    assert_int_equal(fake_asides(w->f->server), 0);
    assert_int_equal(w->done, 0);
    pass(w, 10000, 500);
    assert_int_equal(w->done, 1);
}

static void waits_as_long_as_the_server_wants(void **state)
{
    struct world *w = *state;
    size_t asked;

    go_away(w, 1);
    fake_kube_health(w->f, "/readyz", (struct fake_answer){.status = 503, .headers = "Retry-After: 20\r\n"});
    asked = fake_asides(w->f->server);
    while (fake_asides(w->f->server) == asked)
        pass(w, 500, 500);
    pass(w, 19000, 500);
    assert_int_equal(fake_asides(w->f->server), asked + 1);
    set_server(w, well);
    assert_returns(w);
}

/* One that works all the same must not be waited for. */
static void gives_up_on_a_server_that_never_becomes_ready(void **state)
{
    struct world *w = *state;

    go_away(w, 1);
    fake_kube_health(w->f, "/readyz", (struct fake_answer){.status = 500});
    fake_kube_health(w->f, "/version", well);
    fake_default(w->f->server, well);
    pass(w, 45000, 500);
    assert_int_equal(w->done, 1);
}

static void asks_for_credentials_that_come_late(void **state)
{
    struct world *w = *state;
    struct fake_kube late = *w->f;
    char *text = NULL;
    size_t n = 0;
    FILE *kubeconfig = fopen(fake_kube_text(w->f, "%s/kubeconfig", w->f->dir), "r");

    assert_true(getdelim(&text, &n, '\0', kubeconfig) > 0);
    (void)fclose(kubeconfig);
    w->queue = kube_queue_free(w->queue);
    late.kube = kube_new(late.loop, late.http, "late", fake_kube_text(w->f, "%s/late", w->f->dir));
    w->queue = kube_queue_new(late.loop, &(struct kube_queue_options){
                                             .work = work,
                                             .arg = w,
                                             .kube = late.kube,
                                         });
    late.kube = (w->f->kube = (kube_free(w->f->kube), late.kube));
    fake_default(w->f->server, well);
    add(w, 1);
    pass(w, 90000, 500);
    assert_true(kube_is_unreachable(late.kube));
    fake_kube_file(w->f, "late", text);
    assert_returns(w);
    pass(w, 10100, 100);
    assert_int_equal(w->done, 1);
    free(text);
}

static void on_set(void *arg, json_t *object)
{
    struct world *w = arg;

    (void)object;
    w->of_first_list += kube_watch_is_first_list(w->watch);
}

static void on_restored(void *arg)
{
    struct world *w = arg;

    w->restored++;
}

/* The API server is away for that long, while a stream of one watch is open; then its object is asked for. */
static struct kube_watch *watch_through_absence(struct world *w, int64_t ms)
{
    struct fake_kube *f = w->f;
    const struct kube_watch_options o = {.resource = &kube_configmaps,
                                         .namespace = "ns",
                                         .on_set = on_set,
                                         .on_restored = on_restored,
                                         .arg = w};

    fake_kube_list(f, "10", NULL, fake_kube_object(f, "ns", "a", "9"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "11"));
    w->watch = kube_watch_new(f->kube, &o);
    fake_kube_requests(f, 2);
    fake_kube_settle(f);
    go_away(w, 1);
    pass(w, ms, 500);
    set_server(w, well);
    fake_push(f->server,
              (struct fake_answer){.body = "{}", .only_path = "/api/v1/namespaces/ns/configmaps/0"});
    return w->watch;
}

/* A stream from before the absence may hang on a dead connection. */
static void begins_streams_anew(void **state)
{
    struct world *w = *state;
    struct fake_kube *f = w->f;
    struct kube_watch *watch = watch_through_absence(w, 20000);
    size_t asked;

    fake_kube_check(f, "12");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "12"));
    asked = fake_requests(f->server);
    assert_returns(w);
    pass(w, 10100, 100);
    assert_int_equal(fake_requests(f->server), asked + 3);
    assert_int_equal(w->done, 1);
    assert_int_equal(kube_era(f->kube), 1);
    watch = kube_watch_free(watch);
}

/* A store that was restored from a backup may have made as many changes since: its version does not tell. */
static void lists_after_an_absence_that_is_long_enough_for_a_restore(void **state)
{
    struct world *w = *state;
    struct fake_kube *f = w->f;
    struct kube_watch *watch = watch_through_absence(w, 60000);
    mono_ms before = kube_watch_listed(watch);

    for (unsigned i = 0; i < 2; i++) /* the first shows that the store went back, the second is read anew */
        fake_kube_list(f, "20", NULL, fake_kube_object(f, "ns", "a", "5"));
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    assert_returns(w);
    pass(w, 20100, 100);
    assert_true(mono_before(before, kube_watch_listed(watch)));
    assert_int_equal(kube_era(f->kube), 2);
    watch = kube_watch_free(watch);
}

static void holds_back_lists_and_events(void **state)
{
    struct world *w = *state;
    struct fake_kube *f = w->f;
    struct kube_watch *watch;
    struct kube_events *events;
    const struct kube_watch_options o = {.resource = &kube_configmaps, .namespace = "ns"};
    json_auto_t *about =
        json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", "ns", "name", "a", "uid", "1");
    size_t asked;

    go_away(w, 1);
    asked = fake_requests(f->server);
    watch = kube_watch_new(f->kube, &o);
    events = kube_events_new(f->kube, "test", "test");
    kube_events_add(events, &(struct kube_event){about, "v1", "ConfigMap", true, "R", "A", "note"});
    pass(w, 60000, 500);
    assert_int_equal(fake_requests(f->server), asked);
    assert_non_null(strstr(cstr(kube_watch_error(watch)), "the API server does not answer"));
    fake_push(f->server, (struct fake_answer){.body = "{}", .only_path = "/apis/events.k8s.io"});
    fake_push(f->server,
              (struct fake_answer){.body = "{}", .only_path = "/api/v1/namespaces/ns/configmaps/0"});
    fake_kube_list(f, "10", NULL, "");
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "11"));
    set_server(w, well);
    assert_returns(w);
    pass(w, 10100, 100);
    assert_int_equal(fake_requests(f->server), asked + 4);
    assert_true(kube_watch_synced(watch));
    assert_null(kube_watch_error(watch));
    assert_int_equal(kube_events_dropped(events), 0);
    watch = kube_watch_free(watch);
    events = kube_events_free(events);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* An object that was deleted while the stream was dead looks new when a backup brings it back: its version is
 * later than any that the watch has heard of. */
static void takes_the_list_after_a_long_absence_for_a_first_one(void **state)
{
    struct world *w = *state;
    struct fake_kube *f = w->f;
    struct kube_watch *watch = watch_through_absence(w, 60000);
    char *objects;

    assert_int_equal(w->of_first_list, 1);
    objects = xasprintf("%s,%s", fake_kube_object(f, "ns", "a", "9"), fake_kube_object(f, "ns", "b", "15"));
    fake_kube_list(f, "20", NULL, objects);
    fake_kube_watch(f, FAKE_WATCH_STAYS, fake_kube_bookmark(f, "21"));
    assert_returns(w);
    pass(w, 20100, 100);
    assert_int_equal(w->of_first_list, 3); /* `a` again, since its version may be another one's by now */
    assert_false(kube_watch_is_first_list(watch));
    assert_int_equal(w->restored, 1);
    assert_int_equal(kube_era(f->kube), 1);
    watch = kube_watch_free(watch);
    free(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(asks_once_in_five_seconds_while_a_thousand_objects_wait),
        CASE(spreads_all_that_waited_over_ten_seconds),
        CASE(forgets_the_failures_of_the_outage),
        CASE(knows_how_long_ago_an_absence_began),
        CASE(takes_no_failing_object_for_an_absence),
        CASE(does_not_hold_up_others_for_one_failing_object),
        CASE(takes_any_answer_but_5xx_for_life),
        CASE(does_not_take_429_for_an_absence),
        CASE(waits_as_long_as_the_server_wants),
        CASE(gives_up_on_a_server_that_never_becomes_ready),
        CASE(asks_for_credentials_that_come_late),
        CASE(begins_streams_anew),
        CASE(lists_after_an_absence_that_is_long_enough_for_a_restore),
        CASE(takes_the_list_after_a_long_absence_for_a_first_one),
        CASE(holds_back_lists_and_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
