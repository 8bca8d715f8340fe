/* What the tests of the HTTP server share: a server with routes of every kind, and a client on a raw
 * socket. The test's own thread is the loop's. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, MAX_CONNECTIONS = 400, LARGE_PARTS = 3, LARGE_PART = 8 << 20, MANY = 5000 };

struct env {
    struct loop *loop;
    struct httpd *server;
    /* What handlers and `served` saw */
    char accept[256], accept_encoding[64], if_none_match[64], method[16], path[64], query[64];
    atomic_int handled, released, served;
    char served_route[64];
    unsigned served_status;
    uint64_t served_bytes;
    /* The large answer: so many of these parts */
    atomic_uint n_parts;
    _Atomic(struct iovec *) parts;
    struct iovec large[LARGE_PARTS], small[MANY];
};

static char large[LARGE_PART];

static inline void note_request(struct env *e, const struct httpd_request *rq)
{
    const char *x = httpd_query(rq, "x");

    (void)snprintf(e->accept, sizeof(e->accept), "%s", rq->accept);
    (void)snprintf(e->accept_encoding, sizeof(e->accept_encoding), "%s", rq->accept_encoding);
    (void)snprintf(e->if_none_match, sizeof(e->if_none_match), "%s", rq->if_none_match);
    (void)snprintf(e->method, sizeof(e->method), "%s", rq->method);
    (void)snprintf(e->path, sizeof(e->path), "%s", rq->path);
    (void)snprintf(e->query, sizeof(e->query), "%s", x ? x : "(null)");
    atomic_fetch_add(&e->handled, 1);
}

static inline void on_hello(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_reply_text(reply, 200, STR("hello"));
}

static inline void on_page(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_reply_copy(reply, STR("<p>"));
    reply->status = 202;
    reply->content_type = "text/html; charset=utf-8";
    reply->content_encoding = "identity";
    reply->vary = "Accept";
    reply->csp = "default-src 'none'";
    reply->cache_control = "no-cache";
    reply->etag = "\"abc\"";
}

static inline void on_released(void *arg)
{
    struct env *e = arg;

    atomic_fetch_add(&e->released, 1);
}

static inline void on_large(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct env *e = arg;

    (void)rq;
    reply->n_parts = atomic_load(&e->n_parts);
    reply->parts = atomic_load(&e->parts);
    reply->release = on_released;
    reply->arg = e;
}

/* From the next request on. */
static inline void answer_with(struct env *e, struct iovec *parts, unsigned n)
{
    atomic_store(&e->parts, parts);
    atomic_store(&e->n_parts, n);
}

static inline void on_nothing(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)rq;
    reply->release = on_released;
    reply->arg = arg;
}

static inline void on_served(void *arg, const char *route, unsigned status, uint64_t bytes)
{
    struct env *e = arg;

    (void)snprintf(e->served_route, sizeof(e->served_route), "%s", route);
    e->served_status = status;
    e->served_bytes = bytes;
    atomic_fetch_add(&e->served, 1);
}

static struct httpd_route routes[] = {
    {"GET", "/direct", on_hello, NULL, true, 0, 0, false},
    {"GET", "/loop", on_hello, NULL, false, 0, 0, false},
    {"POST", "/loop", on_hello, NULL, false, 0, 0, false},
    {"POST", "/post", on_hello, NULL, true, 0, 0, false},
    {"GET", "/page", on_page, NULL, false, 0, 0, false},
    {"GET", "/large", on_large, NULL, true, 0, 0, false},
    {"GET", "/nothing", on_nothing, NULL, true, 0, 0, false},
    {"GET", "/large-loop", on_large, NULL, false, 0, 0, false},
    {"POST", "/spaced", on_hello, NULL, false, 300, 0, false},
};

static const char *const one_address[] = {"127.0.0.1:0"};

static inline struct httpd_options options_for(struct env *e)
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

static inline void open_server(struct env *e, const struct httpd_options *o)
{
    char *why = NULL;

    e->server = httpd_stop(e->server, 0);
    assert_int_equal(httpd_new(&e->server, e->loop, o, &why), 0);
    assert_null(why);
}

static inline int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));
    struct httpd_options o = options_for(e);

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 19 + i / 65536 % 5);
    for (unsigned i = 0; i < LARGE_PARTS; i++)
        e->large[i] = (struct iovec){large + i, sizeof(large) - LARGE_PARTS};
    for (unsigned i = 0; i < MANY; i++)
        e->small[i] = (struct iovec){large + i, i % 7};
    answer_with(e, e->large, LARGE_PARTS);
    assert_int_equal(loop_new(&e->loop, &clock_system), 0);
    open_server(e, &o);
    *state = e;
    return 0;
}

static inline int teardown(void **state)
{
    struct env *e = *state;

    e->server = httpd_stop(e->server, 0);
    e->loop = loop_free(e->loop);
    free(e);
    return 0;
}

static inline int64_t now(void)
{
    return clock_system.mono(&clock_system).ms;
}

static inline int dial(unsigned port, int receive_buffer)
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

static inline void say(int fd, const char *text, size_t n)
{
    for (ssize_t r; n; text += r, n -= (size_t)r)
        assert_true((r = send(fd, text, n, MSG_NOSIGNAL)) > 0);
}

/* Turns the loop until there is something to read; the bytes read, 0 at the end, -1 after PATIENCE_MS. */
static inline ssize_t hear(struct env *e, int fd, char *to, size_t n)
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
static inline void hear_all(struct env *e, int fd, struct buf *b)
{
    char *room;
    ssize_t r;

    do {
        assert_int_equal(buf_reserve(b, 65536, &room), 0);
        r = hear(e, fd, room, 65535);
        if (r > 0)
            b->n += (size_t)r;
    } while (r > 0);
    assert_true(r == 0 || errno == ECONNRESET);
    b->p[b->n] = '\0';
}

/* Sends one request on a connection of its own and gives the whole answer. */
static inline void ask(struct env *e, const char *request, struct buf *b)
{
    int fd = dial(httpd_port(e->server, 0), 0);

    b->n = 0;
    say(fd, request, strlen(request));
    hear_all(e, fd, b);
    (void)close(fd);
}

static inline const char *body_of(const struct buf *b)
{
    const char *end = strstr(b->p, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

static inline void wait_for(struct env *e, atomic_int *count, int want)
{
    int64_t end = now() + PATIENCE_MS;

    while (atomic_load(count) < want && now() < end)
        assert_int_equal(loop_turn(e->loop, 1), 0);
    assert_int_equal(atomic_load(count), want);
}

#define REQUEST(line)    line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define KEPT(line, rest) line " HTTP/1.1\r\nHost: localhost\r\n" rest
#define CASE(fn)         cmocka_unit_test_setup_teardown(fn, setup, teardown)
