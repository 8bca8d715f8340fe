/* The HTTP server, asked over raw sockets; the test's own thread is the loop's. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "test/oom.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { PATIENCE_MS = 30000, MAX_CONNECTIONS = 400, LARGE_PARTS = 3, LARGE_PART = 8 << 20, MANY = 5000 };

struct env {
    struct loop *loop;
    struct httpd *server;
    /* What handlers and `served` saw */
    char accept[256], accept_encoding[64], method[16], path[64], query[64];
    atomic_int handled, released, served;
    char served_route[64];
    unsigned served_status;
    uint64_t served_bytes;
    bool many;
    struct iovec parts[MANY];
};

static char large[LARGE_PART];

static void note_request(struct env *e, const struct httpd_request *rq)
{
    const char *x = httpd_query(rq, "x");

    (void)snprintf(e->accept, sizeof(e->accept), "%s", rq->accept);
    (void)snprintf(e->accept_encoding, sizeof(e->accept_encoding), "%s", rq->accept_encoding);
    (void)snprintf(e->method, sizeof(e->method), "%s", rq->method);
    (void)snprintf(e->path, sizeof(e->path), "%s", rq->path);
    (void)snprintf(e->query, sizeof(e->query), "%s", x ? x : "(null)");
    atomic_fetch_add(&e->handled, 1);
}

static void on_hello(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_reply_copy(reply, STR("hello"));
}

static void on_page(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_reply_copy(reply, STR("<p>"));
    reply->status = 202;
    reply->content_type = "text/html; charset=utf-8";
    reply->content_encoding = "identity";
    reply->vary = "Accept";
    reply->csp = "default-src 'none'";
    reply->cache = true;
}

static void on_released(void *arg)
{
    struct env *e = arg;

    atomic_fetch_add(&e->released, 1);
}

static void on_large(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct env *e = arg;

    (void)rq;
    reply->n_parts = e->many ? MANY : LARGE_PARTS;
    for (unsigned i = 0; i < reply->n_parts; i++)
        e->parts[i] = (struct iovec){large + i, e->many ? i % 7 : sizeof(large) - LARGE_PARTS};
    reply->parts = e->parts;
    reply->release = on_released;
    reply->arg = e;
}

static void on_nothing(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    reply->release = on_released;
    reply->arg = arg;
}

static void on_served(void *arg, const char *route, unsigned status, uint64_t bytes)
{
    struct env *e = arg;

    (void)snprintf(e->served_route, sizeof(e->served_route), "%s", route);
    e->served_status = status;
    e->served_bytes = bytes;
    atomic_fetch_add(&e->served, 1);
}

static struct httpd_route routes[] = {
    {"GET", "/direct", on_hello, NULL, true},    {"GET", "/loop", on_hello, NULL, false},
    {"POST", "/loop", on_hello, NULL, false},    {"POST", "/post", on_hello, NULL, true},
    {"GET", "/page", on_page, NULL, false},      {"GET", "/large", on_large, NULL, true},
    {"GET", "/nothing", on_nothing, NULL, true}, {"GET", "/large-loop", on_large, NULL, false},
};

static const char *const one_address[] = {"127.0.0.1:0"};

static struct httpd_options options_for(struct env *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        routes[i].arg = e;
    return (struct httpd_options){.listen = one_address,
                                  .n_listen = 1,
                                  .max_connections = MAX_CONNECTIONS,
                                  .idle_seconds = 60,
                                  .routes = routes,
                                  .n_routes = ARRAY_SIZE(routes),
                                  .served = on_served,
                                  .served_arg = e};
}

static void open_server(struct env *e, const struct httpd_options *o)
{
    char *why = NULL;

    e->server = httpd_stop(e->server, 0);
    assert_int_equal(httpd_new(&e->server, e->loop, o, &why), 0);
    assert_null(why);
}

static int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));
    struct httpd_options o = options_for(e);

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 19 + i / 65536 % 5);
    assert_int_equal(loop_new(&e->loop, &clock_system), 0);
    open_server(e, &o);
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    e->server = httpd_stop(e->server, 0);
    e->loop = loop_free(e->loop);
    free(e);
    return 0;
}

