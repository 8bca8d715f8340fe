/* Requests to a server of httpd_new(): how they are read, routed and refused. */
#include "test/unit/base/httpd_world.h"

static void routes_requests(void **state)
{
    static const struct {
        const char *request;
        int status;
        const char *body;
        int handled;
        const char *route;
    } cases[] = {
        {REQUEST("GET /direct"), 200, "hello", 1, "/direct"},
        {REQUEST("GET /loop"), 200, "hello", 1, "/loop"},
        {REQUEST("POST /loop"), 200, "hello", 1, "/loop"},
        {REQUEST("POST /post"), 200, "hello", 1, "/post"},
        {REQUEST("HEAD /direct"), 200, "", 1, "/direct"},
        {REQUEST("HEAD /loop"), 200, "", 1, "/loop"},
        {REQUEST("GET /%64irect?x=1"), 200, "hello", 1, "/direct"},
        {REQUEST("GET /post"), 405, "405: method not allowed for this path\n", 0, "/post"},
        {REQUEST("DELETE /loop"), 405, "405: method not allowed for this path\n", 0, "/loop"},
        {REQUEST("HEAD /post"), 405, "", 0, "/post"},
        {REQUEST("GET /other"), 404, NULL, 0, "other"},
        {REQUEST("GET /direct/"), 404, NULL, 0, "other"},
        {"GET /direct HTTP/1.0\r\n\r\n", 200, "hello", 1, "/direct"},
    };
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        atomic_store(&e->handled, 0);
        ask(e, cases[i].request, &b);
        assert_int_equal(atoi(b.p + 9), cases[i].status);
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

static void lists_paths_when_none_matches(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e, REQUEST("GET /<script>"), &b);
    assert_non_null(strstr(body_of(&b), "GET /direct\n"));
    assert_non_null(strstr(body_of(&b), "POST /post\n"));
    assert_null(strstr(body_of(&b), "script"));
}

static void names_the_allowed_methods(void **state)
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

static void hands_the_request_to_its_handler(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e,
        "GET /loop?x=a%20b&y=2 HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;q=0.5\r\nConnection: "
        "close\r\n"
        "accept: application/json\r\nAccept-Encoding: gzip\r\nACCEPT: */*\r\nIf-None-Match: "
        "\"a\"\r\nif-none-match: \"b\"\r\n\r\n",
        &b);
    assert_string_equal(e->method, "GET");
    assert_string_equal(e->path, "/loop");
    assert_string_equal(e->query, "a b");
    assert_string_equal(e->accept, "text/plain;q=0.5, application/json, */*");
    assert_string_equal(e->accept_encoding, "gzip");
    assert_string_equal(e->if_none_match, "\"a\", \"b\"");
    ask(e, REQUEST("HEAD /direct"), &b);
    assert_string_equal(e->method, "GET");
    assert_string_equal(e->query, "(null)");
    assert_string_equal(e->accept, "");
    assert_string_equal(e->accept_encoding, "");
    assert_string_equal(e->if_none_match, "");
}

static void refuses_bad_requests(void **state)
{
    static const char *const requests[] = {
        "\x16\x03\x01 hello\r\n\r\n", "GET\r\n\r\n", "GET /direct HTTP/9.9\r\n\r\n",
        "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST /post HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};
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

static void reads_and_limits_bodies(void **state)
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
            head, sizeof(head),
            "POST /post HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%zu\r\n\r\n",
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

static void spaces_the_runs_of_a_handler(void **state)
{
    struct env *e = *state;
    int fds[6];

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], REQUEST("POST /spaced"), strlen(REQUEST("POST /spaced")));
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        BUF_AUTO(b, 1 << 20);
        hear_all(e, fds[i], &b);
        assert_string_equal(body_of(&b), "hello");
        (void)close(fds[i]);
    }
    /* One at once, one for all others; a third on a machine that stood still for long enough. */
    assert_in_range(atomic_load(&e->handled), 2, 3);
}

static void refuses_spaced_requests_when_it_stops(void **state)
{
    struct env *e = *state;
    int fds[2];
    BUF_AUTO(b, 1 << 20);

    routes[ARRAY_SIZE(routes) - 1].spacing_ms = PATIENCE_MS;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(httpd_port(e->server, 0), 0);
        say(fds[i], REQUEST("POST /spaced"), strlen(REQUEST("POST /spaced")));
    }
    hear_all(e, fds[0], &b);
    assert_string_equal(body_of(&b), "hello");
    ask(e, REQUEST("GET /loop"), &b); /* after which the second one waits too */
    e->server = httpd_stop(e->server, PATIENCE_MS);
    b.n = 0;
    hear_all(e, fds[1], &b);
    assert_int_equal(atoi(b.p + 9), 503);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        (void)close(fds[i]);
    routes[ARRAY_SIZE(routes) - 1].spacing_ms = 300;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(routes_requests),
        CASE(lists_paths_when_none_matches),
        CASE(names_the_allowed_methods),
        CASE(hands_the_request_to_its_handler),
        CASE(refuses_bad_requests),
        CASE(reads_and_limits_bodies),
        CASE(spaces_the_runs_of_a_handler),
        CASE(refuses_spaced_requests_when_it_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
