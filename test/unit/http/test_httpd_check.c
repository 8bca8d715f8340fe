/* What heads are refused, and how queries are read. */
#include "test/unit/http/httpd_world.h"

#define BYTES(lit)   lit, sizeof(lit) - 1
#define HEAD(fields) "POST /post HTTP/1.1\r\nHost: localhost\r\n" fields "\r\n"

static void refuses_ambiguous_heads(void **state)
{
    static const struct {
        const char *request;
        size_t n; /* 0: up to the NUL */
        int status;
    } cases[] = {
        {HEAD("Content-Length: 0\r\n"), 0, 200},
        {HEAD("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 0, 400},
        {HEAD("Content-Length: 0\r\nContent-Length: 0\r\n"), 0, 400},
        {HEAD("Content-Length: 0\r\nContent-Length: 5\r\n") "abcde", 0, 400},
        {HEAD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", 0, 400},
        {HEAD("Transfer-Encoding : chunked\r\n") "0\r\n\r\n", 0, 400},
        {HEAD("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n", 0, 400},
        {HEAD("Content-Length : 0\r\n"), 0, 400},
        {HEAD(": x\r\n"), 0, 400},
        {HEAD("X: y\r\n:\r\n"), 0, 400},
        {HEAD("Transfer-Encoding: chunked\r\n x\r\n"), 0, 400},
        {HEAD("X: y\r\n z\r\nAccept: x\r\n"), 0, 400},
        {HEAD("X:\r\nY: \r\nZ: z \r\nCookie: a=b\r\n"), 0, 200},
        {"GET /direct HTTP/1.0\r\n\r\n", 0, 200},
        {"\r\nGET /direct HTTP/1.1\r\nHost: localhost\r\nX:y\r\n\r\n", 0, 200},
        {"GET /direct HTTP/1.1\r\n\r\n", 0, 400},
        {BYTES("GET /direct HTTP/1.1\r\nHost: localhost\r\n\0: x\r\nX: y\r\n\r\n"), 400},
        {BYTES("GET /direct HTTP/1.1\r\nHost: localhost\0.evil\r\nX: y\r\n\r\n"), 400},
        {BYTES("GET /direct HTTP/1.1\r\nHost: localhost\r\nX: y\0\r\n\r\n"), 400},
        {HEAD("Host: localhost\r\n"), 0, 400},
        {HEAD("Host: other\r\n"), 0, 400},
        {REQUEST("GET /direct%00"), 0, 400},
        {REQUEST("GET /direct%00?x=1"), 0, 400},
        {REQUEST("GET /direct?x=%00"), 0, 400},
        {REQUEST("GET /direct?x=1"), 0, 200},
        {BYTES("GET /direct\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
        {BYTES("GET /dire\0ct HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
        {BYTES("GET /direct?\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    };
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = dial(httpd_port(e->server, 0), 0);

        say(fd, cases[i].request, cases[i].n ? cases[i].n : strlen(cases[i].request));
        if (cases[i].status == 200)
            (void)shutdown(fd, SHUT_WR);
        b.n = 0;
        hear_all(e, fd, &b); /* a refused connection is closed, by libmicrohttpd 1.0 also without a word */
        if (b.n || cases[i].status == 200)
            assert_int_equal(atoi(b.p + 9), cases[i].status);
        (void)close(fd);
    }
}

static void accepts_heads_of_usual_clients(void **state)
{
    static const char *const heads[] = {
        "Host: localhost:8080\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\n",
        "Host: localhost:8080\r\nUser-Agent: Prometheus/2.42.0\r\nAccept: "
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
        "X-Prometheus-Scrape-Timeout-Seconds: 10\r\n",
        "Host: localhost:8080\r\nConnection: keep-alive\r\n"
        "sec-ch-ua: \"Chromium\";v=\"156\", \"Not A(Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\n"
        "sec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n"
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/156.0.0.0 Safari/537.36\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,"
        "image/avif,image/webp,*/*;q=0.8\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n"
        "Sec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
        "Accept-Language: en-US,en;q=0.9\r\nCookie: a=b; c=d\r\n",
        "Host: localhost:8080\r\nuser-agent: kube-probe/1.34\r\naccept: */*\r\nconnection: close\r\n",
    };
    struct env *e = *state;
    BUF_AUTO(request, 1 << 20);
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        request.n = 0;
        buf_printf(&request, "GET /direct HTTP/1.1\r\n%sConnection: close\r\n\r\n", heads[i]);
        buf_putc(&request, '\0');
        assert_int_equal(buf_failed(&request), 0);
        ask(e, request.p, &b);
        assert_int_equal(atoi(b.p + 9), 200);
    }
}

static void accepts_a_head_in_pieces(void **state)
{
    struct env *e = *state;
    int fd = dial(httpd_port(e->server, 0), 0);
    BUF_AUTO(request, 1 << 20);
    BUF_AUTO(b, 1 << 20);

    buf_puts(&request, "GET /direct HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 100; i++)
        buf_printf(&request, "X-%d: %0100d\r\n", i, i);
    buf_puts(&request, "Connection: close\r\n\r\n");
    assert_int_equal(buf_failed(&request), 0);
    for (size_t at = 0; at < request.n; at += 70) {
        say(fd, request.p + at, size_min(70, request.n - at));
        assert_int_equal(loop_turn(e->loop, at % 7 == 0), 0);
    }
    hear_all(e, fd, &b);
    assert_int_equal(atoi(b.p + 9), 200);
    (void)close(fd);
}

static void checks_the_host_on_loopback_addresses_only(void **state)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {
        {"localhost", 200},
        {"LocalHost:8080", 200},
        {"127.0.0.1", 200},
        {"127.0.0.1:8080", 200},
        {"[::1]:8080", 200},
        {"10.1.2.3:8443", 200},
        {"evil.example", 421},
        {"evil.example:1", 421},
        {"127.0.0.1.evil.example", 421},
        {"localhost.evil", 421},
        {"", 421},
        {"[::1.evil]", 421},
        {"evil.example:127", 421},
    };
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    char request[200];
    BUF_AUTO(b, 1 << 20);

    for (int everywhere = 0; everywhere < 2; everywhere++) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            (void)snprintf(request, sizeof(request),
                           "GET /direct HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", cases[i].host);
            ask(e, request, &b);
            assert_int_equal(atoi(b.p + 9), everywhere ? 200 : cases[i].status);
        }
        o.listen = (const char *const[]){":0"};
        open_server(e, &o);
    }
}

/* As proxies are asked. The target's authority counts as Host, whatever that says. */
static void takes_targets_in_absolute_form(void **state)
{
    static const struct {
        const char *line, *host;
        int status;
    } cases[] = {
        {"GET http://localhost/direct", "localhost", 200},
        {"GET HTTP://localhost:80/direct?x=1", "localhost", 200},
        {"GET https://127.0.0.1:1/direct", "evil.example", 200},
        {"GET http://[::1]:80/direct", "localhost", 200},
        {"POST http://localhost/post", "localhost", 200},
        {"GET http://localhost/nowhere", "localhost", 404},
        {"GET http://localhost", "localhost", 404},
        {"GET http://localhost?x=1", "localhost", 404},
        {"GET http://evil.example/direct", "localhost", 421},
        {"GET http://localhost.evil.example/direct", "localhost", 421},
        {"GET http://localhost@evil.example/direct", "localhost", 400},
        {"GET http://localhost%2f.evil.example/direct", "localhost", 400},
        {"GET http://localhost%00.evil.example/direct", "localhost", 400},
        {"GET http:///direct", "localhost", 400},
        {"GET http:/direct", "localhost", 404},
        {"GET ftp://localhost/direct", "localhost", 404},
        {"GET //localhost/direct", "localhost", 404},
    };
    struct env *e = *state;
    char request[300];
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        (void)snprintf(request, sizeof(request),
                       "%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                       cases[i].line, cases[i].host);
        ask(e, request, &b);
        if (atoi(b.p + 9) != cases[i].status)
            fail_msg("%s: %.30s", cases[i].line, b.p);
    }
}

static void refuses_requests_of_other_sites(void **state)
{
    static const struct {
        const char *fields;
        int status;
    } cases[] = {
        {"", 200},
        {"Origin: http://localhost\r\n", 200},
        {"Origin: https://localhost\r\nSec-Fetch-Site: same-origin\r\n", 200},
        {"Sec-Fetch-Site: none\r\n", 200},
        {"Origin: http://localhost:3000\r\n", 403},
        {"Origin: http://evil.example\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: same-site\r\n", 403},
    };
    struct env *e = *state;
    char request[300];
    BUF_AUTO(b, 1 << 20);

    for (int post = 0; post < 2; post++)
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            (void)snprintf(request, sizeof(request),
                           "%s HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\n\r\n",
                           post ? "POST /post" : "GET /direct", cases[i].fields);
            ask(e, request, &b);
            assert_int_equal(atoi(b.p + 9), post ? cases[i].status : 200);
        }
}

static void decodes_queries(void **state)
{
    static const char *const cases[][2] = {
        {"x=1", "1"},        {"x=a+b%20c", "a b c"},
        {"y=2&x=1", "1"},    {"x=1&x=2", "1"},
        {"%78=%31", "1"},    {"x=", ""},
        {"x", "(null)"},     {"", "(null)"},
        {"&&x=a=b&", "a=b"}, {"x=%zz%4", "%zz%4"},
        {"xx=1", "(null)"},  {"y=x=1", "(null)"},
        {"x=?", "?"},        {"y=%c3%a9&x=%C3%A9", "é"},
    };
    struct env *e = *state;
    char request[300];
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        (void)snprintf(request, sizeof(request), REQUEST("GET /loop?%s"), cases[i][0]);
        ask(e, request, &b);
        assert_string_equal(body_of(&b), "hello");
        assert_string_equal(e->query, cases[i][1]);
    }
}

/* libmicrohttpd 0.9.75 closes the connection without a word when so many do not fit into its memory. */
static void survives_3000_arguments(void **state)
{
    struct env *e = *state;
    BUF_AUTO(request, 1 << 20);
    BUF_AUTO(b, 1 << 20);
    int fd = dial(httpd_port(e->server, 0), 0);

    buf_puts(&request, "GET /loop?");
    for (int i = 0; i < 3000; i++)
        buf_printf(&request, "a%d=%d&", i, i % 10);
    buf_printf(&request, "x=last%s", REQUEST(""));
    assert_int_equal(buf_failed(&request), 0);
    say(fd, request.p, request.n);
    hear_all(e, fd, &b);
    assert_true(b.n == 0 || atoi(b.p + 9) == 200 || atoi(b.p + 9) / 100 == 4);
    (void)close(fd);
    ask(e, REQUEST("GET /loop?x=1"), &b);
    assert_string_equal(e->query, "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(refuses_ambiguous_heads),
        CASE(accepts_heads_of_usual_clients),
        CASE(accepts_a_head_in_pieces),
        CASE(checks_the_host_on_loopback_addresses_only),
        CASE(takes_targets_in_absolute_form),
        CASE(refuses_requests_of_other_sites),
        CASE(decodes_queries),
        CASE(survives_3000_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