/* --- a client --- */

static int64_t now(void)
{
    return clock_system.mono(&clock_system).ms;
}

static int dial(unsigned port, int receive_buffer)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    if (receive_buffer)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void say(int fd, const char *text, size_t n)
{
    for (ssize_t r; n; text += r, n -= (size_t)r)
        assert_true((r = send(fd, text, n, MSG_NOSIGNAL)) > 0);
}

/* Turns the loop until there is something to read; the bytes read, 0 at the end, -1 after PATIENCE_MS. */
static ssize_t hear(struct env *e, int fd, char *to, size_t n)
{
    int64_t end = now() + PATIENCE_MS;

    while (now() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_equal(loop_turn(e->loop, 0), 0);
        if (poll(&p, 1, 1) == 1)
            return recv(fd, to, n, 0);
    }
    return -1;
}

/* All that comes until the server closes. */
static void hear_all(struct env *e, int fd, struct buf *b)
{
    char *room;
    ssize_t r;

    do {
        assert_int_equal(buf_room(b, 65536, &room), 0);
        r = hear(e, fd, room, 65535);
        if (r > 0)
            b->n += (size_t)r;
    } while (r > 0);
    assert_true(r == 0 || errno == ECONNRESET);
    b->p[b->n] = '\0';
}

/* Sends one request on a connection of its own and gives the whole answer. */
static void ask(struct env *e, const char *request, struct buf *b)
{
    int fd = dial(httpd_port(e->server, 0), 0);

    b->n = 0;
    say(fd, request, strlen(request));
    hear_all(e, fd, b);
    (void)close(fd);
}

