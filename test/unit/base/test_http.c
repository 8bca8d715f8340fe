/* The HTTP client against a server that does what it is told. Names are resolved here, so that no test needs a network:
 * localhost and addresses as usual, "slow.test" not before it is let go, all else not at all. */
#include "exporter/base/http.h"
#include "test/fakes/fake_server.h"
#include "test/oom.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { MAX_ANSWER = 1 << 20, PATIENCE_MS = 30000 };

/* --- name service --- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t names_changed = PTHREAD_COND_INITIALIZER;
static unsigned names_waiting;
static bool names_go;

static void wait_for_slow_name(void)
{
    pthread_mutex_lock(&names_lock);
    names_waiting++;
    while (!names_go)
        pthread_cond_wait(&names_changed, &names_lock);
    names_waiting--;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
}

/* Takes the place of the C library's, for libcurl too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    unsigned char address[16];

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && strcmp(name, "slow.test") == 0)
        wait_for_slow_name();
    if (name && strcmp(name, "localhost") != 0 && inet_pton(AF_INET, name, address) != 1 &&
        inet_pton(AF_INET6, name, address) != 1)
        return EAI_NONAME;
    return real(name, service, hints, ret);
}

/* --- a client with its loop --- */

struct env {
    struct loop *loop;
    struct http *http;
    struct fake_server *server, *other;
};

struct got {
    unsigned times;
    struct http_answer a;
    struct buf body;
};

/* 2026-11-21T06:23:01Z */
static unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){1795242181000};
}

static mono_ms real_mono(const struct clock *c)
{
    (void)c;
    return clock_system.mono(&clock_system);
}

static const struct clock test_clock = {.mono = real_mono, .wall = fixed_wall};

static void open_client(struct env *e)
{
    assert_int_equal(loop_new(&e->loop, &test_clock), 0);
    assert_int_equal(http_new(&e->http, e->loop, "dynamic-scoring/test"), 0);
}

static void close_client(struct env *e)
{
    e->http = http_free(e->http);
    e->loop = loop_free(e->loop);
}

static int setup(void **state)
{
    static const char *const variables[] = {"http_proxy",    "HTTP_PROXY",   "https_proxy",   "HTTPS_PROXY",
                                            "all_proxy",     "ALL_PROXY",    "no_proxy",      "NO_PROXY",
                                            "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD"};
    struct env *e = calloc(1, sizeof(*e));

    for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
        unsetenv(variables[i]);
    e->server = fake_new();
    e->other = fake_new();
    open_client(e);
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    close_client(e);
    e->server = fake_free(e->server);
    e->other = fake_free(e->other);
    free(e);
    return 0;
}

static void on_done(void *arg, struct http_answer *a)
{
    struct got *g = arg;

    g->times++;
    g->a = *a;
    g->body = buf_take(&a->body);
}

static int64_t now(void)
{
    return clock_system.mono(&clock_system).ms;
}

static void turn_until(struct env *e, const unsigned *count, unsigned want)
{
    int64_t end = now() + PATIENCE_MS;

    while (*count < want && now() < end)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    assert_int_equal(*count, want);
}

static struct http_request rq_of(const char *url)
{
    return (struct http_request){.url = url, .max_answer = MAX_ANSWER, .timeout_ms = 20000};
}

static void start(struct env *e, const struct http_request *rq, struct got *g)
{
    struct http_call *c;

    *g = (struct got){0};
    assert_int_equal(http_start(&c, e->http, rq, on_done, g), 0);
    assert_int_equal(g->times, 0);
}

/* A whole call; the caller frees g->body. */
static void call(struct env *e, const struct http_request *rq, struct got *g)
{
    start(e, rq, g);
    turn_until(e, &g->times, 1);
}

static void get(struct env *e, const char *path, struct got *g)
{
    struct http_request rq = rq_of(fake_url(e->server, path));

    call(e, &rq, g);
}

static void assert_ok(const struct got *g, long status)
{
    assert_string_equal(g->a.reason, "");
    assert_string_equal(http_error_word(g->a.error), "ok");
    assert_int_equal(g->a.status, status);
}

