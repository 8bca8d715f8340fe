/* Calls: what is sent, many at once, calls that end others. */
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "test/unit/http/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static void fetches_a_body(void **state)
{
    struct env *e = *state;
    const struct fake_request *rq;
    struct got g;

    fake_push(e->server, (struct fake_answer){.body = "hello", .headers = "Content-Type: text/x; a=b\r\n"});
    get(e, "/a?b=c", &g);
    assert_ok(&g, 200);
    assert_string_equal(g.a.content_type, "text/x; a=b");
    assert_int_equal(g.a.received, 5);
    assert_int_equal(g.a.sent, 0);
    assert_int_equal(g.a.retry_after_ms, -1);
    assert_true(g.a.seconds > 0);
    assert_body(&g, "hello");
    rq = fake_request(e->server, 0);
    assert_string_equal(rq->method, "GET");
    assert_string_equal(rq->target, "/a?b=c");
    assert_header(rq, "Accept", "application/json");
    assert_header(rq, "Accept-Encoding", "identity");
    assert_header(rq, "User-Agent", "dynamic-scoring/test");
    assert_header(rq, "Authorization", "(absent)");
    assert_header(rq, "Content-Type", "(absent)");
}

static void posts_parts_as_one_body(void **state)
{
    struct env *e = *state;
    const struct str parts[] = {STR("{\"data\":"), {NULL, 0}, STR("[]"), STR("}")};
    struct http_request rq = rq_of(fake_url(e->server, "/scoring"));
    const struct fake_request *seen;
    struct got g;

    rq.body = parts;
    rq.body_parts = ARRAY_SIZE(parts);
    rq.content_type = "application/json";
    rq.bearer = STR("abc.def");
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_int_equal(g.a.sent, 11);
    assert_body(&g, "{}");
    seen = fake_request(e->server, 0);
    assert_string_equal(seen->method, "POST");
    assert_string_equal(seen->body, "{\"data\":[]}");
    assert_header(seen, "Content-Type", "application/json");
    assert_header(seen, "Authorization", "Bearer abc.def");
    assert_header(seen, "Content-Length", "11");
}

static void sends_each_method(void **state)
{
    static const struct {
        const char *method;
        bool body;
        const char *sent;
    } cases[] = {{NULL, false, "GET"},    {NULL, true, "POST"}, {"POST", false, "POST"},
                 {"GET", false, "GET"},   {"PUT", true, "PUT"}, {"DELETE", false, "DELETE"},
                 {"PATCH", true, "PATCH"}};
    struct env *e = *state;
    const struct str part = STR("x");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;
        rq.method = cases[i].method;
        rq.body = &part;
        rq.body_parts = cases[i].body;
        fake_push(e->server, (struct fake_answer){.status = 204, .mode = FAKE_PLAIN, .close = true});
        call(e, &rq, &g);
        assert_ok(&g, 204);
        assert_string_equal(fake_request(e->server, i)->method, cases[i].sent);
        assert_string_equal(fake_request(e->server, i)->body, cases[i].body ? "x" : "");
        assert_header(fake_request(e->server, i), "Content-Type", "(absent)");
        buf_done(&g.body);
    }
}

static void reports_an_error_status_as_an_answer(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.status = 500, .body = "{\"error\":\"bad\"}"});
    get(e, "/", &g);
    assert_ok(&g, 500);
    assert_body(&g, "{\"error\":\"bad\"}");
}

static void posts_20_mb(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/scoring"));
    const struct fake_request *seen;
    struct large l;
    struct got g;

    large_make(&l);
    rq.body = l.parts;
    rq.body_parts = 3;
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_int_equal(g.a.sent, l.n);
    seen = fake_request(e->server, 0);
    assert_int_equal(seen->body_len, l.n);
    assert_memory_equal(seen->body, l.bytes, l.n);
    assert_header(seen, "Expect", "(absent)");
    buf_done(&g.body);
    free(l.bytes);
}

