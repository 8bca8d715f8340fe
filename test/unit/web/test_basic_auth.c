/* Basic authentication on a real server. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/web/auth_queue.h"
#include "exporter/web/basic_auth.h"
#include "exporter/web/web_file.h"
#include "test/oom.h"
#include "test/unit/base/httpd_world.h"

/* The passwords are "U*U" and "U*U*"; of the slow one, with 15 s for each comparison, nobody knows it. */
static const struct web_user users[] = {
    {STR("alice"), STR("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")},
    {STR("bob"), STR("$2y$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK")},
};
static const struct web_user slow[] = {
    {STR("carol"), STR("$2a$18$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")},
};

#define ALICE "Basic YWxpY2U6VSpV"
#define BOB   "basic Ym9iOlUqVSo="

static enum httpd_access check(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket,
                               struct httpd_refusal *ret)
{
    return basic_auth_check(arg, rq, ticket, ret);
}

static struct basic_auth *serve(struct env *e, struct httpd_guard *g, const struct web_user *list, size_t n)
{
    struct httpd_options o = options_for(e);
    struct basic_auth *b = NULL;

    assert_int_equal(basic_auth_new(&b), 0);
    assert_int_equal(basic_auth_set_users(b, list, n), 0);
    *g = (struct httpd_guard){.check = check, .arg = b, .deadline_ms = BASIC_AUTH_DEADLINE_MS};
    o.guard = g;
    open_server(e, &o);
    return b;
}

static void stop(struct env *e, struct basic_auth *b)
{
    basic_auth_close(b);
    e->server = httpd_stop(e->server, 0);
    assert_null(basic_auth_free(b));
}

static int ask_as(struct env *e, const char *authorization, struct buf *b)
{
    char request[512];

    (void)snprintf(request, sizeof(request),
                   "GET /direct HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s\r\n\r\n",
                   authorization ? "Authorization: " : "X: x", cstr(authorization));
    ask(e, request, b);
    return atoi(b->p + 9);
}

static void asks_for_user_and_password(void **state)
{
    static const struct {
        const char *authorization;
        int status;
    } cases[] = {
        {ALICE, 200},
        {ALICE, 200}, /* from the cache */
        {BOB, 200},
        {NULL, 401},
        {"Basic YWxpY2U6VSpVKg==", 401}, /* alice with bob's */
        {"Basic YWxpY2U6", 401},         /* no password */
        {"Basic Y2Fyb2w6VSpV", 401},     /* an unknown user with alice's, whose hash is the dummy */
        {"Basic Y2Fyb2w6VSpV", 401},
        {"Basic OlUqVQ==", 401},         /* no user */
        {"Basic YWxpY2U=", 401},         /* no colon */
        {"Basic YWxpY2U6VSpVAHg=", 401}, /* a NUL after the password */
        {"Basic YWxpY2U6VSpV YWxpY2U6VSpV", 401},
        {"Basic !!!!", 401},
        {"Basic", 401},
        {"Basic ", 401},
        {"Bearer YWxpY2U6VSpV", 401},
        {"Basic YWxpY2U6VSpV\r\nAuthorization: Basic YWxpY2U6VSpV", 401},
        {"Basic   YWxpY2U6VSpV", 200},
    };
    struct env *e = *state;
    struct httpd_guard g;
    struct basic_auth *auth = serve(e, &g, users, ARRAY_SIZE(users));
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (ask_as(e, cases[i].authorization, &b) != cases[i].status)
            fail_msg("%s: %s", cstr(cases[i].authorization), b.p);
        if (cases[i].status == 401)
            assert_non_null(strstr(b.p, "\r\nWWW-Authenticate: Basic realm=\"dynamic-scoring\""));
    }
    stop(e, auth);
}

static void takes_new_users_at_once(void **state)
{
    struct env *e = *state;
    struct httpd_guard g;
    struct basic_auth *auth = serve(e, &g, users, 2);
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(ask_as(e, BOB, &b), 200);
    assert_int_equal(basic_auth_set_users(auth, users, 1), 0);
    assert_int_equal(ask_as(e, BOB, &b), 401);
    assert_int_equal(ask_as(e, ALICE, &b), 200);
    assert_int_equal(basic_auth_set_users(auth, users, 2), 0);
    assert_int_equal(ask_as(e, BOB, &b), 200);
    stop(e, auth);
}

/* Whether one of the connections is refused: which one depends on when the first comparison begins, and the
 * others have no answer yet. */
static bool hears_a_refusal(struct pollfd *clients, size_t n)
{
    char in[13] = "";

    (void)poll(clients, n, PATIENCE_MS);
    for (size_t i = 0; i < n; i++)
        if (clients[i].revents)
            return recv(clients[i].fd, in, 12, 0) == 12 && atoi(in + 9) == 429;
    return false;
}

/* Who is known is let in while a comparison takes a quarter of a minute, and further wrong passwords of the
 * same client are refused. */
static void lets_known_clients_in_during_a_long_comparison(void **state)
{
    struct web_user both[2] = {users[0], slow[0]};
    struct env *e = *state;
    struct httpd_guard g;
    struct basic_auth *auth = serve(e, &g, both, 2);
    struct pollfd clients[2 + AUTH_QUEUE_SHARE];
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(ask_as(e, ALICE, &b), 200);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        char request[256];
        (void)snprintf(request, sizeof(request),
                       KEPT("GET /direct", "Authorization: Basic Y2Fyb2w6%c%c%c%c\r\n\r\n"), 'M', 'T', 'I',
                       (char)('a' + i));
        clients[i] = (struct pollfd){.fd = dial(httpd_port(e->server, 0), 0), .events = POLLIN};
        say(clients[i].fd, request, strlen(request));
        assert_int_equal(ask_as(e, ALICE, &b), 200);
    }
    assert_true(hears_a_refusal(clients, ARRAY_SIZE(clients)));
    stop(e, auth);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        (void)close(clients[i].fd);
}

/* One comparison serves all of them. */
static void answers_many_clients_that_come_at_once(void **state)
{
    struct env *e = *state;
    struct httpd_guard g;
    struct basic_auth *auth = serve(e, &g, users, 2);
    int fds[100];

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], KEPT("GET /direct", "Authorization: " ALICE "\r\n\r\n"),
            strlen(KEPT("GET /direct", "Authorization: " ALICE "\r\n\r\n")));
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        char in[16];
        assert_true(hear(e, fds[i], in, sizeof(in) - 1) > 12);
        assert_int_equal(atoi(in + 9), 200);
        (void)close(fds[i]);
    }
    stop(e, auth);
}

static void survives_each_failed_allocation(void **state)
{
    struct env *e = *state;
    struct httpd_guard g;
    struct basic_auth *auth = serve(e, &g, users, 2);
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(buf_room(&b, 200000, &(char *){NULL}), 0);
    for (long n = 1, seen = 1; seen; n++) {
        oom_fail_at(n);
        b.n = 0;
        ask(e,
            "GET /direct HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " ALICE
            "\r\n\r\n",
            &b);
        seen = oom_happened();
        oom_fail_at(0);
        assert_true(b.n == 0 || strncmp(b.p, "HTTP/1.1 ", 9) == 0);
        assert_true(seen || strstr(b.p, " 200 "));
    }
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        int r = basic_auth_set_users(auth, users, 1);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
    assert_int_equal(ask_as(e, ALICE, &b), 200);
    stop(e, auth);
    assert_null(basic_auth_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(asks_for_user_and_password),
        CASE(takes_new_users_at_once),
        CASE(lets_known_clients_in_during_a_long_comparison),
        CASE(answers_many_clients_that_come_at_once),
        CASE(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
