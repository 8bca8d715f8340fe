/* A whole endpoint with its thread, against a server on a socket. */
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/endpoint.h"
#include "test/fakes/fake_server.h"
#include "test/unit/remotewrite/rw.h"

#include <time.h>

enum { DEADLINE_MS = 20000 };
static const int64_t START = 1760000000000;

static struct endpoint *start_endpoint(struct fake_server *s, const char *dir, const char *config, bool drain)
{
    char yaml[1024];
    struct rw_endpoint_config *c;
    struct endpoint *e;

    (void)snprintf(yaml, sizeof(yaml),
                   "[{url: '%s', name: hub, remote_timeout: 5s, metadata_config: {send: false}, "
                   "queue_config: {min_backoff: 10ms, max_backoff: 50ms}%s}]",
                   fake_url(s, "/api/v1/write"), config);
    c = rw_endpoint(yaml);
    assert_int_equal(endpoint_new(&e, c, dir, drain, NULL, NULL), 0);
    (void)rw_endpoint_config_unref(c);
    return e;
}

static struct endpoint *open_endpoint(struct fake_server *s, const char *dir, const char *config)
{
    return start_endpoint(s, dir, config, false);
}

static void publish(struct endpoint *e, size_t n, int64_t at)
{
    struct batch *b = rw_batch("a", n, at);

    endpoint_publish(e, b, b->at);
    (void)batch_unref(b);
}

/* Until so many samples were delivered and nothing waits. */
static struct endpoint_state wait_sent(struct endpoint *e, uint64_t samples)
{
    struct endpoint_state st;

