/* Requests that a guard allows, refuses, or decides about later. */
#include "test/unit/http/httpd_world.h"

#include <pthread.h>

enum { DEADLINE_MS = 60 * 1000, WAITING_MAX = MAX_CONNECTIONS / 4 + 1 };

/* Answers as the user's name in "Authorization" says. */
struct guarded {
    struct env *e;
    struct httpd_guard guard;
    atomic_int asked, later;
    struct httpd_ticket tickets[WAITING_MAX];
    atomic_bool decide_at_once;
    char authorization[64];
    sa_family_t family;
};

static const struct httpd_refusal no_such_user = {
    .text = "401: no such user\n", .challenge = "Basic", .retry_after = 7};

static void on_check(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket)
{
    struct guarded *g = arg;
    int n = atomic_load(&g->later);

    (void)snprintf(g->authorization, sizeof(g->authorization), "%s", rq->authorization);
    g->family = rq->peer->sa_family;
    atomic_fetch_add(&g->asked, 1);
    if (strcmp(rq->authorization, "later") != 0) {
        httpd_decide(ticket, strcmp(rq->authorization, "good") == 0 ? NULL : &no_such_user);
        return;
    }
    g->tickets[n] = *ticket;
    atomic_store(&g->later, n + 1);
    if (atomic_load(&g->decide_at_once))
        httpd_decide(ticket, NULL);
}

static struct guarded *guard_server(struct env *e, struct guarded *g, unsigned deadline_ms)
{
    struct httpd_options o = options_for(e);

    *g = (struct guarded){.e = e, .guard = {.check = on_check, .arg = g, .deadline_ms = deadline_ms}};
    o.guard = &g->guard;
    open_server(e, &o);
    return g;
}

#define WITH(line, who) line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " who "\r\n"

static void asks_before_any_handler(void **state)
{
    static const struct {
        const char *request;
        int status, handled;
        const char *route;
    } cases[] = {
        {WITH("GET /direct", "good") "\r\n", 200, 1, "/direct"},
        {WITH("HEAD /loop", "good") "\r\n", 200, 1, "/loop"},
        {WITH("POST /post", "good") "Content-Length: 3\r\n\r\nabc", 200, 1, "/post"},
        {WITH("GET /none", "good") "\r\n", 404, 0, "other"},
        {WITH("GET /direct", "bad") "\r\n", 401, 0, "/direct"},
        {WITH("GET /loop", "bad") "\r\n", 401, 0, "/loop"},
        {WITH("GET /post", "bad") "\r\n", 401, 0, "/post"},
        {WITH("GET /none", "bad") "\r\n", 401, 0, "other"},
        {WITH("POST /post", "bad") "Content-Length: 3\r\n\r\nabc", 401, 0, "/post"},
        {WITH("POST /post", "bad") "Content-Length: 70000\r\n\r\n", 401, 0, "/post"},
        {REQUEST("GET /direct"), 401, 0, "/direct"},
    };
    struct env *e = *state;
    struct guarded g;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, DEADLINE_MS);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        atomic_store(&e->handled, 0);
        ask(e, cases[i].request, &b);
        assert_int_equal(atoi(b.p + 9), cases[i].status);
        assert_int_equal(atomic_load(&e->handled), cases[i].handled);
        assert_int_equal(atomic_load(&g.asked), i + 1);
        wait_for(e, &e->served, (int)i + 1);
        assert_string_equal(e->served_route, cases[i].route);
        if (cases[i].status == 401) {
            assert_non_null(strstr(b.p, "\r\nWWW-Authenticate: Basic\r\n"));
            assert_non_null(strstr(b.p, "\r\nRetry-After: 7\r\n"));
            assert_null(strstr(b.p, "\r\nAllow:"));
        }
    }
    assert_string_equal(g.authorization, "");
    assert_int_equal(g.family, AF_INET);
}

static void does_not_ask_about_an_invalid_head(void **state)
{
    struct env *e = *state;
    struct guarded g;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, DEADLINE_MS);
    ask(e, "GET /direct HTTP/1.1\r\nHost: localhost\r\nHost: other\r\nAuthorization: good\r\n\r\n", &b);
    assert_int_equal(atoi(b.p + 9), 400);
    assert_int_equal(atomic_load(&g.asked), 0);
}

