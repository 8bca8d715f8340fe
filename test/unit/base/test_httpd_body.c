/* Request bodies that a handler takes, and replies that come after their handler returned. */
#include "test/unit/base/httpd_world.h"

enum { BODY_MAX = 2 << 20, ALL_MAX = 3 << 20 };

static struct httpd_reply *pending;
static const struct httpd_request *pending_request;

static void on_length(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%zu", rq->body.n);

    note_request(arg, rq);
    assert_true(rq->body.n == 0 || memcmp(rq->body.p, large, rq->body.n) == 0);
    httpd_reply_text(reply, 200, (struct str){text, (size_t)n});
}

static void on_kinds(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    char text[256];
    int n = snprintf(text, sizeof(text), "%s|%s|%s|%.*s", rq->content_type, rq->content_encoding,
                     rq->authorization, STR_ARG(rq->body));

    note_request(arg, rq);
    httpd_reply_text(reply, 429, (struct str){text, (size_t)n});
    reply->retry_after = 17;
    reply->challenge = "Bearer";
}

static void on_deferred(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_defer(reply);
    pending = reply;
    pending_request = rq;
}

static void on_deferred_briefly(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    note_request(arg, rq);
    httpd_defer(reply);
    httpd_reply_text(reply, 200, STR("at once"));
    httpd_finish(reply);
}

static struct httpd_route body_routes[] = {
    {"POST", "/direct", on_length, NULL, true, 0, BODY_MAX, false},
    {"POST", "/loop", on_length, NULL, false, 0, BODY_MAX, false},
    {"POST", "/kinds", on_kinds, NULL, false, 0, BODY_MAX, false},
    {"POST", "/later", on_deferred, NULL, false, 0, BODY_MAX, false},
    {"POST", "/briefly", on_deferred_briefly, NULL, false, 0, 0, false},
};

static int body_setup(void **state)
{
    struct httpd_options o;
    int r = setup(state);

    o = options_for(*state);
    for (size_t i = 0; i < ARRAY_SIZE(body_routes); i++)
        body_routes[i].arg = *state;
    o.routes = body_routes;
    o.n_routes = ARRAY_SIZE(body_routes);
    o.max_body_bytes = ALL_MAX;
    open_server(*state, &o);
    return r;
}

static void send_bytes(int fd, size_t n)
{
    for (ssize_t r; n; n -= (size_t)r)
        if ((r = send(fd, large, n, MSG_NOSIGNAL)) < 0)
            break;
}

/* Sends the head and `sent` bytes of a body of n; the descriptor. */
static int post(struct env *e, const char *path, size_t n, size_t sent, bool chunked)
{
    int fd = dial(httpd_port(e->server, 0), 0);
    char head[200];

    (void)snprintf(head, sizeof(head),
                   "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s: %zu\r\n\r\n", path,
                   chunked ? "Transfer-Encoding: chunked\r\nX" : "Content-Length", n);
    say(fd, head, strlen(head));
    if (chunked)
        say(fd, head, (size_t)snprintf(head, sizeof(head), "%zx\r\n", n));
    send_bytes(fd, sent);
    if (chunked)
        (void)send(fd, "\r\n0\r\n\r\n", 7, MSG_NOSIGNAL);
    return fd;
}

static int status_of(struct env *e, int fd, struct buf *b)
{
    b->n = 0;
    hear_all(e, fd, b);
    (void)close(fd);
    return b->n ? atoi(b->p + 9) : 0;
}

static void gives_the_body_to_its_handler(void **state)
{
    static const size_t sizes[] = {0, 1, 65537, BODY_MAX};
    struct env *e = *state;
    char want[32];
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < 4 * ARRAY_SIZE(sizes); i++) {
        size_t n = sizes[i / 4];
        (void)snprintf(want, sizeof(want), "%zu", n);
        assert_int_equal(status_of(e, post(e, i % 2 ? "/direct" : "/loop", n, n, n && i % 4 > 1), &b), 200);
        assert_string_equal(body_of(&b), want);
    }
}