static const char *body_of(const struct buf *b)
{
    const char *end = strstr(b->p, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

static void wait_for(struct env *e, atomic_int *count, int want)
{
    int64_t end = now() + PATIENCE_MS;

    while (atomic_load(count) < want && now() < end)
        assert_int_equal(loop_turn(e->loop, 1), 0);
    assert_int_equal(atomic_load(count), want);
}

#define REQUEST(line) line " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

/* --- answers --- */

static void test_routes(void **state)
{
    static const struct {
        const char *request, *status, *body;
        int handled;
        const char *route;
    } cases[] = {
        {REQUEST("GET /direct"), "HTTP/1.1 200 OK", "hello", 1, "/direct"},
        {REQUEST("GET /loop"), "HTTP/1.1 200 OK", "hello", 1, "/loop"},
        {REQUEST("POST /loop"), "HTTP/1.1 200 OK", "hello", 1, "/loop"},
        {REQUEST("POST /post"), "HTTP/1.1 200 OK", "hello", 1, "/post"},
        {REQUEST("HEAD /direct"), "HTTP/1.1 200 OK", "", 1, "/direct"},
        {REQUEST("HEAD /loop"), "HTTP/1.1 200 OK", "", 1, "/loop"},
        {REQUEST("GET /%64irect?x=1"), "HTTP/1.1 200 OK", "hello", 1, "/direct"},
        {REQUEST("GET /post"), "HTTP/1.1 405 ", "405: this path does not take this method\n", 0, "/post"},
        {REQUEST("DELETE /loop"), "HTTP/1.1 405 ", "405: this path does not take this method\n", 0, "/loop"},
        {REQUEST("HEAD /post"), "HTTP/1.1 405 ", "", 0, "/post"},
        {REQUEST("GET /other"), "HTTP/1.1 404 ", NULL, 0, "other"},
        {REQUEST("GET /direct/"), "HTTP/1.1 404 ", NULL, 0, "other"},
        {"GET /direct HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK", "hello", 1, "/direct"},
    };
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        atomic_store(&e->handled, 0);
        ask(e, cases[i].request, &b);
        if (strncmp(b.p, cases[i].status, strlen(cases[i].status)) != 0 &&
            strncmp(b.p + 9, cases[i].status + 9, 3) != 0)
            assert_string_equal(b.p, cases[i].status);
        if (cases[i].body)
            assert_string_equal(body_of(&b), cases[i].body);
        assert_non_null(strstr(b.p, "\r\nContent-Length: "));
        assert_non_null(strstr(b.p, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
        assert_non_null(strstr(b.p, "\r\nX-Content-Type-Options: nosniff\r\n"));
        assert_non_null(strstr(b.p, "\r\nCache-Control: no-store\r\n"));
        assert_int_equal(atomic_load(&e->handled), cases[i].handled);
        wait_for(e, &e->served, (int)i + 1);
        assert_string_equal(e->served_route, cases[i].route);
        assert_int_equal(e->served_bytes, strlen(body_of(&b)));
    }
}

static void test_not_found_lists_paths(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e, REQUEST("GET /<script>"), &b);
    assert_non_null(strstr(body_of(&b), "GET /direct\n"));
    assert_non_null(strstr(body_of(&b), "POST /post\n"));
    assert_null(strstr(body_of(&b), "script"));
}

static void test_allow(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e, REQUEST("PUT /loop"), &b);
    assert_non_null(strstr(b.p, "\r\nAllow: GET, HEAD, POST\r\n"));
    ask(e, REQUEST("GET /post"), &b);
    assert_non_null(strstr(b.p, "\r\nAllow: POST\r\n"));
    ask(e, REQUEST("POST /direct"), &b);
    assert_non_null(strstr(b.p, "\r\nAllow: GET, HEAD\r\n"));
}

static void test_headers_of_a_reply(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e, REQUEST("GET /page"), &b);
    assert_non_null(strstr(b.p, " 202 "));
    assert_non_null(strstr(b.p, "\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(b.p, "\r\nContent-Encoding: identity\r\n"));
    assert_non_null(strstr(b.p, "\r\nVary: Accept\r\n"));
    assert_non_null(strstr(b.p, "\r\nContent-Security-Policy: default-src 'none'\r\n"));
    assert_null(strstr(b.p, "\r\nCache-Control:"));
}

static void test_what_a_handler_reads(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e,
        "GET /loop?x=a%20b&y=2 HTTP/1.1\r\nHost: h\r\nAccept: text/plain;q=0.5\r\nConnection: close\r\n"
        "accept: application/json\r\nAccept-Encoding: gzip\r\nACCEPT: */*\r\n\r\n",
        &b);
    assert_string_equal(e->method, "GET");
    assert_string_equal(e->path, "/loop");
    assert_string_equal(e->query, "a b");
    assert_string_equal(e->accept, "text/plain;q=0.5, application/json, */*");
    assert_string_equal(e->accept_encoding, "gzip");
    ask(e, REQUEST("HEAD /direct"), &b);
    assert_string_equal(e->method, "GET");
    assert_string_equal(e->query, "(null)");
    assert_string_equal(e->accept, "");
    assert_string_equal(e->accept_encoding, "");
}

static void test_bad_requests(void **state)
{
    static const char *const requests[] = {
        "\x16\x03\x01 hello\r\n\r\n", "GET\r\n\r\n", "GET /direct HTTP/9.9\r\n\r\n",
        "POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        "POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        ask(e, requests[i], &b);
        assert_int_equal(atomic_load(&e->handled), 0);
        assert_true(b.n == 0 || strncmp(b.p + 8, " 4", 2) == 0 || strncmp(b.p + 8, " 5", 2) == 0);
    }
    ask(e, REQUEST("GET /direct"), &b);
    assert_string_equal(body_of(&b), "hello");
}

static void test_bodies_of_requests(void **state)
{
    static const struct {
        size_t n;
        bool chunked;
        int status; /* 0: closed without an answer */
    } cases[] = {{0, false, 200},       {10, false, 200},   {65536, false, 200}, {65537, false, 413},
                 {1 << 20, false, 413}, {65536, true, 200}, {65537, true, 413},  {(1 << 20) + 1, false, 413},
                 {3 << 20, true, 0}};
    struct env *e = *state;
    char head[200];
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = dial(httpd_port(e->server, 0), 0);
        bool all = cases[i].chunked || cases[i].n <= 1 << 20;
        (void)snprintf(
            head, sizeof(head), "POST /post HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s%zu\r\n\r\n",
            cases[i].chunked ? "Transfer-Encoding: chunked\r\nX: " : "Content-Length: ", cases[i].n);
        say(fd, head, strlen(head));
        (void)snprintf(head, sizeof(head), "%zx\r\n", cases[i].n);
        if (cases[i].chunked)
            say(fd, head, strlen(head));
        for (size_t left = all ? cases[i].n : 0; left;) {
            ssize_t r = send(fd, large, size_min(left, sizeof(large)), MSG_NOSIGNAL);
            if (r < 0)
                break;
            left -= (size_t)r;
        }
        if (cases[i].chunked)
            (void)send(fd, "\r\n0\r\n\r\n", 7, MSG_NOSIGNAL);
        b.n = 0;
        hear_all(e, fd, &b);
        assert_int_equal(b.n ? atoi(b.p + 9) : 0, cases[i].status);
        (void)close(fd);
    }
}

