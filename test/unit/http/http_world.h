/* What the tests of the HTTP client share: a client with its loop, and two servers that do what they are
 * told.
 *
 * Names are resolved here, so that no test needs a network: localhost and addresses as usual, "both.test"
 * as 8.8.8.8 and 127.0.0.1, "slow.test" not before `slow_name` returns, all else not at all. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "test/fakes/fake_server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MAX_ANSWER = 1 << 20, PATIENCE_MS = 60000 };

static void (*slow_name)(void);

/* Takes the place of the C library's, for libcurl too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    unsigned char address[16];

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && strcmp(name, "slow.test") == 0 && slow_name)
        slow_name();
    if (name && strcmp(name, "both.test") == 0) {
        int r = real("8.8.8.8", service, hints, ret);
        return r ?: real("127.0.0.1", service, hints, &(*ret)->ai_next);
    }
    if (name && strcmp(name, "localhost") != 0 && inet_pton(AF_INET, name, address) != 1 &&
        inet_pton(AF_INET6, name, address) != 1)
        return EAI_NONAME;
    return real(name, service, hints, ret);
}

struct env {
    struct loop *loop;
    struct http *http;
    struct fake_server *server, *other;
};

struct got {
    unsigned times;
    struct http_response a;
    struct buf body;
};

/* 2026-11-21T06:23:01Z */
static inline unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){1795242181000};
}

static inline mono_ms real_mono(const struct clock *c)
{
    (void)c;
    return clock_system.mono(&clock_system);
}

static const struct clock test_clock = {.mono = real_mono, .wall = fixed_wall};

static inline void open_client(struct env *e)
{
    assert_int_equal(loop_new(&e->loop, &test_clock), 0);
    e->http = http_new(e->loop, "dynamic-scoring/test");
}

static inline void close_client(struct env *e)
{
    e->http = http_free(e->http);
    e->loop = loop_free(e->loop);
}

/* A test of its own, from setup(): the environment names no proxy and no certificates. */
static inline struct env *world_new(struct fake_server *server, struct fake_server *other)
{
    static const char *const variables[] = {"http_proxy",    "HTTP_PROXY",   "https_proxy",   "HTTPS_PROXY",
                                            "all_proxy",     "ALL_PROXY",    "no_proxy",      "NO_PROXY",
                                            "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD"};
    struct env *e = calloc(1, sizeof(*e));

    for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
        unsetenv(variables[i]);
    e->server = server;
    e->other = other;
    open_client(e);
    return e;
}

static inline int teardown(void **state)
{
    struct env *e = *state;

    close_client(e);
    e->server = fake_free(e->server);
    e->other = fake_free(e->other);
    free(e);
    return 0;
}

static inline void on_done(void *arg, struct http_response *a)
{
    struct got *g = arg;

    g->times++;
    g->a = *a;
    g->body = buf_take(&a->body);
}

static inline int64_t now(void)
{
    return clock_system.mono(&clock_system).ms;
}

static inline void turn_until(struct env *e, const unsigned *count, unsigned want)
{
    int64_t end = now() + PATIENCE_MS;

    while (*count < want && now() < end)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    assert_int_equal(*count, want);
}

static inline struct http_request rq_of(const char *url)
{
    return (struct http_request){.url = url, .max_answer = MAX_ANSWER, .timeout_ms = PATIENCE_MS};
}

static inline void start(struct env *e, const struct http_request *rq, struct got *g)
{
    struct http_call *c;

    *g = (struct got){0};
    assert_int_equal(http_start(&c, e->http, rq, on_done, g), 0);
    assert_int_equal(g->times, 0);
}

/* A whole call; the caller frees g->body. */
static inline void call(struct env *e, const struct http_request *rq, struct got *g)
{
    start(e, rq, g);
    turn_until(e, &g->times, 1);
}

static inline void get(struct env *e, const char *path, struct got *g)
{
    struct http_request rq = rq_of(fake_url(e->server, path));

    call(e, &rq, g);
}

static inline void assert_ok(const struct got *g, long status)
{
    assert_string_equal(g->a.reason, "");
    assert_string_equal(http_cause_word(g->a.cause), "none");
    assert_int_equal(g->a.error, HTTP_OK);
    assert_int_equal(g->a.status, status);
}

static inline void assert_failed(const struct got *g, enum http_cause cause)
{
    assert_string_equal(http_cause_word(g->a.cause), http_cause_word(cause));
    assert_int_equal(g->a.error, http_cause_class(cause));
    assert_int_equal(g->a.status, 0);
    assert_null(g->body.p);
    assert_true(g->a.reason[0]);
    assert_null(strstr(g->a.reason, "secret"));
}

static inline void assert_body(struct got *g, const char *want)
{
    assert_int_equal(g->body.n, strlen(want));
    assert_memory_equal(g->body.p, want, g->body.n);
    buf_done(&g->body);
}

static inline void assert_header(const struct fake_request *rq, const char *name, const char *want)
{
    char value[256] = "(absent)";

    (void)fake_header(rq, name, value, sizeof(value));
    assert_string_equal(value, want);
}

/* Three parts of uneven sizes, 20 MB in all, as a round sends its series. */
struct large {
    char *bytes;
    size_t n;
    struct str parts[3];
};

static inline void large_make(struct large *l)
{
    l->n = 20 << 20;
    l->bytes = malloc(l->n);
    for (size_t i = 0; i < l->n; i++)
        l->bytes[i] = (char)('a' + i % 23 + i / 1000000 % 3);
    l->parts[0] = (struct str){l->bytes, 9};
    l->parts[1] = (struct str){l->bytes + 9, l->n - 11};
    l->parts[2] = (struct str){l->bytes + l->n - 2, 2};
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
