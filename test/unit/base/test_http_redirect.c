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

/* Another port is another origin. Neither series nor credentials arrive there. */
static void follows_no_redirect_to_another_origin(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/a?key=secret"));
    const struct str part = STR("[1]");
    char want[256];
    struct got g;

    (void)snprintf(want, sizeof(want),
                   "redirect from http://127.0.0.1:%u to http://127.0.0.1:%u is not followed: it is another "
                   "origin; configure its URL if it is the right one",
                   fake_port(e->server), fake_port(e->other));
    for (int status = 301; status <= 308; status++) {
        if (status >= 304 && status <= 306)
            continue;
        rq.bearer = STR("secret-token");
        rq.body = &part;
        rq.body_parts = 1;
        fake_push(e->server, (struct fake_answer){.status = status,
                                                  .location = fake_url(e->other, "/b?secret"),
                                                  .body = "moved"});
        call(e, &rq, &g);
        assert_failed(&g, HTTP_REDIRECT);
        assert_string_equal(g.a.reason, want);
    }
    assert_int_equal(fake_requests(e->other), 0);
}

static void tells_what_is_another_origin(void **state)
{
    static const struct {
        const char *location, *to;
    } cases[] = {
        {"https://127.0.0.1/b", "to https://127.0.0.1:443 is not followed: configure the https:// URL"},
        {"//127.0.0.1:1/b", "to http://127.0.0.1:1 is not"},
        {"http://localhost:%u/b", "to http://localhost:%u is not"},
        {"http://user:secret@[::1]:%u/", "to http://[::1]:%u is not"},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char location[128], to[128];
        struct got g;

        (void)snprintf(location, sizeof(location), cases[i].location, fake_port(e->server));
        (void)snprintf(to, sizeof(to), cases[i].to, fake_port(e->server));
        fake_push(e->server, (struct fake_answer){.status = 302, .location = location});
        get(e, "/", &g);
        assert_failed(&g, HTTP_REDIRECT);
        assert_non_null(strstr(g.a.reason, to));
    }
}

static void follows_every_spelling_of_the_same_origin(void **state)
{
    static const char *const locations[] = {
        "/b", "b", "?b", "//127.0.0.1:%u/b", "HTTP://127.0.0.1:%u/b", "http://127.0.0.1:%u"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(locations); i++) {
        char location[128];
        struct got g;

        (void)snprintf(location, sizeof(location), locations[i], fake_port(e->server));
        fake_push(e->server, (struct fake_answer){.status = 302, .location = location});
        get(e, "/", &g);
        assert_ok(&g, 200);
        assert_body(&g, "{}");
    }
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
    static const char *const targets[] = {"/again", "http://u:secret@[::1/"};
    struct env *e = *state;
    struct got g;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        size_t n = fake_requests(e->server);
        fake_default(e->server, (struct fake_answer){.status = 302, .location = targets[i]});
        get(e, "/", &g);
        assert_failed(&g, HTTP_BROKEN);
        assert_int_equal(fake_requests(e->server) - n, i == 0 ? 6 : 1);
    }
    fake_default(e->server, (struct fake_answer){.status = 302, .location = "file:///etc/passwd"});
    get(e, "/", &g);
    assert_true(g.a.error == HTTP_REDIRECT || g.a.error == HTTP_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(follows_a_redirect_on_the_same_host),
        CASE(follows_no_redirect_to_another_origin),
        CASE(tells_what_is_another_origin),
        CASE(follows_every_spelling_of_the_same_origin),
        CASE(sends_a_large_body_again),
        CASE(limits_redirects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
