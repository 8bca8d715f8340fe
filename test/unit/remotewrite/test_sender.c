/* The sender against a receiver that is a function, on a clock that is moved by hand. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "exporter/metric/batch.h"
#include "remotewrite/bisect.h"
#include "remotewrite/format.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"
#include "remotewrite/transport.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>

enum { MAX_REQUESTS = 2000, MAX_SERIES = 4096 };
static const int64_t START = 1760000000000;

static int64_t now_ms;

static mono_ms mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){now_ms};
}

static unix_ms wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){START + now_ms};
}

static const struct clock by_hand = {.mono = mono, .wall = wall};

/* Answers each request, by a script and then by what it finds in it. */
struct receiver {
    struct transport transport;
    transport_done_fn done;
    void *arg;
    enum rw_form forms[MAX_REQUESTS];
    int64_t at[MAX_REQUESTS];
    size_t n;
    struct transport_answer script[16];
    size_t n_script, next;
    struct transport_answer always; /* after the script; status 0: 200, with what was written for 2.0 */
    unsigned refuses;               /* forms, as bits, with 415 */
    long refuses_with;              /* instead of 415 */
    const char *poison;             /* a node that makes a request 400 */
    long poison_status;
    size_t most;                 /* series in a request, else 413; 0: any number */
    size_t accepted[MAX_SERIES]; /* times that series nXXXXX was taken */
    struct buf first_body;
    bool same_bytes; /* all requests so far had the same */
    struct transport_answer pending;
    bool busy;
};

static bool look_into(struct receiver *v, enum rw_form form, struct str body, bool take)
{
    Rw__V1__WriteRequest *rq;
    bool poisoned = false;

    if (form != RW_FORM_V1)
        return false;
    rq = rw_decode(body);
    for (size_t i = 0; i < rq->n_timeseries; i++) {
        const char *node = rq->timeseries[i]->labels[2]->value;

        poisoned = poisoned || (v->poison && strstr(v->poison, node));
        poisoned = poisoned || (v->most && rq->n_timeseries > v->most);
        if (take && *node == 'n')
            v->accepted[atoi(node + 1)]++;
    }
    rw__v1__write_request__free_unpacked(rq, NULL);
    return poisoned;
}

static struct transport_answer decide(struct receiver *v, enum rw_form form, struct str body)
{
    struct transport_answer a = v->always;

    if (v->next < v->n_script)
        return v->script[v->next++];
    if (v->refuses & 1u << form) {
        a.status = v->refuses_with ? v->refuses_with : 415;
        return a;
    }
    if (a.status == 0 && a.error == HTTP_OK && look_into(v, form, body, false))
        a.status = v->most ? 413 : v->poison_status ? v->poison_status : 400;
    if (a.status == 0 && a.error == HTTP_OK) {
        a.status = 200;
        a.written = form == RW_FORM_V2;
        a.samples_written = UINT32_MAX;
        (void)look_into(v, form, body, true);
    }
    return a;
}

static int start(struct transport *t, enum rw_form form, struct str body, transport_done_fn done, void *arg,
                 char why[256])
{
    struct receiver *v = CONTAINER_OF(t, struct receiver, transport);

    (void)why;
    assert_false(v->busy);
    assert_true(v->n < MAX_REQUESTS);
    v->forms[v->n] = form;
    v->at[v->n] = now_ms;
    if (v->n == 0)
        buf_put_str(&v->first_body, body);
    assert_int_equal(buf_failed(&v->first_body), 0);
    v->same_bytes = (v->n == 0 || v->same_bytes) && str_eq(body, buf_str(&v->first_body));
    v->n++;
    v->done = done;
    v->arg = arg;
    v->pending = decide(v, form, body);
    v->busy = true;
    return 0;
}

static void cancel(struct transport *t)
{
    CONTAINER_OF(t, struct receiver, transport)->busy = false;
}

struct bench {
    struct receiver receiver;
    struct rw_endpoint_config *config;
    struct loop *loop;
    struct queue *queue;
    struct intake *intake;
    struct sender *sender;
};