static void assert_failed(const struct got *g, enum http_error error)
{
    assert_string_equal(http_error_word(g->a.error), http_error_word(error));
    assert_int_equal(g->a.status, 0);
    assert_null(g->body.p);
    assert_true(g->a.reason[0]);
    assert_null(strstr(g->a.reason, "secret"));
}

static void assert_body(struct got *g, const char *want)
{
    assert_int_equal(g->body.n, strlen(want));
    assert_memory_equal(g->body.p, want, g->body.n);
    buf_done(&g->body);
}

static void assert_header(const struct fake_request *rq, const char *name, const char *want)
{
    char value[256] = "(absent)";

    (void)fake_header(rq, name, value, sizeof(value));
    assert_string_equal(value, want);
}

/* --- what is sent, what is understood --- */

static void test_get(void **state)
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
    assert_true(g.a.seconds > 0 && g.a.seconds < 10);
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

static void test_post_small_parts(void **state)
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

static void test_methods(void **state)
{
    static const struct {
        const char *method;
        bool body;
        const char *sent;
    } cases[] = {{NULL, false, "GET"},     {NULL, true, "POST"},   {"POST", false, "POST"},
                 {"GET", false, "GET"},    {"PUT", true, "PUT"},   {"DELETE", false, "DELETE"},
                 {"PATCH", true, "PATCH"}, {"HEAD", false, "HEAD"}};
    struct env *e = *state;
    const struct str part = STR("x");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;
        rq.method = cases[i].method;
        rq.body = &part;
        rq.body_parts = cases[i].body;
        /* A HEAD's length announces what a GET would bring. */
        fake_push(e->server, (struct fake_answer){.status = 204, .mode = FAKE_PLAIN, .close = true});
        call(e, &rq, &g);
        assert_ok(&g, 204);
        assert_string_equal(fake_request(e->server, i)->method, cases[i].sent);
        assert_string_equal(fake_request(e->server, i)->body, cases[i].body ? "x" : "");
        assert_header(fake_request(e->server, i), "Content-Type", "(absent)");
        buf_done(&g.body);
    }
}

static void test_status_is_no_error(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.status = 500, .body = "{\"error\":\"bad\"}"});
    get(e, "/", &g);
    assert_ok(&g, 500);
    assert_body(&g, "{\"error\":\"bad\"}");
}

/* Three parts of uneven sizes, 20 MB in all, as a round sends its series. */
struct large {
    char *bytes;
    size_t n;
    struct str parts[3];
};

static void large_make(struct large *l)
{
    l->n = 20 << 20;
    l->bytes = malloc(l->n);
    for (size_t i = 0; i < l->n; i++)
        l->bytes[i] = (char)('a' + i % 23 + i / 1000000 % 3);
    l->parts[0] = (struct str){l->bytes, 9};
    l->parts[1] = (struct str){l->bytes + 9, l->n - 11};
    l->parts[2] = (struct str){l->bytes + l->n - 2, 2};
}

static void test_post_20_mb(void **state)
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

static void test_answer_before_the_body_is_sent(void **state)
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

static void test_chunked_one_byte_at_a_time(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.mode = FAKE_CHUNKED, .body = "{\"results\":[]}"});
    get(e, "/", &g);
    assert_ok(&g, 200);
    assert_body(&g, "{\"results\":[]}");
}

static void test_gzip_unasked(void **state)
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

static void test_user_in_url(void **state)
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

static void test_retry_after(void **state)
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

/* --- redirects --- */

static void test_redirect_same_host(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    struct got g;

    rq.bearer = STR("secret-token");
    fake_push(e->server, (struct fake_answer){.status = 302,
                                              .location = "/b",
                                              .body = "moved",
                                              .headers = "Retry-After: 9\r\nContent-Type: text/moved\r\n"});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    assert_int_equal(g.a.retry_after_ms, -1);
    assert_string_equal(g.a.content_type, "");
    assert_string_equal(fake_request(e->server, 1)->target, "/b");
    assert_header(fake_request(e->server, 1), "Authorization", "Bearer secret-token");
}

