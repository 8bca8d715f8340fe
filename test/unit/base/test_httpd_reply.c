/* Answers of a server of httpd_new(): every size, every kind of reader, and who frees them. */
#include "test/unit/base/httpd_world.h"

static void sends_the_headers_of_a_reply(void **state)
{
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    ask(e, REQUEST("GET /page"), &b);
    assert_non_null(strstr(b.p, " 202 "));
    assert_non_null(strstr(b.p, "\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(b.p, "\r\nContent-Encoding: identity\r\n"));
    assert_non_null(strstr(b.p, "\r\nVary: Accept\r\n"));
    assert_non_null(strstr(b.p, "\r\nContent-Security-Policy: default-src 'none'\r\n"));
    assert_non_null(strstr(b.p, "\r\nCache-Control: no-cache\r\n"));
    assert_non_null(strstr(b.p, "\r\nETag: \"abc\"\r\n"));
    assert_non_null(strstr(b.p, "\r\nReferrer-Policy: no-referrer\r\n"));
}

static void check_large(struct env *e, const struct buf *b)
{
    const char *body = body_of(b);
    const struct iovec *parts = atomic_load(&e->parts);
    size_t n = 0;

    for (unsigned i = 0; i < atomic_load(&e->n_parts); i++) {
        assert_memory_equal(body + n, parts[i].iov_base, parts[i].iov_len);
        n += parts[i].iov_len;
    }
    assert_int_equal(b->n - (size_t)(body - b->p), n);
}

static void sends_a_large_answer(void **state)
{
    static const char *const requests[] = {REQUEST("GET /large"), REQUEST("GET /large-loop")};
    struct env *e = *state;
    BUF_AUTO(b, 64 << 20);

    for (int i = 0; i < 4; i++) {
        answer_with(e, i >= 2 ? e->small : e->large, i >= 2 ? MANY : LARGE_PARTS);
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

/* A request's headers share a small memory with what the answer needs: whatever they leave of it, the
 * server lives. */
static void sends_headers_of_every_size(void **state)
{
    static const int parts[] = {1, 3, 100, MANY};
    struct env *e = *state;
    BUF_AUTO(request, 1 << 20);
    BUF_AUTO(b, 64 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        for (int size = 1; size < 36000; size += size < 28000 ? 3989 : 97) {
            request.n = 0;
            answer_with(e, e->small, (unsigned)parts[i]);
            assert_int_equal(
                buf_printf(&request,
                           "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: %0*d\r\n\r\n",
                           size, 0),
                0);
            assert_int_equal(buf_putc(&request, '\0'), 0);
            ask(e, request.p, &b);
            if (size > 12000)
                assert_true(b.n == 0 || strstr(b.p, " 200 ") || strstr(b.p, " 431 "));
            else
                check_large(e, &b);
        }
}

static void waits_for_a_slow_reader(void **state)
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

static void releases_the_answer_of_a_reader_that_left(void **state)
{
    static const char *const requests[] = {REQUEST("GET /large"), REQUEST("GET /large-loop")};
    struct env *e = *state;

    for (int i = 0; i < 8; i++) {
        int fd = dial(httpd_port(e->server, 0), 4096);
        char some[100];
        answer_with(e, i & 2 ? e->small : e->large, i & 2 ? MANY : LARGE_PARTS);
        say(fd, requests[i % 2], strlen(requests[i % 2]));
        if (i < 4)
            assert_true(hear(e, fd, some, sizeof(some)) > 0);
        (void)close(fd); /* what is unread makes this a reset */
        wait_for(e, &e->released, i + 1);
    }
}

static void sends_additional_headers(void **state)
{
    static const struct httpd_header first[] = {{"X-Frame-Options", "deny"},
                                                {"content-security-policy", "x"}};
    static const struct httpd_header then[] = {{"X-Content-Type-Options", "other"}};
    struct env *e = *state;
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(httpd_set_headers(e->server, first, 2), 0);
    ask(e, REQUEST("GET /page"), &b);
    assert_non_null(strstr(b.p, "\r\nX-Frame-Options: deny\r\n"));
    assert_non_null(strstr(b.p, "\r\ncontent-security-policy: x\r\n"));
    assert_null(strstr(b.p, "default-src"));
    assert_non_null(strstr(b.p, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_int_equal(httpd_set_headers(e->server, then, 1), 0);
    ask(e, REQUEST("GET /none"), &b);
    assert_non_null(strstr(b.p, "\r\nX-Content-Type-Options: other\r\n"));
    assert_null(strstr(b.p, "nosniff"));
    assert_null(strstr(b.p, "X-Frame-Options"));
    assert_int_equal(httpd_set_headers(e->server, NULL, 0), 0);
    ask(e, REQUEST("GET /none"), &b);
    assert_non_null(strstr(b.p, "nosniff"));
}

static void error_as_json(const struct httpd_request *rq, struct httpd_reply *reply, struct str text)
{
    char body[200];
    int n = snprintf(body, sizeof(body), "{%u %s %.*s}", reply->status, rq->content_type,
                     (int)strcspn(text.p, "\n"), text.p);

    httpd_reply_copy(reply, (struct str){body, (size_t)n});
    reply->content_type = "application/json";
}

static void words_its_own_errors_as_asked(void **state)
{
    struct env *e = *state;
    struct httpd_options o = options_for(e);
    BUF_AUTO(b, 1 << 20);

    o.error_body = error_as_json;
    open_server(e, &o);
    ask(e, REQUEST("GET /none"), &b);
    assert_string_equal(body_of(&b), "{404  404: not found. Available paths:}");
    assert_non_null(strstr(b.p, "\r\nContent-Type: application/json\r\n"));
    ask(e,
        "PUT /loop HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/a\r\n"
        "Content-Length: 1\r\n\r\nx",
        &b);
    assert_string_equal(body_of(&b), "{405 text/a 405: method not allowed for this path}");
    assert_non_null(strstr(b.p, "\r\nAllow: GET, HEAD, POST\r\n"));
    ask(e, "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", &b);
    assert_string_equal(body_of(&b), "{413  413: request body exceeds the limit of 65536 bytes}");
    ask(e, "GET /direct HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", &b);
    assert_string_equal(body_of(&b), "{400  400: several Host fields}");
    ask(e, REQUEST("GET /direct"), &b);
    assert_string_equal(body_of(&b), "hello");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sends_the_headers_of_a_reply),
        CASE(sends_a_large_answer),
        CASE(sends_headers_of_every_size),
        CASE(waits_for_a_slow_reader),
        CASE(releases_the_answer_of_a_reader_that_left),
        CASE(sends_additional_headers),
        CASE(words_its_own_errors_as_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