/* --- large answers --- */

static void check_large(struct env *e, const struct buf *b)
{
    const char *body = body_of(b);
    size_t n = 0;

    for (unsigned i = 0; i < (e->many ? MANY : LARGE_PARTS); i++) {
        assert_memory_equal(body + n, e->parts[i].iov_base, e->parts[i].iov_len);
        n += e->parts[i].iov_len;
    }
    assert_int_equal(b->n - (size_t)(body - b->p), n);
}

static void test_large_answer(void **state)
{
    static const char *const requests[] = {REQUEST("GET /large"), REQUEST("GET /large-loop")};
    struct env *e = *state;
    BUF_AUTO(b, 64 << 20);

    for (int i = 0; i < 4; i++) {
        e->many = i >= 2;
        ask(e, requests[i % 2], &b);
        check_large(e, &b);
        wait_for(e, &e->released, i + 1);
    }
    ask(e, REQUEST("HEAD /large"), &b);
    assert_string_equal(body_of(&b), "");
    wait_for(e, &e->released, 5);
    ask(e, REQUEST("GET /nothing"), &b);
    assert_string_equal(body_of(&b), "");
    wait_for(e, &e->released, 6);
}

/* The headers of the request take much of the memory that the array of parts is copied into. */
static void test_parts_beside_large_headers(void **state)
{
    struct env *e = *state;
    BUF_AUTO(request, 1 << 20);
    BUF_AUTO(b, 64 << 20);

    e->many = true;
    assert_int_equal(
        buf_printf(&request, "GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: %012000d\r\n\r\n", 0),
        0);
    assert_int_equal(buf_putc(&request, '\0'), 0);
    ask(e, request.p, &b);
    check_large(e, &b);
}

static void test_slow_reader(void **state)
{
    struct env *e = *state;
    int fd = dial(httpd_port(e->server, 0), 4096);
    BUF_AUTO(quick, 1 << 20);
    BUF_AUTO(b, 64 << 20);
    char *room;

    say(fd, REQUEST("GET /large"), strlen(REQUEST("GET /large")));
    /* A little now and then; others are served meanwhile. */
    for (int i = 0; i < 50; i++) {
        ssize_t r;
        assert_int_equal(buf_room(&b, 1024, &room), 0);
        r = hear(e, fd, room, 1000);
        assert_true(r > 0);
        b.n += (size_t)r;
        ask(e, REQUEST("GET /direct"), &quick);
        assert_string_equal(body_of(&quick), "hello");
        assert_int_equal(atomic_load(&e->released), 0);
    }
    hear_all(e, fd, &b);
    check_large(e, &b);
    (void)close(fd);
    wait_for(e, &e->released, 1);
}

static void test_reader_goes_away(void **state)
{
    static const char *const requests[] = {REQUEST("GET /large"), REQUEST("GET /large-loop")};
    struct env *e = *state;

    for (int i = 0; i < 8; i++) {
        int fd = dial(httpd_port(e->server, 0), 4096);
        char some[100];
        e->many = i & 2;
        say(fd, requests[i % 2], strlen(requests[i % 2]));
        if (i < 4)
            assert_true(hear(e, fd, some, sizeof(some)) > 0);
        (void)close(fd); /* what is unread makes this a reset */
        wait_for(e, &e->released, i + 1);
    }
}