static void test_token_stays_with_its_host(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    const struct str part = STR("[1]");
    struct got g;

    for (int status = 301; status <= 308; status++) {
        size_t n = fake_requests(e->other);
        if (status >= 304 && status <= 306)
            continue;
        rq.bearer = STR("secret-token");
        rq.body = &part;
        rq.body_parts = 1;
        fake_push(e->server, (struct fake_answer){.status = status, .location = fake_url(e->other, "/b")});
        call(e, &rq, &g);
        assert_ok(&g, 200);
        assert_header(fake_request(e->other, n), "Authorization", "(absent)");
        assert_string_equal(fake_request(e->other, n)->method, status == 303 ? "GET" : "POST");
        assert_string_equal(fake_request(e->other, n)->body, status == 303 ? "" : "[1]");
        buf_done(&g.body);
    }
}

static void test_user_of_url_stays_with_its_host(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/", fake_port(e->server));
    rq = rq_of(url);
    fake_push(e->server, (struct fake_answer){.status = 307, .location = fake_url(e->other, "/b")});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_header(fake_request(e->other, 0), "Authorization", "(absent)");
    buf_done(&g.body);
}

static void test_redirect_sends_a_large_body_again(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    struct large l;
    struct got g;

    large_make(&l);
    rq.body = l.parts;
    rq.body_parts = 3;
    fake_push(e->server, (struct fake_answer){.status = 307, .location = "/b"});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_string_equal(fake_request(e->server, 1)->target, "/b");
    assert_int_equal(fake_request(e->server, 1)->body_len, l.n);
    assert_memory_equal(fake_request(e->server, 1)->body, l.bytes, l.n);
    buf_done(&g.body);
    free(l.bytes);
}

static void test_redirects_end(void **state)
{
    static const char *const targets[] = {"/again", "ftp://127.0.0.1/x", "file:///etc/passwd",
                                          "http://u:secret@[::1/"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        size_t n = fake_requests(e->server);
        struct got g;
        fake_default(e->server, (struct fake_answer){.status = 302, .location = targets[i]});
        get(e, "/", &g);
        assert_failed(&g, HTTP_BROKEN);
        assert_int_equal(fake_requests(e->server) - n, i == 0 ? 6 : 1);
    }
}

/* --- errors --- */

static void test_refused_at_start(void **state)
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

static void test_bad_urls(void **state)
{
    static const char *const urls[] = {"http://",     "http://user:secret@[::1/",  "http://h:99999/",
                                       "http://a b/", "http://user:sec/secret@h/", "http://user:secret@/x"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct http_request rq = rq_of(urls[i]);
        struct got g;
        call(e, &rq, &g);
        assert_failed(&g, HTTP_URL);
    }
}

static void test_name_does_not_resolve(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://user:secret@nowhere.test:9090/x");
    struct got g;

    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    assert_string_equal(g.a.reason, "host name nowhere.test does not resolve");
}

static unsigned closed_port(void)
{
    struct fake_server *s = fake_new();
    unsigned port = fake_port(s);

    (void)fake_free(s);
    return port;
}

static void test_connection_refused(void **state)
{
    struct env *e = *state;
    unsigned port = closed_port();
    char url[128], want[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/x", port);
    (void)snprintf(want, sizeof(want), "connection refused by 127.0.0.1:%u", port);
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_string_equal(g.a.reason, want);
}

static void test_broken_answers(void **state)
{
    static const struct {
        struct fake_answer answer;
        const char *reason; /* part of it */
    } cases[] = {
        {{.mode = FAKE_RAW, .body = "SSH-2.0-OpenSSH_9.2 secret \x01\x02\r\n"}, "HTTP/0.9"},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 banana\r\n\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/9.9 200 OK\r\n\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}, ""},
        {{.mode = FAKE_RAW,
          .body = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain"},
         ""},
        {{.body = "0123456789", .close_after = 45}, "bytes remaining"},
        {{.body = "0123456789", .close_after = 5}, ""},
        {{.mode = FAKE_CHUNKED, .body = "0123456789", .close_after = 80}, ""},
        {{.mode = FAKE_CLOSE}, "Empty reply"},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct got g;
        fake_push(e->server, cases[i].answer);
        get(e, "/", &g);
        assert_failed(&g, HTTP_BROKEN);
        assert_non_null(strstr(g.a.reason, cases[i].reason));
        for (const char *p = g.a.reason; *p; p++)
            assert_true(*p >= ' ' && *p < 0x7f);
    }
}

