/* Redirects, and what may follow them. */
#include "exporter/base/buf.h"
#include "test/unit/base/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static void follows_a_redirect_on_the_same_host(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    struct got g;

    rq.bearer = STR("secret-token");
    fake_push(e->server, (struct fake_answer){.status = 302,
                                              .location = "/b",
                                              .body = "moved",
                                              .headers = "Retry-After: 9\r\nContent-Type: text/moved\r\n"});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}");
    assert_int_equal(g.a.retry_after_ms, -1);
    assert_string_equal(g.a.content_type, "");
    assert_string_equal(fake_request(e->server, 1)->target, "/b");
    assert_header(fake_request(e->server, 1), "Authorization", "Bearer secret-token");
}

static void keeps_the_token_from_other_hosts(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    const struct str part = STR("[1]");
    struct got g;

    for (int status = 301; status <= 308; status++) {
        size_t n = fake_requests(e->other);
        if (status >= 304 && status <= 306)
            continue;
        rq.bearer = STR("secret-token");
        rq.body = &part;
        rq.body_parts = 1;
        fake_push(e->server, (struct fake_answer){.status = status, .location = fake_url(e->other, "/b")});
        call(e, &rq, &g);
        assert_ok(&g, 200);
        assert_header(fake_request(e->other, n), "Authorization", "(absent)");
        assert_string_equal(fake_request(e->other, n)->method, status == 303 ? "GET" : "POST");
        assert_string_equal(fake_request(e->other, n)->body, status == 303 ? "" : "[1]");
        buf_done(&g.body);
    }
}

static void keeps_the_user_of_the_url_from_other_hosts(void **state)
{
    struct env *e = *state;
    char url[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/", fake_port(e->server));
    rq = rq_of(url);
    fake_push(e->server, (struct fake_answer){.status = 307, .location = fake_url(e->other, "/b")});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_header(fake_request(e->other, 0), "Authorization", "(absent)");
    buf_done(&g.body);
}

static void sends_a_large_body_again(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a"));
    struct large l;
    struct got g;

    large_make(&l);
    rq.body = l.parts;
    rq.body_parts = 3;
    fake_push(e->server, (struct fake_answer){.status = 307, .location = "/b"});
    call(e, &rq, &g);
    assert_ok(&g, 200);
    assert_string_equal(fake_request(e->server, 1)->target, "/b");
    assert_int_equal(fake_request(e->server, 1)->body_len, l.n);
    assert_memory_equal(fake_request(e->server, 1)->body, l.bytes, l.n);
    buf_done(&g.body);
    free(l.bytes);
}

static void limits_redirects(void **state)
{
    static const char *const targets[] = {"/again", "ftp://127.0.0.1/x", "file:///etc/passwd",
                                          "http://u:secret@[::1/"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        size_t n = fake_requests(e->server);
        struct got g;
        fake_default(e->server, (struct fake_answer){.status = 302, .location = targets[i]});
        get(e, "/", &g);
        assert_failed(&g, HTTP_BROKEN);
        assert_int_equal(fake_requests(e->server) - n, i == 0 ? 6 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(follows_a_redirect_on_the_same_host),
        CASE(keeps_the_token_from_other_hosts),
        CASE(keeps_the_user_of_the_url_from_other_hosts),
        CASE(sends_a_large_body_again),
        CASE(limits_redirects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