/* --- many clients --- */

struct client {
    int fd;
    unsigned answers;
    size_t have;
    char in[1024];
    int64_t asked, worst;
};

static void client_ask(struct client *c, const char *request)
{
    c->asked = now();
    say(c->fd, request, strlen(request));
}

/* Reads what is there; true when an answer is whole. */
static bool client_read(struct client *c)
{
    ssize_t r = recv(c->fd, c->in + c->have, sizeof(c->in) - 1 - c->have, MSG_DONTWAIT);

    if (r < 0 && errno == EAGAIN)
        return false;
    assert_true(r > 0);
    c->have += (size_t)r;
    c->in[c->have] = '\0';
    if (c->have < 5 || memcmp(c->in + c->have - 5, "hello", 5) != 0)
        return false;
    c->have = 0;
    c->answers++;
    if (now() - c->asked > c->worst)
        c->worst = now() - c->asked;
    return true;
}

/* Each of n kept connections asks 20 times; none waits long. */
static void crowd(struct env *e, const char *request, unsigned n)
{
    struct client *clients = calloc(n, sizeof(*clients));
    int64_t began = now(), worst = 0;
    unsigned left = n;

    for (unsigned i = 0; i < n; i++) {
        clients[i].fd = dial(httpd_port(e->server, 0), 0);
        client_ask(&clients[i], request);
    }
    while (left && now() - began < PATIENCE_MS) {
        assert_int_equal(loop_turn(e->loop, 0), 0);
        for (unsigned i = 0; i < n; i++)
            if (clients[i].answers < 20 && client_read(&clients[i])) {
                if (clients[i].answers < 20)
                    client_ask(&clients[i], request);
                else
                    left--;
            }
    }
    assert_int_equal(left, 0);
    for (unsigned i = 0; i < n; i++) {
        (void)close(clients[i].fd);
        worst = clients[i].worst > worst ? clients[i].worst : worst;
    }
    assert_true(worst < 5000);
    free(clients);
}

#define KEPT(line, rest) line " HTTP/1.1\r\nHost: h\r\n" rest

static void test_300_clients(void **state)
{
    struct env *e = *state;

    crowd(e, KEPT("GET /direct", "\r\n"), 300);
    crowd(e, KEPT("GET /loop", "\r\n"), 300);
    crowd(e, KEPT("POST /loop", "Content-Length: 5\r\n\r\nabcde"), 300);
    assert_int_equal(atomic_load(&e->handled), 3 * 300 * 20);
}

static void test_too_many_connections(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    struct client few[4] = {0};
    int64_t end = now() + PATIENCE_MS;
    BUF_AUTO(b, 1 << 20);

    o.max_connections = ARRAY_SIZE(few);
    open_server(e, &o);
    for (size_t i = 0; i < ARRAY_SIZE(few); i++) {
        few[i].fd = dial(httpd_port(e->server, 0), 0);
        client_ask(&few[i], KEPT("GET /direct", "\r\n"));
        while (!client_read(&few[i]))
            assert_true(now() < end);
    }
    ask(e, KEPT("GET /direct", "\r\n"), &b); /* which the server closes */
    assert_non_null(strstr(b.p, " 503 "));
    assert_non_null(strstr(b.p, "\r\nConnection: close\r\n"));
    (void)close(few[0].fd);
    do
        ask(e, REQUEST("GET /direct"), &b);
    while (strstr(b.p, " 503 ") && now() < end);
    assert_string_equal(body_of(&b), "hello");
    for (size_t i = 1; i < ARRAY_SIZE(few); i++)
        (void)close(few[i].fd);
}

static void test_idle_connections_are_closed(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.idle_seconds = 1;
    open_server(e, &o);
    ask(e, "GET /direct HTTP/1.1\r\nHost:", &b); /* and never the rest */
    assert_int_equal(atomic_load(&e->handled), 0);
}