static void test_deadline(void **state)
{
    static const struct {
        enum fake_mode mode;
        int delay_ms;
        const char *reason;
    } cases[] = {{FAKE_HANG, 0, "no answer within 0.2 s"},
                 {FAKE_PLAIN, 5000, "no answer within 0.2 s"},
                 {FAKE_HANG_LATE, 0, "answer not complete within 0.2 s, 5 bytes came"}};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        int64_t began = now();
        struct got g;
        fake_push(e->server, (struct fake_answer){
                                 .mode = cases[i].mode, .body = "0123456789", .delay_ms = cases[i].delay_ms});
        rq.timeout_ms = 200;
        call(e, &rq, &g);
        assert_failed(&g, HTTP_TIMEOUT);
        assert_string_equal(g.a.reason, cases[i].reason);
        assert_true(now() - began >= 200 && now() - began < 3000);
    }
}

/* A chain of answers, each in time, does not outlive the deadline of the whole call. */
static void test_deadline_covers_redirects(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    fake_default(e->server, (struct fake_answer){.status = 302, .location = "/again", .delay_ms = 150});
    rq.timeout_ms = 300;
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TIMEOUT);
    assert_true(fake_requests(e->server) <= 3);
}

static void test_slow_name_server_delays_nobody(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://slow.test/");
    int64_t began = now();
    struct got slow, quick;

    rq.timeout_ms = 300;
    start(e, &rq, &slow);
    get(e, "/", &quick);
    assert_ok(&quick, 200);
    buf_done(&quick.body);
    turn_until(e, &slow.times, 1);
    assert_failed(&slow, HTTP_TIMEOUT);
    assert_non_null(strstr(slow.a.reason, "no connection to slow.test:80 within 0.3"));
    assert_true(now() - began < 3000);
    pthread_mutex_lock(&names_lock);
    names_go = true;
    pthread_cond_broadcast(&names_changed);
    while (names_waiting)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

/* --- ceilings --- */

static char zeros[1 << 20];

static void test_ceiling_by_content_length(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.body = zeros, .body_len = sizeof(zeros), .repeat = 100});
    get(e, "/", &g);
    assert_failed(&g, HTTP_TOO_LARGE);
    assert_string_equal(g.a.reason, "answer of 104857600 bytes, over the limit of 1048576");
    assert_true(g.a.received < 1 << 20);
}

static void test_ceiling_while_reading(void **state)
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
        assert_string_equal(g.a.reason, i == 0 ? "answer over the limit of 1048576 bytes"
                                               : "answer over the limit of 9 bytes");
    }
}

static void test_answer_as_large_as_the_ceiling(void **state)
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

static void test_header_ceiling(void **state)
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

/* --- many calls, and calls that end others --- */

static unsigned finished;

static void count_done(void *arg, struct http_answer *a)
{
    (void)arg;
    assert_int_equal(a->error, HTTP_OK);
    finished++;
}

static void test_256_at_once_beside_a_hanging_one(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/hang"));
    struct http_call *c;
    struct got hanging;
    int64_t began = now();

    fake_push(e->server, (struct fake_answer){.mode = FAKE_HANG, .only_path = "/hang"});
    start(e, &rq, &hanging);
    rq.url = fake_url(e->server, "/quick");
    finished = 0;
    for (int i = 0; i < 256; i++)
        assert_int_equal(http_start(&c, e->http, &rq, count_done, NULL), 0);
    turn_until(e, &finished, 256);
    assert_true(now() - began < 10000);
    assert_int_equal(hanging.times, 0);
}

static void test_connections_are_kept(void **state)
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
static void test_stale_connection(void **state)
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

static void meddle(void *arg, struct http_answer *a)
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

static void test_cancel(void **state)
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
static void test_cancel_from_done(void **state)
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

static void test_free_from_done(void **state)
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

/* --- proxies --- */