static void refuses_a_body_over_the_limit(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(status_of(e, post(e, "/direct", BODY_MAX + 1, 0, false), &b), 413);
    assert_string_equal(body_of(&b), "413: request body exceeds the limit of 2097152 bytes\n");
    assert_int_equal(status_of(e, post(e, "/direct", BODY_MAX + 1, BODY_MAX + 1, true), &b), 413);
    assert_int_equal(status_of(e, post(e, "/direct", 2 * BODY_MAX, 2 * BODY_MAX, true), &b), 0);
    assert_int_equal(status_of(e, post(e, "/other", 65537, 65537, false), &b), 413);
    assert_int_equal(atomic_load(&e->handled), 0);
}

static void hands_over_headers_and_sends_its_own(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e,
        "POST /kinds HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/a\r\n"
        "content-encoding: gzip\r\nAuthorization: Bearer x\r\nContent-Length: 3\r\n\r\nabc",
        &b);
    assert_string_equal(body_of(&b), "text/a|gzip|Bearer x|abc");
    assert_non_null(strstr(b.p, "\r\nRetry-After: 17\r\n"));
    assert_non_null(strstr(b.p, "\r\nWWW-Authenticate: Bearer\r\n"));
}

static void limits_all_bodies_together(void **state)
{
    struct env *e = *state;
    int first, second;
    BUF_AUTO(b, 1 << 20);

    first = post(e, "/later", BODY_MAX, BODY_MAX, false);
    wait_for(e, &e->handled, 1);
    second = post(e, "/direct", BODY_MAX, BODY_MAX, false);
    assert_int_equal(status_of(e, second, &b), 503);
    assert_non_null(strstr(b.p, "\r\nRetry-After: 1\r\n"));
    httpd_reply_text(pending, 200, STR("done"));
    httpd_finish(pending);
    assert_int_equal(status_of(e, first, &b), 200);
    assert_int_equal(status_of(e, post(e, "/direct", BODY_MAX, BODY_MAX, false), &b), 200);
}

static void frees_the_body_of_a_client_that_leaves(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    for (int i = 0; i < 8; i++)
        (void)close(post(e, "/direct", BODY_MAX, BODY_MAX / 2, false));
    for (int64_t end = now() + PATIENCE_MS; now() < end;)
        if (status_of(e, post(e, "/direct", BODY_MAX, BODY_MAX, false), &b) == 200)
            break;
    assert_string_equal(body_of(&b), "2097152");
}

static void replies_after_the_handler(void **state)
{
    struct env *e = *state;
    int fd = post(e, "/later", 5, 5, false);
    BUF_AUTO(b, 1 << 20);

    wait_for(e, &e->handled, 1);
    ask(e, "POST /briefly HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", &b);
    assert_string_equal(body_of(&b), "at once");
    assert_int_equal(pending_request->body.n, 5);
    httpd_reply_text(pending, 202, STR("later"));
    httpd_finish(pending);
    assert_int_equal(status_of(e, fd, &b), 202);
    assert_string_equal(body_of(&b), "later");
}

static void finishes_for_a_client_that_left(void **state)
{
    struct env *e = *state;

    (void)close(post(e, "/later", 5, 5, false));
    wait_for(e, &e->handled, 1);
    httpd_reply_text(pending, 200, STR("later"));
    httpd_finish(pending);
    e->server = httpd_stop(e->server, PATIENCE_MS);
}

#define BODY_CASE(fn) cmocka_unit_test_setup_teardown(fn, body_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BODY_CASE(gives_the_body_to_its_handler),          BODY_CASE(refuses_a_body_over_the_limit),
        BODY_CASE(hands_over_headers_and_sends_its_own),   BODY_CASE(limits_all_bodies_together),
        BODY_CASE(frees_the_body_of_a_client_that_leaves), BODY_CASE(replies_after_the_handler),
        BODY_CASE(finishes_for_a_client_that_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