static void begin(struct bench *b, const char *config)
{
    char yaml[512];
    struct queue_options qo = {.max_bytes = 64 << 20};

    now_ms = 1000;
    memset(b, 0, sizeof(*b));
    buf_init(&b->receiver.first_body, 1 << 20);
    b->receiver.transport = (struct transport){.start = start, .cancel = cancel};
    (void)snprintf(yaml, sizeof(yaml), "[{url: 'http://h/', name: hub, metadata_config: {send: false}%s}]",
                   config);
    b->config = rw_endpoint(yaml);
    assert_int_equal(loop_new(&b->loop, &by_hand), 0);
    b->queue = queue_new(&qo);
    b->intake = intake_new(b->config, b->queue);
    struct sender_options so = {
        .config = b->config, .loop = b->loop, .transport = &b->receiver.transport, .queue = b->queue};
    b->sender = sender_new(&so);
    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
}

static void end(struct bench *b)
{
    (void)sender_free(b->sender);
    (void)intake_free(b->intake);
    (void)queue_free(b->queue);
    (void)loop_free(b->loop);
    buf_done(&b->receiver.first_body);
    (void)rw_endpoint_config_unref(b->config);
}

static void publish(struct bench *b, const char *score_name, size_t n)
{
    struct batch *batch = rw_batch(score_name, n, START + now_ms);

    intake_publish(b->intake, batch, batch->at.ms);
    intake_commit(b->intake);
    (void)batch_unref(batch);
    assert_int_equal(loop_turn(b->loop, 0), 0); /* which learns the time */
    sender_kick(b->sender);
}

/* Gives answers until nothing happens at this time. */
static void settle(struct bench *b)
{
    for (int quiet = 0; quiet < 2;) {
        if (b->receiver.busy) {
            b->receiver.busy = false;
            b->receiver.done(b->receiver.arg, &b->receiver.pending);
            quiet = 0;
        } else {
            quiet++;
        }
        assert_int_equal(loop_turn(b->loop, 0), 0);
    }
}

/* Moves the clock in steps until nothing waits, at most so long. */
static void run_until_sent(struct bench *b, int64_t ms)
{
    for (int64_t until = now_ms + ms; now_ms <= until; now_ms += 10) {
        settle(b);
        if (sender_done(b->sender))
            return;
    }
}

static struct queue_stats left(const struct bench *b)
{
    return queue_stats(b->queue);
}

static void push(struct bench *b, struct transport_answer a)
{
    b->receiver.script[b->receiver.n_script++] = a;
}

#define ANSWER(...) ((struct transport_answer){.retry_after_ms = -1, __VA_ARGS__})

static void retries_the_same_bytes(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    push(&b, ANSWER(.status = 500, .text = "status 500: no"));
    push(&b, ANSWER(.status = 429, .text = "status 429"));
    push(&b, ANSWER(.error = HTTP_TIMEOUT, .text = "timed out after 30.0 s with 0 bytes received"));
    push(&b, ANSWER(.error = HTTP_CONNECT));
    publish(&b, "a", 100);
    settle(&b);
    assert_string_equal(sender_stats(b.sender)->error, "status 500: no");
    assert_int_equal(sender_stats(b.sender)->state, SENDER_BACKING_OFF);
    run_until_sent(&b, 60000);
    assert_int_equal(b.receiver.n, 5);
    assert_true(b.receiver.same_bytes);
    for (size_t i = 1; i < 5; i++) {
        int64_t waited = b.receiver.at[i] - b.receiver.at[i - 1], whole = 1000ll << (i - 1);

        assert_in_range(waited, whole / 2, whole + 10);
    }
    assert_int_equal(sender_stats(b.sender)->samples, 100);
    assert_int_equal(sender_stats(b.sender)->retried, 400);
    assert_string_equal(sender_stats(b.sender)->error, "");
    assert_int_equal(left(&b).records, 0);
    end(&b);
}

static void drops_a_record_that_expires_while_retrying(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, ", queue_config: {sample_age_limit: 5s}");
    b.receiver.always = ANSWER(.status = 503);
    publish(&b, "a", 10);
    run_until_sent(&b, 60000);
    assert_int_equal(left(&b).dropped[DROP_TOO_OLD], 10);
    assert_int_equal(left(&b).records, 0);
    assert_in_range(now_ms, 6000, 20000);
    end(&b);
}