/* One after the other on one connection, with and without a body, until one is refused. */
static void waits_for_the_decision(void **state)
{
    static const struct {
        const char *request, *status, *body;
        bool refused;
    } cases[] = {
        {KEPT("GET /direct", "Authorization: later\r\n\r\n"), " 200 ", "hello", false},
        {KEPT("POST /loop", "Authorization: later\r\nContent-Length: 3\r\n\r\nabc"), " 200 ", "hello", false},
        {KEPT("GET /direct", "Authorization: later\r\n\r\n"), " 200 ", "hello", false},
        {KEPT("GET /loop", "Authorization: later\r\n\r\n"), " 401 ", "401: no such user\n", true},
    };
    struct env *e = *state;
    int fd, handled = 0;
    struct guarded g;
    char in[1024];

    guard_server(e, &g, DEADLINE_MS);
    fd = dial(httpd_port(e->server, 0), 0);
    for (int i = 0; i < (int)ARRAY_SIZE(cases); i++) {
        say(fd, cases[i].request, strlen(cases[i].request));
        wait_for(e, &g.later, i + 1);
        assert_int_equal(atomic_load(&e->handled), handled);
        httpd_decide(&g.tickets[i], cases[i].refused ? &no_such_user : NULL);
        httpd_decide(&g.tickets[i], &no_such_user); /* too late */
        in[hear(e, fd, in, sizeof(in) - 1)] = '\0';
        assert_non_null(strstr(in, cases[i].status));
        assert_string_equal(strstr(in, "\r\n\r\n") + 4, cases[i].body);
        handled += !cases[i].refused;
        assert_int_equal(atomic_load(&e->handled), handled);
    }
    (void)close(fd);
}

static void takes_a_decision_that_comes_at_once(void **state)
{
    struct env *e = *state;
    struct guarded g;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, DEADLINE_MS);
    atomic_store(&g.decide_at_once, true);
    ask(e, WITH("GET /direct", "later") "\r\n", &b);
    assert_string_equal(body_of(&b), "hello");
}

static void *decide_all(void *arg)
{
    struct guarded *g = arg;

    for (int i = 0; i < 20;)
        if (i < atomic_load(&g->later)) {
            httpd_decide(&g->tickets[i], i % 2 ? NULL : &no_such_user);
            i++;
        }
    return NULL;
}

static void takes_decisions_of_another_thread(void **state)
{
    struct env *e = *state;
    struct guarded g;
    pthread_t thread;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, DEADLINE_MS);
    assert_int_equal(pthread_create(&thread, NULL, decide_all, &g), 0);
    for (int i = 0; i < 20; i++) {
        ask(e, WITH("GET /loop", "later") "\r\n", &b);
        assert_int_equal(atoi(b.p + 9), i % 2 ? 200 : 401);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void refuses_requests_over_the_ceiling(void **state)
{
    struct env *e = *state;
    int fds[WAITING_MAX];
    struct guarded g;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, DEADLINE_MS);
    for (int i = 0; i < WAITING_MAX; i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], WITH("GET /direct", "later") "\r\n", strlen(WITH("GET /direct", "later") "\r\n"));
        wait_for(e, &g.later, i + 1);
    }
    ask(e, WITH("GET /direct", "good") "\r\n", &b);
    assert_int_equal(atoi(b.p + 9), 503);
    assert_non_null(strstr(b.p, "\r\nRetry-After: 5\r\n"));
    httpd_decide(&g.tickets[0], NULL);
    ask(e, WITH("GET /direct", "good") "\r\n", &b);
    assert_int_equal(atoi(b.p + 9), 200);
    for (int i = 0; i < WAITING_MAX; i++)
        (void)close(fds[i]);
}

static void refuses_requests_that_waited_too_long(void **state)
{
    struct env *e = *state;
    struct guarded g;
    BUF_AUTO(b, 1 << 20);

    guard_server(e, &g, 1);
    ask(e, WITH("GET /direct", "later") "\r\n", &b);
    assert_int_equal(atoi(b.p + 9), 503);
    assert_string_equal(body_of(&b), "503: authentication took too long\n");
    httpd_decide(&g.tickets[0], NULL);
    assert_int_equal(atomic_load(&e->handled), 0);
}

static void stops_with_requests_that_wait(void **state)
{
    struct env *e = *state;
    int fds[3];
    struct guarded g;

    guard_server(e, &g, DEADLINE_MS);
    for (int i = 0; i < (int)ARRAY_SIZE(fds); i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], KEPT("GET /direct", "Authorization: later\r\n\r\n"),
            strlen(KEPT("GET /direct", "Authorization: later\r\n\r\n")));
        wait_for(e, &g.later, i + 1);
    }
    (void)close(fds[0]);
    e->server = httpd_stop(e->server, PATIENCE_MS);
    assert_int_equal(atomic_load(&e->handled), 0);
    for (size_t i = 1; i < ARRAY_SIZE(fds); i++) {
        BUF_AUTO(b, 1 << 20);
        hear_all(e, fds[i], &b);
        assert_non_null(strstr(b.p, " 503 "));
        assert_non_null(strstr(b.p, "\r\nConnection: close\r\n"));
        (void)close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(asks_before_any_handler),
        CASE(does_not_ask_about_an_invalid_head),
        CASE(waits_for_the_decision),
        CASE(takes_a_decision_that_comes_at_once),
        CASE(takes_decisions_of_another_thread),
        CASE(refuses_requests_over_the_ceiling),
        CASE(refuses_requests_that_waited_too_long),
        CASE(stops_with_requests_that_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