static void takes_an_answer_before_the_body_is_sent(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/scoring"));
    struct large l;
    struct got g;

    fake_push(e->server, (struct fake_answer){.status = 413, .body = "too much", .early = true});
    large_make(&l);
    rq.body = l.parts;
    rq.body_parts = 3;
    call(e, &rq, &g);
    assert_ok(&g, 413);
    assert_body(&g, "too much");
    free(l.bytes);
}

static void sends_the_user_of_the_url(void **state)
{
    struct env *e = *state;
    struct http_request rq;
    char url[128];
    struct got g;

    (void)snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/", fake_port(e->server));
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_header(fake_request(e->server, 0), "Authorization", "Basic dXNlcjpzZWNyZXQ=");
    buf_done(&g.body);
}

static void refuses_bad_requests_at_start(void **state)
{
    static const char *const urls[] = {"",           "localhost:80", "/x", "ftp://h/", "file:///etc/passwd",
                                       "httpx://h/", "http:/h"};
    struct env *e = *state;
    struct http_call *c = NULL;
    struct got g = {0};
    struct http_request rq;

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        rq = rq_of(urls[i]);
        assert_int_equal(http_start(&c, e->http, &rq, on_done, &g), -EINVAL);
    }
    rq = rq_of(fake_url(e->server, "/"));
    rq.bearer = STR("to\r\nken: x");
    assert_int_equal(http_start(&c, e->http, &rq, on_done, &g), -EINVAL);
    rq = rq_of(fake_url(e->server, "/"));
    rq.timeout_ms = 0;
    assert_int_equal(http_start(&c, e->http, &rq, on_done, &g), -EINVAL);
    assert_null(c);
    assert_int_equal(g.times, 0);
}

/* libcurl reads "7 s" as 7, and many kinds of dates. */
static void reads_only_valid_retry_after(void **state)
{
    static const struct {
        const char *headers;
        int64_t ms; /* -2: a date far ahead */
    } cases[] = {
        {"Retry-After: 7\r\n", 7000},
        {"Retry-After:  7 \r\n", 7000},
        {"Retry-After: 0\r\n", -1},
        {"Retry-After: Wed, 21 Oct 2099 07:28:00 GMT\r\n", -2},
        {"Retry-After: Wednesday, 21-Oct-67 07:28:00 GMT\r\n", -2},
        {"Retry-After: Wed Oct 21 07:28:00 2099\r\n", -2},
        {"Retry-After: 7 s\r\n", -1},
        {"Retry-After: 7.5\r\n", -1},
        {"Retry-After: 7e3\r\n", -1},
        {"Retry-After: 0x7\r\n", -1},
        {"Retry-After: -7\r\n", -1},
        {"Retry-After: soon\r\n", -1},
        {"Retry-After: 2099-10-21\r\n", -1},
        {"Retry-After: 21 Oct 2099\r\n", -1},
        {"Retry-After: Wed, 21 Oct 2099 07:28:00 GMT, or later\r\n", -1},
        {"Retry-After:\r\n", -1},
    };
    struct env *e = *state;
    struct got g;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_push(e->server, (struct fake_answer){.status = 503, .headers = cases[i].headers});
        get(e, "/", &g);
        assert_ok(&g, 503);
        buf_done(&g.body);
        if (cases[i].ms == -2 ? g.a.retry_after_ms <= 0 : g.a.retry_after_ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].headers, (long long)g.a.retry_after_ms);
    }
}

static void calls_a_proxy_a_proxy(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://127.0.0.1:80/");
    struct got g;

    rq.proxy = "http://127.0.0.1:1";
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PROXY_CONNECT);
    assert_non_null(strstr(g.a.reason, "could not connect to the proxy: "));

    fake_push(e->other, (struct fake_answer){.mode = FAKE_HANG});
    rq = rq_of("https://127.0.0.1:443/");
    rq.proxy = fake_url(e->other, "");
    rq.timeout_ms = 300;
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PROXY_DEADLINE);
    assert_non_null(strstr(g.a.reason, "the proxy did not answer within "));
}