static void reopen(struct env *e)
{
    close_client(e);
    open_client(e);
}

static void test_proxy_in_upper_case(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://far.test/x");
    struct got g;

    setenv("HTTP_PROXY", fake_url(e->server, ""), 1);
    reopen(e);
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_string_equal(fake_request(e->server, 0)->target, "http://far.test/x");
    buf_done(&g.body);

    setenv("NO_PROXY", "near.test,.far.test", 1);
    rq.url = "http://far.test/y";
    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    unsetenv("NO_PROXY");
    unsetenv("http_proxy");

    setenv("REQUEST_METHOD", "GET", 1);
    reopen(e);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    unsetenv("REQUEST_METHOD");
    unsetenv("HTTP_PROXY");
    assert_null(getenv("http_proxy"));
}

static void test_proxy_errors(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("https://far.test/x");
    char proxy[128];
    struct got g;

    setenv("https_proxy", fake_url(e->server, ""), 1);
    fake_push(e->server, (struct fake_answer){.status = 403});
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "403"));

    setenv("https_proxy", "http://user:secret@gone.test:3128", 1);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "gone.test"));

    (void)snprintf(proxy, sizeof(proxy), "http://user:secret@127.0.0.1:%u", closed_port());
    setenv("https_proxy", proxy, 1);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, "127.0.0.1 port"));
    unsetenv("https_proxy");
}

/* --- TLS --- */

static void test_tls_to_a_plain_server(void **state)
{
    struct env *e = *state;
    char url[64];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", fake_port(e->server));
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
}

struct tls_server {
    char dir[32];
    pid_t pid;
    unsigned port;
};

