/* Many clients, and the end of the server. */
#include "exporter/base/loop.h"
#include "test/unit/http/httpd_world.h"

struct client {
    int fd;
    unsigned answers;
    size_t have;
    char in[1024];
};

static void client_ask(struct client *c, const char *request)
{
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
    return true;
}

enum { CROWD_ANSWERS = 20 };

/* Each of n kept connections goes on asking until all have 20 answers: whoever was passed over for the others
 * would never have them. */
static void crowd(struct env *e, const char *request, unsigned n)
{
    struct client *clients = calloc(n, sizeof(*clients));
    int64_t began = now();
    unsigned left = n, waiting = n;

    for (unsigned i = 0; i < n; i++) {
        clients[i].fd = dial(httpd_port(e->server, 0), 0);
        client_ask(&clients[i], request);
    }
    while (waiting && now() - began < PATIENCE_MS) {
        assert_int_equal(loop_turn(e->loop, 0), 0);
        for (unsigned i = 0; i < n; i++)
            if (client_read(&clients[i])) {
                left -= clients[i].answers == CROWD_ANSWERS;
                if (left)
                    client_ask(&clients[i], request);
                else
                    waiting--;
            }
    }
    assert_int_equal(waiting, 0);
    for (unsigned i = 0; i < n; i++)
        (void)close(clients[i].fd);
    free(clients);
}

static void serves_300_clients(void **state)
{
    struct env *e = *state;

    crowd(e, KEPT("GET /direct", "\r\n"), 300);
    crowd(e, KEPT("GET /loop", "\r\n"), 300);
    crowd(e, KEPT("POST /loop", "Content-Length: 5\r\n\r\nabcde"), 300);
    assert_true(atomic_load(&e->handled) >= 3 * 300 * CROWD_ANSWERS);
}

/* Over the limit, the connection that has waited longest for a request makes room. */
static void limits_connections(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    struct client few[5] = {0};
    int64_t end = now() + PATIENCE_MS;
    char in[100];

    o.max_connections = ARRAY_SIZE(few) - 1;
    open_server(e, &o);
    for (size_t i = 0; i < ARRAY_SIZE(few); i++) {
        few[i].fd = dial(httpd_port(e->server, 0), 0);
        client_ask(&few[i], KEPT("GET /direct", "\r\n"));
        while (!client_read(&few[i]))
            assert_true(now() < end);
    }
    assert_int_equal(hear(e, few[0].fd, in, sizeof(in)), 0);
    for (size_t i = 1; i < ARRAY_SIZE(few); i++) {
        client_ask(&few[i], KEPT("GET /direct", "\r\n"));
        while (!client_read(&few[i]))
            assert_true(now() < end);
    }
    for (size_t i = 0; i < ARRAY_SIZE(few); i++)
        (void)close(few[i].fd);
}

static void closes_idle_connections(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.idle_seconds = 1;
    open_server(e, &o);
    ask(e, "GET /direct HTTP/1.1\r\nHost:", &b); /* and never the rest */
    assert_int_equal(atomic_load(&e->handled), 0);
}

/* Once a second connection is answered, what the first had sent before has been read. */
static void let_server_read(struct env *e)
{
    BUF_AUTO(b, 1 << 20);

    for (int i = 0; i < 3; i++) {
        int fd = dial(httpd_port(e->server, 0), 0);
        say(fd, REQUEST("HEAD /direct"), strlen(REQUEST("HEAD /direct")));
        b.n = 0;
        assert_int_equal(buf_reserve(&b, 65536, &(char *){NULL}), 0);
        for (ssize_t r = 1; r > 0 && b.n < 60000;) {
            r = recv(fd, b.p, 60000, 0); /* without a turn of the loop */
            assert_true(r >= 0);
        }
        (void)close(fd);
    }
}

static void stops_with_requests_waiting(void **state)
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
    e->server = httpd_stop(e->server, PATIENCE_MS);
    assert_true(now() - began < PATIENCE_MS);
    assert_int_equal(atomic_load(&e->handled), handled);
    for (size_t i = 1; i < ARRAY_SIZE(fds); i++) {
        BUF_AUTO(b, 1 << 20);
        hear_all(e, fds[i], &b);
        assert_non_null(strstr(b.p, " 503 "));
        assert_non_null(strstr(b.p, "\r\nConnection: close\r\n"));
        (void)close(fds[i]);
    }
}

static void stops_within_its_grace_period(void **state)
{
    struct env *e = *state;
    int idle = dial(httpd_port(e->server, 0), 0), stuck = dial(httpd_port(e->server, 0), 4096);
    int64_t began;

    say(stuck, REQUEST("GET /large"), strlen(REQUEST("GET /large")));
    let_server_read(e);
    began = now();
    e->server = httpd_stop(e->server, 200);
    assert_true(now() - began >= 200);
    assert_int_equal(atomic_load(&e->released), 1);
    (void)close(idle);
    (void)close(stuck);
}

static void finishes_an_answer_while_stopping(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(serves_300_clients),
        CASE(limits_connections),
        CASE(closes_idle_connections),
        CASE(stops_with_requests_waiting),
        CASE(stops_within_its_grace_period),
        CASE(finishes_an_answer_while_stopping),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