static void waits_for_retry_after(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    push(&b, ANSWER(.status = 503));
    b.receiver.script[0].retry_after_ms = 45000;
    publish(&b, "a", 1);
    run_until_sent(&b, 60000);
    assert_int_equal(b.receiver.n, 2);
    assert_in_range(b.receiver.at[1] - b.receiver.at[0], 45000, 56270); /* and up to a quarter */
    end(&b);
}

static void never_retries_other_4xx(void **state)
{
    static const long statuses[] = {401, 403, 404, 405, 409, 415, 418, 451, 999, 100, 600};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct bench b;

        begin(&b, "");
        push(&b, ANSWER(.status = statuses[i]));
        publish(&b, "a", 100);
        publish(&b, "b", 10);
        run_until_sent(&b, 1000);
        assert_int_equal(b.receiver.n, 2);
        assert_int_equal(left(&b).dropped[DROP_REJECTED], 100);
        assert_int_equal(sender_stats(b.sender)->samples, 10);
        assert_int_equal(sender_stats(b.sender)->failed, 100);
        end(&b);
    }
}

static void finds_and_drops_rejected_series(void **state)
{
    static const struct {
        size_t series;
        const char *poison;
        size_t bad;
        long status;
    } cases[] = {
        {1, "n00000", 1, 400},
        {2, "n00001", 1, 422},
        {1000, "n00000", 1, 413},
        {1000, "n00999", 1, 400},
        {1000, "n00123 n00124 n00777", 3, 400},
        {4000, "n00123 n01124 n00777 n03999 n02000", 5, 422},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, "");
        b.receiver.poison = cases[i].poison;
        b.receiver.poison_status = cases[i].status;
        publish(&b, "a", cases[i].series);
        run_until_sent(&b, 1000);
        for (size_t k = 0; k < cases[i].series; k++) {
            char node[32];

            (void)snprintf(node, sizeof(node), "n%05zu", k);
            assert_int_equal(b.receiver.accepted[k], strstr(cases[i].poison, node) ? 0 : 1);
        }
        assert_int_equal(left(&b).dropped[DROP_REJECTED], cases[i].bad);
        assert_int_equal(sender_stats(b.sender)->samples, cases[i].series - cases[i].bad);
        assert_true(b.receiver.n <= 1 + cases[i].bad * 2 * 13);
        end(&b);
    }
}

static void gives_up_bisecting_when_everything_is_rejected(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    b.receiver.always = ANSWER(.status = 400);
    publish(&b, "a", 4000);
    run_until_sent(&b, 1000);
    assert_true(b.receiver.n < 50);
    assert_int_equal(left(&b).dropped[DROP_REJECTED], 4000);
    assert_int_equal(left(&b).records, 0);
    end(&b);
}

/* An outage in the midst of bisecting: what is left comes later, what was taken does not come again. */
static void continues_bisecting_after_an_outage(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    b.receiver.poison = "n00002";
    push(&b, ANSWER(.status = 400));
    push(&b, ANSWER(.status = 503));
    push(&b, ANSWER(.error = HTTP_BROKEN));
    publish(&b, "a", 100);
    run_until_sent(&b, 60000);
    for (size_t k = 0; k < 100; k++)
        assert_int_equal(b.receiver.accepted[k], k == 2 ? 0 : 1);
    end(&b);
}

static void falls_back_and_probes_again_later(void **state)
{
    static const struct {
        const char *protocol;
        enum rw_form first;
        long status;
    } cases[] = {{"'2.0'", RW_FORM_V2, 415},
                 {"'2.0'", RW_FORM_V2, 400},
                 {"vm", RW_FORM_VM, 415},
                 {"vm", RW_FORM_VM, 400}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;
        char config[64];

        (void)snprintf(config, sizeof(config), ", protocol: %s", cases[i].protocol);
        begin(&b, config);
        b.receiver.refuses = 1u << cases[i].first;
        b.receiver.refuses_with = cases[i].status;
        for (int k = 0; k < 10; k++) {
            publish(&b, "a", 10);
            run_until_sent(&b, 1000);
            now_ms += 1000;
        }
        assert_int_equal(b.receiver.n, 11);
        assert_int_equal(b.receiver.forms[0], cases[i].first);
        for (size_t k = 1; k < 11; k++)
            assert_int_equal(b.receiver.forms[k], RW_FORM_V1);
        for (size_t k = 0; k < 10; k++)
            assert_int_equal(b.receiver.accepted[k], 10);
        /* After an hour the receiver may be another one. */
        now_ms += cases[i].first == RW_FORM_VM ? 24 * SENDER_PROBE_MS : SENDER_PROBE_MS;
        b.receiver.refuses = 0;
        publish(&b, "a", 10);
        publish(&b, "a", 10);
        run_until_sent(&b, 1000);
        assert_int_equal(b.receiver.n, 13);
        assert_int_equal(b.receiver.forms[11], cases[i].first);
        assert_int_equal(b.receiver.forms[12], cases[i].first);
        assert_int_equal(left(&b).dropped[DROP_REJECTED], 0);
        end(&b);
    }
}