/* --- the end --- */

/* Once a second connection is answered, what the first had sent before has been read. */
static void let_server_read(struct env *e)
{
    BUF_AUTO(b, 1 << 20);

    for (int i = 0; i < 3; i++) {
        int fd = dial(httpd_port(e->server, 0), 0);
        say(fd, REQUEST("HEAD /direct"), strlen(REQUEST("HEAD /direct")));
        b.n = 0;
        assert_int_equal(buf_room(&b, 65536, &(char *){NULL}), 0);
        for (ssize_t r = 1; r > 0 && b.n < 60000;) {
            r = recv(fd, b.p, 60000, 0); /* without a turn of the loop */
            assert_true(r >= 0);
        }
        (void)close(fd);
    }
}

static void test_stop_with_requests_waiting(void **state)
{
    struct env *e = *state;
    int fds[50];
    int64_t began;
    int handled;

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], KEPT("GET /loop", "\r\n"), strlen(KEPT("GET /loop", "\r\n")));
    }
    let_server_read(e);
    (void)close(fds[0]);
    handled = atomic_load(&e->handled);
    began = now();
    e->server = httpd_stop(e->server, 20000);
    assert_true(now() - began < 10000);
    assert_int_equal(atomic_load(&e->handled), handled);
    for (size_t i = 1; i < ARRAY_SIZE(fds); i++) {
        BUF_AUTO(b, 1 << 20);
        hear_all(e, fds[i], &b);
        assert_non_null(strstr(b.p, " 503 "));
        assert_non_null(strstr(b.p, "\r\nConnection: close\r\n"));
        (void)close(fds[i]);
    }
}

static void test_stop_waits_no_longer_than_its_grace(void **state)
{
    struct env *e = *state;
    int idle = dial(httpd_port(e->server, 0), 0), stuck = dial(httpd_port(e->server, 0), 4096);
    int64_t began;

    say(stuck, REQUEST("GET /large"), strlen(REQUEST("GET /large")));
    let_server_read(e);
    began = now();
    e->server = httpd_stop(e->server, 200);
    assert_true(now() - began >= 200 && now() - began < 5000);
    assert_int_equal(atomic_load(&e->released), 1);
    (void)close(idle);
    (void)close(stuck);
}

static void test_stop_lets_an_answer_leave(void **state)
{
    struct env *e = *state;
    int fd = dial(httpd_port(e->server, 0), 0);
    BUF_AUTO(b, 1 << 20);

    say(fd, REQUEST("GET /page"), strlen(REQUEST("GET /page")));
    wait_for(e, &e->handled, 1);
    e->server = httpd_stop(e->server, 20000);
    hear_all(e, fd, &b);
    assert_string_equal(body_of(&b), "<p>");
    (void)close(fd);
    assert_null(httpd_stop(NULL, 1));
}

/* --- listen addresses --- */

static void refuse(struct env *e, const char *address, int error, const char *why_part)
{
    struct httpd_options o = options_for(e);
    struct httpd *h = NULL;
    char *why = NULL;

    o.listen = &address;
    assert_int_equal(httpd_new(&h, e->loop, &o, &why), error);
    assert_null(h);
    assert_non_null(why);
    if (!strstr(why, why_part))
        assert_string_equal(why, why_part);
    if (!strstr(why, address))
        assert_string_equal(why, address);
    free(why);
}