    for (int ms = 0; ms < DEADLINE_MS; ms += 5) {
        endpoint_state(e, &st);
        if (st.sender.samples >= samples && st.queue.samples == 0)
            return st;
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("%llu of %llu samples came, %s", (unsigned long long)st.sender.samples,
             (unsigned long long)samples, st.sender.error);
    return st;
}

/* The server closes a connection that it kept: the next request goes out again at once, and is no failure. */
static void retries_at_once_on_a_closed_connection(void **state)
{
    struct fake_server *s = fake_new();
    struct endpoint *e = open_endpoint(s, NULL, "");
    struct endpoint_state st;

    (void)state;
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    publish(e, 5, START);
    (void)wait_sent(e, 5);
    fake_push(s, (struct fake_answer){.mode = FAKE_CLOSE});
    publish(e, 5, START + 1000);
    st = wait_sent(e, 10);
    assert_int_equal(st.sender.retried, 0);
    assert_int_equal(st.sender.requests, 2);
    (void)endpoint_free(e);
    (void)fake_free(s);
}

static void keeps_pending_samples_and_sends_markers_at_a_stop(void **state)
{
    struct fake_server *s = fake_new();
    char *dir = rw_folder();
    struct endpoint *e = NULL;
    struct endpoint_state st;

    (void)state;
    fake_default(s, (struct fake_answer){.status = 503, .body = "not now"});
    e = open_endpoint(s, dir, "");
    for (int i = 0; i < 10; i++)
        publish(e, 100, START + i * 1000);
    do
        endpoint_state(e, &st);
    while (st.queue.samples < 1000 || st.sender.failures < 2);
    assert_string_equal(st.sender.error, "status 503: not now");
    assert_true(st.queue.has_spool && st.queue.spool.bytes > 0);
    endpoint_stop(e, 100);
    (void)endpoint_free(e);
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    e = open_endpoint(s, dir, "");
    (void)wait_sent(e, 1100); /* with the markers of the first stop */
    publish(e, 100, START + 10000);
    st = wait_sent(e, 1200);
    assert_int_equal(st.series, 100);
    endpoint_stop(e, 5000);
    size_t before = fake_requests(s);
    (void)endpoint_free(e);
    const struct fake_request *last = fake_request(s, fake_requests(s) - 1);
    Rw__V1__WriteRequest *rq = rw_decode((struct str){last->body, last->body_len});
    assert_true(before <= fake_requests(s));
    assert_int_equal(rq->n_timeseries, 100);
    assert_true(rw_bits(rq->timeseries[0]->samples[0]->value) == 0x7ff0000000000002ull);
    rw__v1__write_request__free_unpacked(rq, NULL);
    (void)fake_free(s);
    rw_folder_done(dir);
}

static void stops_in_time_with_a_hanging_receiver(void **state)
{
    struct fake_server *s = fake_new();
    struct endpoint *e;

    (void)state;
    fake_default(s, (struct fake_answer){.mode = FAKE_HANG});
    e = open_endpoint(s, NULL, ", headers: {A: b}");
    publish(e, 5, START);
    while (fake_connections(s) == 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    endpoint_stop(e, 200);
    (void)endpoint_free(e);
    (void)fake_free(s);
}

/* It had an hour, and has begun to flush: the markers are queued. */
static void stops_sooner_if_asked_again(void **state)
{
    struct fake_server *s = fake_new();
    struct endpoint_state st;
    struct endpoint *e;

    (void)state;
    fake_default(s, (struct fake_answer){.mode = FAKE_HANG});
    e = open_endpoint(s, NULL, "");
    publish(e, 5, START);
    while (fake_requests(s) == 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    endpoint_stop(e, 3600 * 1000);
    do
        endpoint_state(e, &st);
    while (st.queue.samples < 10);
    assert_int_equal(st.phase, ENDPOINT_ENDING);
    endpoint_stop(e, 7200 * 1000);
    endpoint_stop(e, 50);
    (void)endpoint_free(e);
    (void)fake_free(s);
}

static bool has_ended(struct endpoint *e)
{
    struct endpoint_state st;

    endpoint_state(e, &st);
    return st.phase == ENDPOINT_ENDED;
}

static void wait_ended(struct endpoint *e)
{
    for (int ms = 0; !has_ended(e); ms += 5) {
        assert_true(ms < DEADLINE_MS);
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static uint64_t number_sent(struct endpoint *e)
{
    struct endpoint_state st;

    endpoint_state(e, &st);
    return st.sender.samples;
}

/* Another agent goes on with the series, here in the same folder: none of them gets a marker. */
static void hands_over_without_markers(void **state)
{
    struct fake_server *s = fake_new();
    char *dir = rw_folder();
    struct endpoint *e = open_endpoint(s, dir, ""), *next;

    (void)state;
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    publish(e, 100, START);
    endpoint_drain(e);
    wait_ended(e);
    assert_false(endpoint_lead(e));
    endpoint_join(e);
    assert_int_equal(number_sent(e), 100);
    next = open_endpoint(s, dir, "");
    publish(next, 100, START + 1000);
    assert_int_equal(wait_sent(next, 100).series, 100);
    assert_int_equal(number_sent(next), 100);
    (void)endpoint_free(e);
    (void)endpoint_free(next);
    (void)fake_free(s);
    rw_folder_done(dir);
}

static void goes_on_when_it_leads_again(void **state)
{
    struct fake_server *s = fake_new();
    struct endpoint *e;

    (void)state;
    fake_default(s, (struct fake_answer){.status = 503, .body = "not now"});
    e = open_endpoint(s, NULL, "");
    publish(e, 100, START);
    endpoint_drain(e);
    while (fake_requests(s) < 2) /* it keeps trying */
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_false(has_ended(e));
    assert_true(endpoint_lead(e));
    publish(e, 100, START + 1000);
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    assert_int_equal(wait_sent(e, 200).series, 100);
    (void)endpoint_free(e);
    (void)fake_free(s);
}

/* What a killed agent has left is sent by its next run, even if that stands by; and where another agent waits
 * for the folder, it gets both. */
static void gives_its_spool_to_who_asks(void **state)
{
    struct fake_server *s = fake_new();
    char *dir = rw_folder();
    struct endpoint *e, *leader;

    (void)state;
    fake_default(s, (struct fake_answer){.status = 503, .body = "not now"});
    e = open_endpoint(s, dir, "");
    publish(e, 100, START);
    endpoint_drain(e);
    (void)endpoint_free(e); /* in time, with samples left */
    e = start_endpoint(s, dir, "", true);
    for (size_t n = fake_requests(s); fake_requests(s) < n + 1;)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    leader = open_endpoint(s, dir, "");
    publish(leader, 100, START + 1000);
    wait_ended(e);
    endpoint_join(e);
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    (void)wait_sent(leader, 200);
    assert_int_equal(number_sent(e), 0);
    (void)endpoint_free(e);
    /* Nothing to send, or no way to the folder: it ends by itself. */
    e = start_endpoint(s, dir, "", true);
    wait_ended(e);
    (void)endpoint_free(e);
    (void)endpoint_free(leader);
    (void)fake_free(s);
    rw_folder_done(dir);
}

/* Publishing, withdrawing, looking and stopping while the thread works: for ThreadSanitizer. */
static void serves_concurrent_calls(void **state)
{
    struct fake_server *s = fake_new();
    struct endpoint *e = open_endpoint(s, NULL, ", send_health_metrics: true");
    struct endpoint_state st;
    CLEANUP(cleanup_metrics_free) struct metrics *own = NULL;

    (void)state;
    own = metrics_new(METRIC_OWNER_LOOP);
    fake_default(s, (struct fake_answer){.status = 204, .body = ""});
    for (int i = 0; i < 200; i++) {
        publish(e, 50 + (size_t)i % 3, START + i);
        if (i % 10 == 0)
            endpoint_withdraw(e, "a", (unix_ms){START + i});
        metric_set(own, METRIC_SCORERS, LV_NONE, i);
        if (i % 4 == 0) /* all of them at once would not fit into the inbox */
            endpoint_metrics(e, own, (unix_ms){START + i});
        endpoint_state(e, &st);
    }
    (void)wait_sent(e, 200 * 50);
    (void)endpoint_free(e);
    (void)fake_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_at_once_on_a_closed_connection),
        cmocka_unit_test(keeps_pending_samples_and_sends_markers_at_a_stop),
        cmocka_unit_test(stops_in_time_with_a_hanging_receiver),
        cmocka_unit_test(stops_sooner_if_asked_again),
        cmocka_unit_test(hands_over_without_markers),
        cmocka_unit_test(goes_on_when_it_leads_again),
        cmocka_unit_test(gives_its_spool_to_who_asks),
        cmocka_unit_test(serves_concurrent_calls),
    };

    (void)unsetenv("http_proxy");
    (void)unsetenv("HTTP_PROXY");
    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