static void keeps_the_protocol_after_a_400_of_a_proxy(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, ", protocol: '2.0'");
    push(&b, ANSWER(.status = 400)); /* 2.0: whole */
    push(&b, ANSWER(.status = 400)); /* 1.0: refused too, so it is about the samples */
    publish(&b, "a", 1);
    run_until_sent(&b, 1000);
    assert_int_equal(b.receiver.n, 2);
    assert_int_equal(left(&b).dropped[DROP_REJECTED], 1);
    publish(&b, "b", 1);
    run_until_sent(&b, 1000);
    assert_int_equal(b.receiver.forms[2], RW_FORM_V2);
    end(&b);
}

static void falls_back_without_written_headers(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, ", protocol: '2.0'");
    push(&b, ANSWER(.status = 204));
    publish(&b, "a", 5);
    run_until_sent(&b, 1000);
    assert_int_equal(b.receiver.n, 2);
    assert_int_equal(b.receiver.forms[1], RW_FORM_V1);
    assert_int_equal(b.receiver.accepted[4], 1);
    assert_int_equal(sender_stats(b.sender)->samples, 5);
    end(&b);
}

static void falls_back_from_auto_to_a_supported_protocol(void **state)
{
    static const struct {
        unsigned refuses;
        bool victoria;
        enum rw_form ends_with;
        size_t requests;
    } cases[] = {
        {0, false, RW_FORM_V2, 1},
        {0, true, RW_FORM_V2, 1},
        {1u << RW_FORM_V2, false, RW_FORM_V1, 2},
        {1u << RW_FORM_V2, true, RW_FORM_VM, 2},
        {1u << RW_FORM_VM | 1u << RW_FORM_V2, true, RW_FORM_V1, 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, ", protocol: auto");
        b.receiver.refuses = cases[i].refuses;
        b.receiver.always.victoria = cases[i].victoria;
        publish(&b, "a", 5);
        run_until_sent(&b, 1000);
        assert_int_equal(b.receiver.n, cases[i].requests);
        assert_int_equal(sender_stats(b.sender)->form, cases[i].ends_with);
        end(&b);
    }
}

/* A record of 4000 series that a receiver takes in requests of at most 300: the second round costs no more
 * requests than it needs, and after an hour larger ones are tried. */
static void remembers_the_size_that_is_accepted(void **state)
{
    struct bench b;
    size_t before;

    (void)state;
    begin(&b, "");
    b.receiver.most = 300;
    publish(&b, "a", 4000);
    run_until_sent(&b, 1000);
    assert_int_equal(b.receiver.n, 4 + 16);
    publish(&b, "a", 4000);
    run_until_sent(&b, 1000);
    assert_int_equal(b.receiver.n, 4 + 16 + 16);
    assert_int_equal(b.receiver.accepted[3999], 2);
    now_ms += 3600 * 1000;
    publish(&b, "a", 4000);
    run_until_sent(&b, 1000);
    before = b.receiver.n;
    assert_in_range(before, 4 + 16 + 16 + 16, 4 + 16 + 16 + 26);
    b.receiver.most = 0;
    for (int k = 0; k < 5; k++) {
        now_ms += 3600 * 1000;
        publish(&b, "a", 4000);
        run_until_sent(&b, 1000);
    }
    publish(&b, "a", 4000);
    before = b.receiver.n;
    run_until_sent(&b, 1000);
    assert_in_range(b.receiver.n - before, 0, 1);
    assert_int_equal(left(&b).dropped[DROP_REJECTED], 0);
    end(&b);
}

static size_t requests_of_a_round(struct bench *b, size_t series)
{
    size_t before = b->receiver.n;

    publish(b, "a", series);
    run_until_sent(b, 1000);
    return b->receiver.n - before;
}

