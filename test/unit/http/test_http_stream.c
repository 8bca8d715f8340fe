/* Answers taken piece by piece, the idle timeout, and gzip asked for. */
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "test/unit/http/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

struct reader {
    struct got got; /* the first member: on_done takes it */
    struct env *e;
    struct http_call *call;
    size_t pieces, bytes, largest, cancel_at;
    bool start_another, free_client;
    char first[64];
    struct got other;
};

static size_t on_data(void *arg, struct str piece)
{
    struct reader *r = arg;

    r->pieces++;
    if (r->bytes == 0 && piece.n)
        (void)snprintf(r->first, sizeof(r->first), "%.*s", STR_ARG(piece));
    r->bytes += piece.n;
    r->largest = size_max(r->largest, piece.n);
    if (r->start_another && r->pieces == 1)
        start(r->e,
              &(struct http_request){.url = fake_url(r->e->other, "/"), .max_answer = 99, .timeout_ms = 9999},
              &r->other);
    if (r->pieces == r->cancel_at)
        r->call = http_cancel(r->call);
    if (r->free_client)
        r->e->http = http_free(r->e->http);
    return piece.n;
}

static void begin(struct reader *r, struct env *e, struct http_request *rq)
{
    r->e = e;
    rq->on_data = on_data;
    assert_int_equal(http_start(&r->call, e->http, rq, on_done, r), 0);
}

static void passes_pieces_on(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {0};

    fake_push(e->server, (struct fake_answer){.mode = FAKE_CHUNKED, .body = "hello, world"});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_ok(&r.got, 200);
    assert_int_equal(r.bytes, 12);
    assert_int_equal(r.got.body.n, 0);
    r = (struct reader){0};
    fake_push(e->server, (struct fake_answer){.body = ""});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_int_equal(r.pieces, 1);
    assert_int_equal(r.bytes, 0);
}

/* Far past max_answer, and never more than a window of it in memory. */
static void limits_the_window_and_not_the_total(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {0};

    rq.max_answer = 10;
    fake_push(e->server, (struct fake_answer){.body = "0123456789abcdef", .repeat = 1 << 18});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_ok(&r.got, 200);
    assert_int_equal(r.bytes, 4 << 20);
    assert_in_range(r.largest, 1, 320 << 10);
}

static void asks_for_gzip(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    rq.accept_gzip = true;
    rq.max_answer = 10 << 20;
    rq.headers = (const char *const[]){"X-Other: 1"};
    rq.n_headers = 1;
    fake_push(e->server, (struct fake_answer){.mode = FAKE_GZIP, .body = "0123456789", .repeat = 1 << 20});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_int_equal(g.body.n, 10 << 20);
    buf_done(&g.body);
    assert_header(fake_request(e->server, 0), "Accept-Encoding", "gzip");
    assert_header(fake_request(e->server, 0), "Accept", "application/json");
    assert_header(fake_request(e->server, 0), "X-Other", "1");
}

static void streams_no_encoded_body(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {0};

    fake_push(e->server, (struct fake_answer){.mode = FAKE_GZIP, .body = "0123456789"});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_failed(&r.got, CAUSE_ENCODING);
    assert_string_equal(r.got.a.reason,
                        "response has Content-Encoding gzip, an encoding that was not asked for");
    assert_int_equal(r.bytes, 0);
}

/* Other answers than 2xx are kept as usual. */
static void keeps_the_body_of_an_error(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {0};

    fake_push(e->server, (struct fake_answer){.status = 410, .body = "gone"});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_ok(&r.got, 410);
    assert_int_equal(r.pieces, 0);
    assert_body(&r.got, "gone");
}

static void reports_a_cut_after_some_pieces(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {0};

    fake_push(e->server,
              (struct fake_answer){.mode = FAKE_RAW,
                                   .body = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome bytes"});
    begin(&r, e, &rq);
    turn_until(e, &r.got.times, 1);
    assert_failed(&r.got, CAUSE_TRANSFER);
    assert_string_equal(r.first, "some bytes");
}

static void can_be_cancelled_from_on_data(void **state)
{
    struct env *e = *state;

    for (size_t at = 1; at <= 3; at++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct reader r = {.cancel_at = at};
        fake_push(e->server, (struct fake_answer){.body = "0123456789abcdef", .repeat = 1 << 20});
        begin(&r, e, &rq);
        for (int64_t end = now() + PATIENCE_MS; r.call && now() < end;)
            assert_int_equal(loop_turn(e->loop, 20), 0);
        assert_null(r.call);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(loop_turn(e->loop, 1), 0);
        assert_int_equal(r.pieces, at);
        assert_int_equal(r.got.times, 0);
    }
}

static void can_start_a_call_from_on_data(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {.start_another = true};

    fake_push(e->server, (struct fake_answer){.body = "x"});
    begin(&r, e, &rq);
    turn_until(e, &r.other.times, 1);
    turn_until(e, &r.got.times, 1);
    assert_body(&r.other, "{}");
}

static void can_be_freed_from_on_data(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct reader r = {.free_client = true};

    fake_push(e->server, (struct fake_answer){.body = "x"});
    begin(&r, e, &rq);
    for (int64_t end = now() + PATIENCE_MS; e->http && now() < end;)
        assert_int_equal(loop_turn(e->loop, 20), 0);
    assert_null(e->http);
    assert_int_equal(loop_turn(e->loop, 1), 0);
    assert_int_equal(r.pieces, 1);
}

static void ends_an_idle_stream(void **state)
{
    static const enum fake_mode modes[] = {FAKE_HANG, FAKE_HANG_LATE};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct reader r = {0};
        rq.idle_timeout_ms = 1000;
        fake_push(e->server, (struct fake_answer){.mode = modes[i], .body = "0123456789"});
        begin(&r, e, &rq);
        turn_until(e, &r.got.times, 1);
        assert_failed(&r.got, CAUSE_IDLE);
        assert_string_equal(r.got.a.reason, "no data received for 1.0 s");
        assert_int_equal(r.bytes, i == 0 ? 0 : 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(passes_pieces_on),
        CASE(limits_the_window_and_not_the_total),
        CASE(asks_for_gzip),
        CASE(streams_no_encoded_body),
        CASE(keeps_the_body_of_an_error),
        CASE(reports_a_cut_after_some_pieces),
        CASE(can_be_cancelled_from_on_data),
        CASE(can_start_a_call_from_on_data),
        CASE(can_be_freed_from_on_data),
        CASE(ends_an_idle_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