/* openssl's own little server, with a certificate for "localhost" signed by itself. */
static bool tls_server_start(struct tls_server *s)
{
    char command[512];
    int out[2];
    FILE *f;

    strcpy(s->dir, "/tmp/test_http.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(
        command, sizeof(command),
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert "
        "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost >log 2>&1",
        s->dir);
    if (system(command) != 0)
        return false;
    assert_int_equal(pipe(out), 0);
    s->pid = fork();
    if (s->pid == 0) {
        if (chdir(s->dir) == 0 && dup2(out[1], 1) == 1 && freopen("/dev/null", "w", stderr))
            execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-key", "key", "-cert", "cert",
                   "-www", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    f = fdopen(out[0], "r");
    while (fgets(command, sizeof(command), f))
        if (sscanf(command, "ACCEPT 127.0.0.1:%u", &s->port) == 1)
            break;
    (void)fclose(f);
    return s->port != 0;
}

static void tls_server_stop(struct tls_server *s)
{
    char command[64];

    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    (void)snprintf(command, sizeof(command), "rm -r %s", s->dir);
    assert_int_equal(system(command), 0);
}

static void test_tls_is_verified(void **state)
{
    struct env *e = *state;
    struct tls_server s = {0};
    struct http_request rq;
    char url[64], cert[64];
    struct got g;

    if (!tls_server_start(&s)) {
        tls_server_stop(&s);
        skip();
    }
    (void)snprintf(url, sizeof(url), "https://localhost:%u/", s.port);
    (void)snprintf(cert, sizeof(cert), "%s/cert", s.dir);
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
    assert_non_null(strstr(g.a.reason, "certificate"));

    setenv("SSL_CERT_FILE", cert, 1);
    reopen(e);
    call(e, &rq, &g);
    assert_ok(&g, 200);
    buf_done(&g.body);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", s.port);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS); /* the certificate is for another name */

    setenv("SSL_CERT_FILE", "/nowhere/cert", 1);
    reopen(e);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
    unsetenv("SSL_CERT_FILE");
    tls_server_stop(&s);
}

/* --- the rest --- */

static void test_url_for_people(void **state)
{
    static const char *const cases[][2] = {
        {"http://h/p?q", "http://h/p?q"},
        {"http://u:secret@h:1/p", "http://h:1/p"},
        {"https://u@h", "https://h"},
        {"http://a:b@c:secret@h/x@y", "http://h/x@y"},
        {"http://h/p@q", "http://h/p@q"},
        {"http://h:80/p@q", "http://h:80/p@q"},
        {"http://[::1]:80/p@q", "http://[::1]:80/p@q"},
        {"http://u:secret@[::1]:80/", "http://[::1]:80/"},
        {"http://u:se/secret@h/x", "http://h/x"},
        {"http://h?x=http://u:p@k/", "http://h?x=http://u:p@k/"},
        {"u:secret@h/x", "h/x"},
        {"h/x?to=http://k/", "h/x?to=http://k/"},
        {"http://u:secret@", "http://"},
        {"http://", "http://"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 100);
        assert_int_equal(buf_puts(&b, "x"), 0);
        assert_int_equal(http_url_for_people(str_of(cases[i][0]), &b), 0);
        assert_int_equal(b.n - 1, strlen(cases[i][1]));
        assert_memory_equal(b.p + 1, cases[i][1], b.n - 1);
    }
    BUF_AUTO(tight, 10);
    assert_int_equal(http_url_for_people(STR("http://h/pp"), &tight), -EFBIG);
    assert_int_equal(tight.n, 0);
}

static void test_error_words(void **state)
{
    (void)state;
    for (int i = 0; i < HTTP_ERRORS; i++)
        assert_true(http_error_word((enum http_error)i)[0]);
    assert_string_equal(http_error_word(HTTP_TOO_LARGE), "too_large");
    assert_string_equal(http_error_word(HTTP_ERRORS), "unknown");
}

static void test_memory_runs_out(void **state)
{
    struct env *e = *state;
    const struct str part = STR("[1]");
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct loop *loop;
    struct got g;

    rq.body = &part;
    rq.body_parts = 1;
    rq.bearer = STR("token");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct http *h = NULL;
        struct http_call *c = NULL;
        unsigned seen = 0;
        int r;
        g = (struct got){0};
        oom_fail_at(0);
        assert_int_equal(loop_new(&loop, &test_clock), 0);
        oom_fail_at(n);
        r = http_new(&h, loop, "x/1");
        if (r == 0)
            r = http_start(&c, h, &rq, on_done, &g);
        while (r == 0 && g.times == 0 && seen++ < 1000)
            assert_int_equal(loop_turn(loop, 50), 0);
        if (r < 0)
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(g.a.error, oom_happened() && g.body.n == 0 ? HTTP_MEMORY : HTTP_OK);
        assert_true(oom_happened() || r == 0);
        buf_done(&g.body);
        (void)http_free(h);
        (void)loop_free(loop);
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_get),
        CASE(test_post_small_parts),
        CASE(test_methods),
        CASE(test_status_is_no_error),
        CASE(test_post_20_mb),
        CASE(test_answer_before_the_body_is_sent),
        CASE(test_chunked_one_byte_at_a_time),
        CASE(test_gzip_unasked),
        CASE(test_user_in_url),
        CASE(test_retry_after),
        CASE(test_redirect_same_host),
        CASE(test_token_stays_with_its_host),
        CASE(test_user_of_url_stays_with_its_host),
        CASE(test_redirect_sends_a_large_body_again),
        CASE(test_redirects_end),
        CASE(test_refused_at_start),
        CASE(test_bad_urls),
        CASE(test_name_does_not_resolve),
        CASE(test_connection_refused),
        CASE(test_broken_answers),
        CASE(test_deadline),
        CASE(test_deadline_covers_redirects),
        CASE(test_slow_name_server_delays_nobody),
        CASE(test_ceiling_by_content_length),
        CASE(test_ceiling_while_reading),
        CASE(test_answer_as_large_as_the_ceiling),
        CASE(test_header_ceiling),
        CASE(test_256_at_once_beside_a_hanging_one),
        CASE(test_connections_are_kept),
        CASE(test_stale_connection),
        CASE(test_cancel),
        CASE(test_cancel_from_done),
        CASE(test_free_from_done),
        CASE(test_proxy_in_upper_case),
        CASE(test_proxy_errors),
        CASE(test_tls_to_a_plain_server),
        CASE(test_tls_is_verified),
        CASE(test_memory_runs_out),
        cmocka_unit_test(test_url_for_people),
        cmocka_unit_test(test_error_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