/* As where both are at 3128, or at 443. */
static void calls_a_proxy_at_the_servers_port_a_proxy(void **state)
{
    struct env *e = *state;
    const char *proxy = fake_url(e->other, ""), *port = strrchr(proxy, ':');
    struct http_request rq = rq_of("http://scorer.invalid:1/");
    char url[64];
    struct got g;

    rq.proxy = "http://127.0.0.1:1";
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PROXY_CONNECT);
    assert_non_null(strstr(g.a.reason, "could not connect to the proxy: "));

    fake_push(e->other, (struct fake_answer){.mode = FAKE_HANG});
    (void)snprintf(url, sizeof(url), "https://scorer.invalid%s/", port);
    rq = rq_of(url);
    rq.proxy = proxy;
    rq.timeout_ms = 300;
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_PROXY_DEADLINE);
    assert_non_null(strstr(g.a.reason, "the proxy did not answer within "));
}

/* One that the environment names, which NO_PROXY may except a server from. */
static void tells_a_proxy_of_the_environment(void **state)
{
    static const struct {
        const char *proxy, *no_proxy, *url, *reason;
        enum http_cause cause;
    } cases[] = {
        {"http://127.0.0.1:1", NULL, "http://scorer.invalid:1/",
         "could not connect to the proxy: ", CAUSE_PROXY_CONNECT},
        {"http://127.0.0.1:1", "127.0.0.2", "http://127.0.0.3:1/",
         "could not connect to the proxy: ", CAUSE_PROXY_CONNECT},
        {"http://127.0.0.1:1", "127.0.0.2", "http://127.0.0.2:1/",
         "could not connect to 127.0.0.2:1: ", CAUSE_CONNECT},
        {"http://127.0.0.1:1", "127.0.0.2", "http://127.0.0.2:2/",
         "could not connect to 127.0.0.2:2: ", CAUSE_CONNECT},
        {"http://proxy.invalid:1", NULL, "http://127.0.0.2:1/",
         "could not connect to the proxy: ", CAUSE_PROXY_DNS},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(cases[i].url);
        struct got g;

        assert_int_equal(setenv("http_proxy", cases[i].proxy, 1), 0);
        if (cases[i].no_proxy)
            assert_int_equal(setenv("NO_PROXY", cases[i].no_proxy, 1), 0);
        call(e, &rq, &g);
        (void)unsetenv("http_proxy");
        (void)unsetenv("NO_PROXY");
        assert_failed(&g, cases[i].cause);
        if (!strstr(g.a.reason, cases[i].reason))
            fail_msg("case %zu: %s", i, g.a.reason);
    }
}

static void stand_still(void *arg, struct str name, struct str value)
{
    (void)arg, (void)name, (void)value;
    (void)usleep(200000);
}

/* curl reads the rest without a look at the clock: nobody could say how old such an answer is. */
static void refuses_an_answer_that_waited_for_us(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    rq.timeout_ms = 100;
    rq.on_header = stand_still;
    call(e, &rq, &g);
    assert_int_equal(g.a.error, HTTP_TIMEOUT);
    assert_non_null(strstr(g.a.reason, "timed out after"));
    assert_int_equal(g.body.n, 0);
}

/* --- many calls, and calls that end others --- */

static unsigned finished;

static void count_done(void *arg, struct http_response *a)
{
    (void)arg;
    assert_int_equal(a->error, HTTP_OK);
    finished++;
}