/* They are sent by themselves, so that they cost a request more, and none once they are accepted. */
static void sends_rejected_series_by_themselves(void **state)
{
    static const long statuses[] = {400, 413, 422};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct bench b;

        begin(&b, "");
        b.receiver.poison = "n00123 n00777";
        b.receiver.poison_status = statuses[i];
        assert_in_range(requests_of_a_round(&b, 1000), 20, 50);
        assert_int_equal(requests_of_a_round(&b, 1000), 2);
        assert_int_equal(left(&b).dropped[DROP_REJECTED], 4);
        assert_int_equal(sender_stats(b.sender)->failed, 4);
        /* One of them is well again, which a minute later shows; then the other. */
        b.receiver.poison = "n00777";
        assert_int_equal(requests_of_a_round(&b, 1000), 2);
        now_ms += BISECT_SUSPECTS_MS;
        assert_int_equal(requests_of_a_round(&b, 1000), 4);
        assert_int_equal(requests_of_a_round(&b, 1000), 2);
        b.receiver.poison = "";
        assert_int_equal(requests_of_a_round(&b, 1000), 2);
        assert_int_equal(requests_of_a_round(&b, 1000), 1);
        assert_int_equal(b.receiver.accepted[123], 4);
        assert_int_equal(b.receiver.accepted[777], 2);
        assert_int_equal(b.receiver.accepted[0], 7);
        /* What was rejected before is found without a search. */
        b.receiver.poison = "n00123";
        assert_in_range(requests_of_a_round(&b, 1000), 5, statuses[i] == 413 ? 50 : 5);
        assert_int_equal(b.receiver.accepted[777], 3);
        end(&b);
    }
}

static void stops_searching_when_everything_is_rejected(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    b.receiver.always = ANSWER(.status = 400);
    assert_in_range(requests_of_a_round(&b, 4000), 20, 40);
    assert_int_equal(requests_of_a_round(&b, 4000), 1);
    assert_int_equal(left(&b).dropped[DROP_REJECTED], 8000);
    /* It is well again. */
    b.receiver.always = (struct transport_answer){0};
    assert_int_equal(requests_of_a_round(&b, 4000), 1);
    assert_in_range(sender_stats(b.sender)->samples, 3900, 4000);
    end(&b);
}

static void takes_the_written_headers_as_final(void **state)
{
    static const struct {
        long status;
        uint64_t written, sent;
    } cases[] = {{400, 15, 15}, {400, 0, 0}, {400, 99, 16}, {413, 4, 4},   {415, 0, 0},   {422, 1, 1},
                 {404, 0, 0},   {200, 0, 0}, {204, 15, 15}, {200, 16, 16}, {200, 17, 16}, {204, 1, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, ", protocol: '2.0'");
        push(&b, ANSWER(.status = cases[i].status, .written = true, .samples_written = cases[i].written,
                        .text = "status: the receiver's words"));
        publish(&b, "a", 16);
        run_until_sent(&b, 1000);
        assert_int_equal(b.receiver.n, 1);
        assert_int_equal(sender_stats(b.sender)->samples, cases[i].sent);
        assert_int_equal(sender_stats(b.sender)->failed, 16 - cases[i].sent);
        assert_int_equal(left(&b).dropped[DROP_REJECTED], 16 - cases[i].sent);
        if (cases[i].sent < 16)
            assert_non_null(strstr(sender_stats(b.sender)->error, "the receiver's words"));
        publish(&b, "a", 16);
        run_until_sent(&b, 1000);
        assert_int_equal(b.receiver.n, cases[i].status == 413 ? 3 : 2);
        assert_int_equal(b.receiver.forms[1], RW_FORM_V2);
        end(&b);
    }
}

static void heeds_retry_after_in_a_hurry(void **state)
{
    static const struct {
        int64_t retry_after_ms;
        size_t requests, left;
    } cases[] = {{2000, 2, 0}, {4000, 1, 5}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, "");
        push(&b, ANSWER(.status = 503));
        b.receiver.script[0].retry_after_ms = cases[i].retry_after_ms;
        publish(&b, "a", 5);
        settle(&b);
        sender_begin_flush(b.sender, 3000);
        run_until_sent(&b, 3000);
        assert_true(sender_done(b.sender));
        assert_int_equal(b.receiver.n, cases[i].requests);
        assert_int_equal(left(&b).samples, cases[i].left);
        if (cases[i].requests == 2)
            assert_true(b.receiver.at[1] - b.receiver.at[0] >= cases[i].retry_after_ms);
        end(&b);
    }
}

