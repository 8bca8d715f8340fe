/* Answers as they come in, and their ceilings. */
#include "exporter/base/buf.h"
#include "test/unit/base/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static void reads_chunks_byte_by_byte(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.mode = FAKE_CHUNKED, .body = "{\"results\":[]}"});
    get(e, "/", &g);
    assert_ok(&g, 200);
    assert_body(&g, "{\"results\":[]}");
}

static void inflates_gzip_without_asking(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.mode = FAKE_GZIP, .body = "abcd", .repeat = 1000});
    get(e, "/", &g);
    assert_ok(&g, 200);
    assert_int_equal(g.body.n, 4000);
    assert_memory_equal(g.body.p + 3996, "abcd", 4);
    assert_true(g.a.received < 400);
    buf_done(&g.body);
}

/* What is beyond the ceiling is not even waited for. */
static void reports_a_cut_body(void **state)
{
    static const struct fake_answer answers[] = {
        {.body = "abcd", .repeat = 1u << 28, .close_after = 1u << 20},
        {.mode = FAKE_CHUNKED, .body = "abcdabcdabcdabcdabcdabcd"},
        {.mode = FAKE_HANG_LATE, .body = "abcdabcdabcdabcdabcdabcd"},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;

        rq.max_answer = 10;
        rq.cut_answer = true;
        fake_push(e->server, answers[i]);
        call(e, &rq, &g);
        assert_ok(&g, 200);
        assert_body(&g, "abcdabcdab");
        assert_true(g.a.received < 1u << 18);
        fake_push(e->server, (struct fake_answer){.body = "next"});
        get(e, "/", &g);
        assert_ok(&g, 200);
        assert_body(&g, "next");
    }
}

/* Whatever happens to the body, the status is the answer; the body is as it was sent. */
static void lets_the_status_decide(void **state)
{
#define HEAD "HTTP/1.1 400 Bad Request\r\n"
    static const struct {
        const char *answer, *body;
        long status;
    } cases[] = {
        {HEAD "Content-Length: 100\r\n\r\ncut", "cut", 400},
        {HEAD "Content-Length: 100\r\nContent-Encoding: gzip\r\n\r\nnot gzip", "not gzip", 400},
        {HEAD "Content-Encoding: rot13\r\nContent-Length: 3\r\n\r\nabc", "abc", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", "abc", 400},
        {HEAD "Content-Length: 20\r\n\r\n01234567890123456789", "0123456789", 400},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "", 200},
    };
#undef HEAD
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;

        rq.max_answer = 10;
        rq.status_decides = rq.no_redirects = true;
        fake_push(e->server, (struct fake_answer){.mode = FAKE_RAW, .body = cases[i].answer});
        call(e, &rq, &g);
        assert_ok(&g, cases[i].status);
        assert_body(&g, cases[i].body);
    }
}

/* The rest of the body is waited for much shorter than the call may last. */
static void does_not_wait_for_the_body_when_the_status_decides(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    rq.status_decides = rq.no_redirects = true;
    fake_push(e->server, (struct fake_answer){.mode = FAKE_HANG_LATE, .status = 503, .body = "abcdabcd"});
    call(e, &rq, &g);
    assert_ok(&g, 503);
    assert_body(&g, "abcd");
    /* No status: no decision. */
    fake_push(e->server, (struct fake_answer){.mode = FAKE_RAW, .body = "HTTP/1."});
    call(e, &rq, &g);
    assert_int_not_equal(g.a.error, HTTP_OK);
    buf_done(&g.body);
}