static void test_bad_addresses(void **state)
{
    static const char *const addresses[][2] = {
        {"", "expected host:port"},
        {"8080", "expected host:port"},
        {"localhost", "expected host:port"},
        {":", "port is missing"},
        {"127.0.0.1:", "port is missing"},
        {":65536", "number from 0 to 65535"},
        {":-1", "number from 0 to 65535"},
        {":http", "number from 0"},
        {":80a", "number from 0"},
        {":99999999999", "number from 0"},
        {"::1:80", "brackets"},
        {"[::1]", "[IPv6 address]:port"},
        {"[::1:80", "[IPv6 address]:port"},
        {"[]:80", "[IPv6 address]:port"},
        {"[::1]x:80", "[IPv6 address]:port"},
        {"300.1.1.1:80", "cannot be found"},
        {"http://h:80", "brackets"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        refuse(*state, addresses[i][0], -EINVAL, addresses[i][1]);
}

static void test_port_in_use(void **state)
{
    struct env *e = *state;
    char address[64], both[64];
    const char *two[] = {"127.0.0.1:0", both};
    struct httpd_options o = options_for(e);
    struct httpd *h = NULL;
    char *why = NULL;

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", httpd_port(e->server, 0));
    refuse(e, address, -EADDRINUSE, "address already in use");
    (void)snprintf(both, sizeof(both), ":%u", httpd_port(e->server, 0));
    refuse(e, both, -EADDRINUSE, "address already in use");
    refuse(e, "192.0.2.1:80", -EADDRNOTAVAIL, "cannot assign requested address");

    /* The first address is let go of again. */
    o.listen = two;
    o.n_listen = 2;
    assert_int_equal(httpd_new(&h, e->loop, &o, &why), -EADDRINUSE);
    assert_non_null(strstr(why, both));
    free(why);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

    if (fd >= 0)
        (void)close(fd);
    return has;
}

static void test_several_addresses(void **state)
{
    struct env *e = *state;
    const char *addresses[] = {":0", "localhost:0", "127.0.0.1:0", "[::1]:0"};
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.listen = addresses;
    o.n_listen = has_ipv6() ? 4 : 3;
    open_server(e, &o);
    for (size_t i = 0; i < 3; i++) {
        int fd = dial(httpd_port(e->server, i), 0);
        say(fd, REQUEST("GET /loop"), strlen(REQUEST("GET /loop")));
        b.n = 0;
        hear_all(e, fd, &b);
        assert_string_equal(body_of(&b), "hello");
        (void)close(fd);
    }
    assert_true(o.n_listen == 3 || httpd_port(e->server, 3) != 0);
    assert_int_equal(httpd_port(e->server, 4), 0);
}

/* --- memory --- */

static void test_memory_runs_out_at_start(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);

    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct httpd *h = NULL;
        char *why = NULL;
        int r = httpd_new(&h, e->loop, &o, &why);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        assert_true(r == 0 || !h);
        free(why);
        (void)httpd_stop(h, 0);
    }
}

static void test_memory_runs_out_in_a_request(void **state)
{
    static const char *const requests[] = {
        "GET /loop HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAccept: a\r\nAccept: b\r\n\r\n",
        REQUEST("GET /direct"), REQUEST("GET /large"), REQUEST("GET /none")};
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    e->many = true;
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        for (long n = 1, seen = 1; seen; n++) {
            b.n = 0;
            assert_int_equal(buf_room(&b, 200000, &(char *){NULL}),
                             0); /* the test's own allocations come first */
            oom_fail_at(n);
            ask(e, requests[i], &b);
            seen = oom_happened();
            oom_fail_at(0);
            /* Closed, a 500, or an answer that does without. */
            assert_true(b.n == 0 || strncmp(b.p, "HTTP/1.1 ", 9) == 0);
            assert_true(seen || strstr(b.p, i == 3 ? " 404 " : " 200 "));
        }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_routes),
        CASE(test_not_found_lists_paths),
        CASE(test_allow),
        CASE(test_headers_of_a_reply),
        CASE(test_what_a_handler_reads),
        CASE(test_bad_requests),
        CASE(test_bodies_of_requests),
        CASE(test_large_answer),
        CASE(test_parts_beside_large_headers),
        CASE(test_slow_reader),
        CASE(test_reader_goes_away),
        CASE(test_300_clients),
        CASE(test_too_many_connections),
        CASE(test_idle_connections_are_closed),
        CASE(test_stop_with_requests_waiting),
        CASE(test_stop_waits_no_longer_than_its_grace),
        CASE(test_stop_lets_an_answer_leave),
        CASE(test_bad_addresses),
        CASE(test_port_in_use),
        CASE(test_several_addresses),
        CASE(test_memory_runs_out_at_start),
        CASE(test_memory_runs_out_in_a_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