static void tries_once_in_a_hurry(void **state)
{
    struct bench b;

    (void)state;
    begin(&b, "");
    b.receiver.always = ANSWER(.status = 503);
    publish(&b, "a", 5);
    settle(&b);
    assert_false(sender_done(b.sender));
    sender_begin_flush(b.sender, 3000);
    settle(&b);
    assert_true(sender_done(b.sender));
    assert_int_equal(b.receiver.n, 2);
    assert_int_equal(left(&b).samples, 5);
    end(&b);
    begin(&b, "");
    publish(&b, "a", 5);
    publish(&b, "b", 5);
    sender_begin_flush(b.sender, 3000);
    settle(&b);
    assert_true(sender_done(b.sender));
    assert_int_equal(left(&b).samples, 0);
    end(&b);
}

/* Whose checksum is right all the same: it goes out as it is in 1.0, and has to be read for 2.0. */
static void drops_and_counts_a_record_that_cannot_be_read(void **state)
{
    struct record_head h = {.kind = RECORD_SAMPLES, .samples = 7, .lane = STR("t")};
    struct bench b;

    (void)state;
    begin(&b, ", protocol: '2.0'");
    queue_append(b.queue, &h, strdup("garbage"), 7);
    publish(&b, "t", 10);
    run_until_sent(&b, 1000);
    assert_int_equal(left(&b).dropped[DROP_DAMAGED], 7);
    assert_int_equal(left(&b).records, 0);
    assert_int_equal(b.receiver.n, 1);
    end(&b);
}

static void sends_small_records_together(void **state)
{
    static const struct {
        const char *config, *poison;
        size_t requests, rejected;
    } cases[] = {
        {"", "", 3, 0},
        {", queue_config: {max_samples_per_send: 10}", "", 4, 0},
        {", queue_config: {max_samples_per_send: 14}", "", 4, 0},
        {", queue_config: {max_samples_per_send: 5}", "", 5, 0},
        {", protocol: '2.0'", "", 3, 0},
        {"", "n00003", 0, 5},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, cases[i].config);
        b.receiver.poison = cases[i].poison;
        publish(&b, "a", 5); /* is under way when the others come */
        publish(&b, "b", 5);
        publish(&b, "a", 5);
        publish(&b, "c", 5);
        publish(&b, "a", 5); /* a series is not twice in a request */
        run_until_sent(&b, 1000);
        if (cases[i].requests)
            assert_int_equal(b.receiver.n, cases[i].requests);
        assert_int_equal(sender_stats(b.sender)->samples, 25 - cases[i].rejected);
        assert_int_equal(left(&b).dropped[DROP_REJECTED], cases[i].rejected);
        assert_int_equal(left(&b).records, 0);
        for (size_t k = 0; k < 5 && b.receiver.forms[0] == RW_FORM_V1; k++)
            assert_int_equal(b.receiver.accepted[k], cases[i].rejected && k == 3 ? 0 : 5);
        end(&b);
    }
}

static void sends_markers_later_than_values(void **state)
{
    struct bench b;
    struct batch *batch;
    Rw__V1__WriteRequest *rq;
    struct record *r;
    struct str payload;

    (void)state;
    begin(&b, "");
    batch = rw_batch("a", 10, START);
    intake_publish(b.intake, batch, batch->at.ms);
    (void)batch_unref(batch);
    batch = rw_batch("a", 7, START + 1000);
    intake_publish(b.intake, batch, batch->at.ms);
    /* The clock was set back: the order of a series must not suffer. */
    intake_withdraw(b.intake, STR("a"), START - 5000);
    intake_commit(b.intake);
    (void)batch_unref(batch);
    int64_t times[] = {START, START + 1000, START + 1000, START + 1001};
    size_t counts[] = {10, 3, 7, 7};
    for (size_t i = 0; i < 4; i++) {
        r = queue_pick(b.queue, START);
        assert_int_equal(queue_payload(b.queue, r, &payload), 0);
        rq = rw_decode(payload);
        assert_int_equal(r->head.kind, i % 2 ? RECORD_MARKERS : RECORD_SAMPLES);
        assert_int_equal(rq->n_timeseries, counts[i]);
        for (size_t k = 0; k < rq->n_timeseries; k++) {
            assert_int_equal(rq->timeseries[k]->samples[0]->timestamp, times[i]);
            assert_int_equal(rw_bits(rq->timeseries[k]->samples[0]->value) == 0x7ff0000000000002ull, i % 2);
        }
        rw__v1__write_request__free_unpacked(rq, NULL);
        queue_finish(b.queue, r);
    }
    assert_null(queue_pick(b.queue, START));
    end(&b);
}