static void reads_retry_after(void **state)
{
    static const struct {
        const char *headers;
        int64_t ms;
    } cases[] = {
        {NULL, -1},
        {"Retry-After: 7\r\n", 7000},
        {"retry-after:0\r\n", 0},
        {"Retry-After: Sat, 21 Nov 2026 06:24:01 GMT\r\n", 60000},
        {"Retry-After: Sat, 21 Nov 2026 06:23:00 GMT\r\n", 0},
        {"Retry-After: Sat, 21 Nov 2099 06:23:00 GMT\r\n", 366LL * 24 * 3600 * 1000},
        {"Retry-After: 99999999999999999999999\r\n", 366LL * 24 * 3600 * 1000},
        {"Retry-After: -5\r\n", -1},
        {"Retry-After: soon\r\n", -1},
        {"Retry-After: \r\n", -1},
        {"Retry-After: 1.5\r\n", -1},
        {"Retry-After: 777777777777777777777777777777777777777777777777777777777777777777x\r\n", -1},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct got g;
        fake_push(e->server, (struct fake_answer){.status = 503, .headers = cases[i].headers});
        get(e, "/", &g);
        assert_ok(&g, 503);
        assert_int_equal(g.a.retry_after_ms, cases[i].ms);
        buf_done(&g.body);
    }
}

static char zeros[1 << 20];

static void refuses_a_content_length_past_the_ceiling(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.body = zeros, .body_len = sizeof(zeros), .repeat = 100});
    get(e, "/", &g);
    assert_failed(&g, HTTP_TOO_LARGE);
    assert_string_equal(g.a.reason, "response of 104857600 bytes exceeds the limit of 1048576 bytes");
    assert_true(g.a.received < 1 << 20);

    /* Refused for what the headers say, before anything of the body. */
    fake_push(e->server,
              (struct fake_answer){.mode = FAKE_RAW,
                                   .body = "HTTP/1.1 200 OK\r\nContent-Length: 314572800\r\n\r\n"});
    get(e, "/", &g);
    assert_failed(&g, HTTP_TOO_LARGE);
    assert_string_equal(g.a.reason, "response of 314572800 bytes exceeds the limit of 1048576 bytes");
}

static void stops_reading_at_the_ceiling(void **state)
{
    static const struct fake_answer answers[] = {
        {.mode = FAKE_GZIP, .body = zeros, .body_len = sizeof(zeros), .repeat = 100},
        {.mode = FAKE_RAW, .body = "HTTP/1.1 200 OK\r\n\r\n0123456789"}, /* until closed */
        {.mode = FAKE_CHUNKED, .body = "0123456789"},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;
        fake_push(e->server, answers[i]);
        rq.max_answer = i == 0 ? MAX_ANSWER : 9;
        call(e, &rq, &g);
        assert_failed(&g, HTTP_TOO_LARGE);
        assert_string_equal(g.a.reason, i == 0 ? "response exceeds the limit of 1048576 bytes"
                                               : "response exceeds the limit of 9 bytes");
    }
}

static void reads_an_answer_as_large_as_the_ceiling(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.body = zeros, .body_len = sizeof(zeros)});
    get(e, "/", &g);
    assert_ok(&g, 200);
    assert_int_equal(g.body.n, MAX_ANSWER);
    assert_int_equal(g.body.cap, MAX_ANSWER);
    buf_done(&g.body);
}

static void limits_headers(void **state)
{
    struct env *e = *state;
    BUF_AUTO(many, 1 << 20);
    BUF_AUTO(one, 1 << 20);
    struct got g;

    for (int i = 0; i < 3000; i++)
        assert_int_equal(buf_printf(&many, "X-%d: %090d\r\n", i, i), 0);
    assert_int_equal(buf_put(&many, "", 1), 0);
    fake_push(e->server, (struct fake_answer){.headers = many.p});
    get(e, "/", &g);
    assert_failed(&g, HTTP_TOO_LARGE);

    assert_int_equal(buf_printf(&one, "X: %0150000d\r\n", 0), 0);
    assert_int_equal(buf_put(&one, "", 1), 0);
    fake_push(e->server, (struct fake_answer){.headers = one.p});
    get(e, "/", &g);
    assert_failed(&g, HTTP_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_chunks_byte_by_byte),
        CASE(inflates_gzip_without_asking),
        CASE(reports_a_cut_body),
        CASE(lets_the_status_decide),
        CASE(does_not_wait_for_the_body_when_the_status_decides),
        CASE(reads_retry_after),
        CASE(refuses_a_content_length_past_the_ceiling),
        CASE(stops_reading_at_the_ceiling),
        CASE(reads_an_answer_as_large_as_the_ceiling),
        CASE(limits_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
