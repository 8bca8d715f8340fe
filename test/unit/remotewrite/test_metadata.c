/* Metadata requests on a clock that is moved by hand. */
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "remotewrite/metadata.h"
#include "remotewrite/transport.h"
#include "test/unit/remotewrite/rw.h"

static int64_t now_ms;

static mono_ms mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){now_ms};
}

static unix_ms wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){1760000000000 + now_ms};
}

static const struct clock by_hand = {.mono = mono, .wall = wall};

struct receiver {
    struct transport transport;
    transport_done_fn done;
    void *arg;
    unsigned requests;
    bool busy;
};

static int start(struct transport *t, enum rw_form form, struct str body, transport_done_fn done, void *arg,
                 char why[256])
{
    struct receiver *v = CONTAINER_OF(t, struct receiver, transport);
    Rw__V1__WriteRequest *rq = form == RW_FORM_V1 ? rw_decode(body) : NULL;

    (void)why;
    assert_false(v->busy);
    if (rq) {
        assert_int_equal(rq->n_timeseries, 0);
        assert_int_equal(rq->n_metadata, 1);
        rw__v1__write_request__free_unpacked(rq, NULL);
    }
    v->busy = true;
    v->requests++;
    v->done = done;
    v->arg = arg;
    return 0;
}

static void cancel(struct transport *t)
{
    CONTAINER_OF(t, struct receiver, transport)->busy = false;
}

struct bench {
    struct receiver receiver;
    struct families families;
    struct rw_endpoint_config *config;
    struct loop *loop;
    struct metadata metadata;
};

static void begin(struct bench *b, const char *config)
{
    now_ms = 1000;
    *b = (struct bench){.receiver.transport = {.start = start, .cancel = cancel}};
    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    b->config = rw_endpoint(config);
    assert_int_equal(loop_new(&b->loop, &by_hand), 0);
    families_note(&b->families, STR("m"), "", FAMILY_GAUGE, "help");
    b->metadata = (struct metadata){
        .config = b->config, .loop = b->loop, .transport = &b->receiver.transport, .families = &b->families};
}

static void end(struct bench *b)
{
    metadata_done(&b->metadata);
    assert_false(b->receiver.busy);
    families_done(&b->families);
    (void)loop_free(b->loop);
    (void)rw_endpoint_config_unref(b->config);
}

/* Ticks every second; the requests that were started. */
static unsigned tick(struct bench *b, unsigned seconds, enum rw_form form)
{
    unsigned before = b->receiver.requests;

    for (unsigned i = 0; i < seconds; i++) {
        now_ms += 1000;
        assert_int_equal(loop_turn(b->loop, 0), 0);
        metadata_tick(&b->metadata, form);
    }
    return b->receiver.requests - before;
}

static void answer(struct bench *b, const struct transport_answer *a)
{
    b->receiver.busy = false;
    b->receiver.done(b->receiver.arg, a);
}

static void sends_metadata_every_interval(void **state)
{
    const struct transport_answer good = {.status = 204, .retry_after_ms = -1};
    struct bench b;

    (void)state;
    begin(&b, "[{url: 'http://h/'}]");
    assert_int_equal(tick(&b, 5, RW_FORM_V2), 0); /* has it beside the samples */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tick(&b, 1, RW_FORM_V1), 1);
        assert_int_equal(tick(&b, 3, RW_FORM_V1), 0); /* still in flight */
        answer(&b, &good);
        assert_int_equal(tick(&b, 59, RW_FORM_VM), 0);
    }
    assert_int_equal(b.metadata.stats.sent, 3);
    assert_int_equal(tick(&b, 1, RW_FORM_V1), 1);
    end(&b);
    begin(&b, "[{url: 'http://h/', metadata_config: {send: false}}]");
    assert_int_equal(tick(&b, 200, RW_FORM_V1), 0);
    end(&b);
}

static void retries_what_may_succeed_later(void **state)
{
    static const struct {
        struct transport_answer answer;
        unsigned at_least, at_most; /* seconds until the next request */
        uint64_t retried, failed;
    } cases[] = {
        {{.status = 503, .retry_after_ms = -1}, 1, 2, 1, 0},
        {{.status = 500, .retry_after_ms = 20000}, 20, 26, 1, 0},
        {{.status = 429, .retry_after_ms = 90000}, 90, 114, 1, 0},
        {{.error = HTTP_TIMEOUT, .retry_after_ms = -1}, 1, 2, 1, 0},
        {{.status = 400, .retry_after_ms = -1}, 59, 61, 0, 1},
        {{.status = 404, .retry_after_ms = 1000}, 59, 61, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench b;

        begin(&b, "[{url: 'http://h/'}]");
        assert_int_equal(tick(&b, 1, RW_FORM_V1), 1);
        answer(&b, &cases[i].answer);
        assert_int_equal(tick(&b, cases[i].at_least - 1, RW_FORM_V1), 0);
        assert_int_equal(tick(&b, cases[i].at_most - cases[i].at_least + 1, RW_FORM_V1), 1);
        assert_int_equal(b.metadata.stats.retried, cases[i].retried);
        assert_int_equal(b.metadata.stats.failed, cases[i].failed);
        assert_int_equal(b.metadata.stats.sent, 0);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_metadata_every_interval),
        cmocka_unit_test(retries_what_may_succeed_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