static void judges_answers(void **state)
{
    static const struct {
        struct transport_answer answer;
        enum rw_verdict v1, v2, v2_written;
    } cases[] = {
        {{.status = 100}, VERDICT_DROP, VERDICT_DROP, VERDICT_PARTIAL},
        {{.status = 200}, VERDICT_SENT, VERDICT_STEP_DOWN, VERDICT_SENT},
        {{.status = 299}, VERDICT_SENT, VERDICT_STEP_DOWN, VERDICT_SENT},
        {{.status = 300}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 399}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 400}, VERDICT_BISECT, VERDICT_BISECT, VERDICT_PARTIAL},
        {{.status = 401}, VERDICT_DROP, VERDICT_DROP, VERDICT_PARTIAL},
        {{.status = 401, .error = HTTP_AUTH}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 408}, VERDICT_DROP, VERDICT_DROP, VERDICT_PARTIAL},
        {{.status = 413}, VERDICT_SHRINK, VERDICT_SHRINK, VERDICT_PARTIAL},
        {{.status = 415}, VERDICT_DROP, VERDICT_STEP_DOWN, VERDICT_PARTIAL},
        {{.status = 422}, VERDICT_BISECT, VERDICT_BISECT, VERDICT_PARTIAL},
        {{.status = 429}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 499}, VERDICT_DROP, VERDICT_DROP, VERDICT_PARTIAL},
        {{.status = 500}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 599}, VERDICT_RETRY, VERDICT_RETRY, VERDICT_RETRY},
        {{.status = 600}, VERDICT_DROP, VERDICT_DROP, VERDICT_PARTIAL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct transport_answer a = cases[i].answer;

        assert_int_equal(transport_verdict(&a, RW_FORM_V1), cases[i].v1);
        assert_int_equal(transport_verdict(&a, RW_FORM_V2), cases[i].v2);
        a.written = true;
        assert_int_equal(transport_verdict(&a, RW_FORM_V2), cases[i].v2_written);
    }
    for (enum http_error error = HTTP_OK + 1; error < HTTP_ERRORS; error++)
        assert_int_equal(transport_verdict(&ANSWER(.error = error), RW_FORM_V2), VERDICT_RETRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_answers),
        cmocka_unit_test(retries_the_same_bytes),
        cmocka_unit_test(drops_a_record_that_expires_while_retrying),
        cmocka_unit_test(waits_for_retry_after),
        cmocka_unit_test(never_retries_other_4xx),
        cmocka_unit_test(finds_and_drops_rejected_series),
        cmocka_unit_test(gives_up_bisecting_when_everything_is_rejected),
        cmocka_unit_test(continues_bisecting_after_an_outage),
        cmocka_unit_test(falls_back_and_probes_again_later),
        cmocka_unit_test(keeps_the_protocol_after_a_400_of_a_proxy),
        cmocka_unit_test(falls_back_without_written_headers),
        cmocka_unit_test(falls_back_from_auto_to_a_supported_protocol),
        cmocka_unit_test(remembers_the_size_that_is_accepted),
        cmocka_unit_test(sends_rejected_series_by_themselves),
        cmocka_unit_test(stops_searching_when_everything_is_rejected),
        cmocka_unit_test(takes_the_written_headers_as_final),
        cmocka_unit_test(heeds_retry_after_in_a_hurry),
        cmocka_unit_test(tries_once_in_a_hurry),
        cmocka_unit_test(drops_and_counts_a_record_that_cannot_be_read),
        cmocka_unit_test(sends_small_records_together),
        cmocka_unit_test(sends_markers_later_than_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