static void runs_256_calls_beside_a_hanging_one(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/hang"));
    struct http_call *c;
    struct got hanging;

    rq.timeout_ms = 2 * PATIENCE_MS;
    fake_push(e->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/hang"});
    start(e, &rq, &hanging);
    rq.url = fake_url(e->server, "/quick");
    finished = 0;
    for (int i = 0; i < 256; i++)
        assert_int_equal(http_start(&c, e->http, &rq, count_done, NULL), 0);
    turn_until(e, &finished, 256);
    assert_int_equal(hanging.times, 0);
}

static void keeps_connections(void **state)
{
    struct env *e = *state;

    for (int i = 0; i < 20; i++) {
        struct got g;
        get(e, "/", &g);
        assert_ok(&g, 200);
        buf_done(&g.body);
    }
    assert_int_equal(fake_connections(e->server), 1);
}

/* The server closed a kept connection without a word: the next call takes a new one and does not fail. */
static void replaces_a_stale_connection(void **state)
{
    struct env *e = *state;
    const struct str part = STR("[1]");
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    rq.body = &part;
    rq.body_parts = 1;
    for (int i = 0; i < 5; i++) {
        fake_push(e->server, (struct fake_answer){.close_after = 1 << 20});
        call(e, &rq, &g);
        assert_ok(&g, 200);
        buf_done(&g.body);
    }
    assert_int_equal(fake_connections(e->server), 5);
}

struct meddler {
    struct env *e;
    struct http_call *own, *victim;
    struct got next;
    bool free_client, start_next;
    unsigned times;
};

static void meddle(void *arg, struct http_response *a)
{
    struct meddler *m = arg;
    struct http_request rq = rq_of(fake_url(m->e->server, "/next"));

    (void)a;
    m->times++;
    assert_null(http_cancel(m->own));
    m->victim = http_cancel(m->victim);
    if (m->start_next)
        start(m->e, &rq, &m->next);
    if (m->free_client)
        m->e->http = http_free(m->e->http);
}

static void cancels_a_call(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct http_call *c;
    struct got g = {0};

    assert_null(http_cancel(NULL));
    for (int turns = 0; turns < 6; turns++) {
        assert_int_equal(http_start(&c, e->http, &rq, on_done, &g), 0);
        for (int i = 0; i < turns && g.times == 0; i++)
            assert_int_equal(loop_turn(e->loop, 1), 0);
        if (g.times == 0)
            assert_null(http_cancel(c));
        buf_done(&g.body);
        g.times = 0;
    }
}

/* Both calls end in one turn: the first to be told cancels the other, whose end curl has queued already. */
static void cancels_from_done(void **state)
{
    struct env *e = *state;

    for (int i = 0; i < 20; i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct meddler a = {.e = e, .start_next = true}, b = {.e = e, .start_next = true};
        assert_int_equal(http_start(&a.own, e->http, &rq, meddle, &a), 0);
        assert_int_equal(http_start(&b.own, e->http, &rq, meddle, &b), 0);
        a.victim = b.own;
        b.victim = a.own;
        while (a.times + b.times == 0)
            assert_int_equal(loop_turn(e->loop, 50), 0);
        turn_until(e, a.times ? &a.next.times : &b.next.times, 1);
        assert_int_equal(a.times + b.times, 1);
        assert_ok(a.times ? &a.next : &b.next, 200);
        buf_done(a.times ? &a.next.body : &b.next.body);
    }
}

static void can_be_freed_from_done(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct meddler a = {.e = e, .free_client = true, .start_next = true};
    struct got other;

    fake_push(e->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/hang"});
    assert_int_equal(http_start(&a.own, e->http, &rq, meddle, &a), 0);
    rq.url = fake_url(e->server, "/hang");
    start(e, &rq, &other);
    turn_until(e, &a.times, 1);
    assert_null(e->http);
    assert_int_equal(other.times + a.next.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(fetches_a_body),
        CASE(posts_parts_as_one_body),
        CASE(sends_each_method),
        CASE(reports_an_error_status_as_an_answer),
        CASE(posts_20_mb),
        CASE(takes_an_answer_before_the_body_is_sent),
        CASE(sends_the_user_of_the_url),
        CASE(refuses_bad_requests_at_start),
        CASE(reads_only_valid_retry_after),
        CASE(calls_a_proxy_a_proxy),
        CASE(calls_a_proxy_at_the_servers_port_a_proxy),
        CASE(tells_a_proxy_of_the_environment),
        CASE(refuses_an_answer_that_waited_for_us),
        CASE(runs_256_calls_beside_a_hanging_one),
        CASE(keeps_connections),
        CASE(replaces_a_stale_connection),
        CASE(cancels_a_call),
        CASE(cancels_from_done),
        CASE(can_be_freed_from_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
