/* Basic authentication on a real server. */
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/web/auth_queue.h"
#include "exporter/web/basic_auth.h"
#include "test/unit/base/httpd_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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
    basic_auth_set_users(b, list, n);
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
    basic_auth_set_users(auth, users, 1);
    assert_int_equal(ask_as(e, BOB, &b), 401);
    assert_int_equal(ask_as(e, ALICE, &b), 200);
    basic_auth_set_users(auth, users, 2);
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

/* ---- bcrypt ---- */

#define SALT   "abcdefghijklmnopqrstuu"
#define DIGEST "5s2v8.iXieOjg/.AySBTTZIIVFJeBui"

static void reads_the_cost_of_a_hash(void **state)
{
    static const struct {
        const char *hash;
        unsigned cost;
    } cases[] = {
        {"$2a$04$" SALT DIGEST, 4},
        {"$2b$10$" SALT DIGEST, 10},
        {"$2y$31$" SALT DIGEST, 31},
        {"$2y$03$" SALT DIGEST, 0},
        {"$2y$32$" SALT DIGEST, 0},
        {"$2x$10$" SALT DIGEST, 0},
        {"$2$10$" SALT DIGEST, 0},
        {"$1$10$" SALT DIGEST, 0},
        {"$2b$1$" SALT DIGEST "x", 0},
        {"$2b$10$" SALT DIGEST "x", 0},
        {"$2b$10$" SALT, 0},
        {"doe", 0},
        {"", 0},
        {"$2b$10-" SALT DIGEST, 0},
        {"$2b$1x$" SALT DIGEST, 0},
        {"$2b$10$abcdefghijklmnopqrstu$" DIGEST, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(bcrypt_cost(str_of(cases[i].hash)), cases[i].cost);
}

/* Known answers; programs differ in the prefix that they write. */
static void compares_passwords(void **state)
{
    static const struct {
        const char *password, *hash;
        bool matches;
    } cases[] = {
        {"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", true},
        {"U*U**", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", false},
        {"u*u*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", false},
        {"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_true((bcrypt_cost(str_of(cases[i].hash)) &&
                     bcrypt_matches(str_of(cases[i].password), str_of(cases[i].hash)) == 1) ==
                    cases[i].matches);
}

static void refuses_a_password_that_is_too_long(void **state)
{
    char password[PASSWORD_MAX_BYTES + 2];

    (void)state;
    memset(password, 'x', sizeof(password));
    assert_int_equal(0, bcrypt_matches((struct str){password, sizeof(password) - 1},
                                       STR("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(asks_for_user_and_password),
        CASE(takes_new_users_at_once),
        CASE(lets_known_clients_in_during_a_long_comparison),
        CASE(answers_many_clients_that_come_at_once),
        cmocka_unit_test(reads_the_cost_of_a_hash),
        cmocka_unit_test(compares_passwords),
        cmocka_unit_test(refuses_a_password_that_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
