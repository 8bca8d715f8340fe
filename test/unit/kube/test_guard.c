/* The guard in front of a real HTTP server, with a scripted API server behind it. */
#include "controller/kube/guard.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/unit/base/httpd_world.h"
#include "test/unit/base/pairs.h"

#define USER   "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"prometheus\"}}}"
#define NOBODY "{\"status\":{\"authenticated\":false}}"
#define YES    "{\"status\":{\"allowed\":true}}"
#define NO     "{\"status\":{\"allowed\":false}}"
#define WITH(line, authorization) \
    line " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " authorization "\r\n\r\n"

struct world {
    struct fake_kube *f;
    struct kube_guard *guard;
    struct env e;
};

static struct httpd_route guarded_routes[] = {
    {"GET", "/metrics", on_hello, NULL, true, 0, 0, false},
    {"GET", "/", on_hello, NULL, false, 0, 0, false},
    {"GET", "/-/ready", on_hello, NULL, false, 0, 0, false},
    {"POST", "/-/reload", on_hello, NULL, false, 0, 0, false},
};

static int guard_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct httpd_options o = options_for(&w->e);

    w->f = fake_kube_new();
    w->e.loop = w->f->loop;
    w->guard = kube_guard_new(
        &(struct kube_review_options){
            .kube = w->f->kube,
            .cache_ttl_ms = 60000,
            .timeout_ms = 60000,
        },
        kube_rights_default);
    for (size_t i = 0; i < ARRAY_SIZE(guarded_routes); i++)
        guarded_routes[i].arg = &w->e;
    o.routes = guarded_routes;
    o.n_routes = ARRAY_SIZE(guarded_routes);
    o.guard = kube_guard_httpd(w->guard);
    open_server(&w->e, &o);
    *state = w;
    return 0;
}

static int guard_teardown(void **state)
{
    struct world *w = *state;

    w->e.server = httpd_stop(w->e.server, 0);
    w->guard = kube_guard_free(w->guard);
    w->f = fake_kube_free(w->f);
    free(w);
    return 0;
}

static void push(struct world *w, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.status = 201, .body = body});
}

static void refuses_requests_without_a_token(void **state)
{
    static const char *const cases[] = {
        REQUEST("GET /metrics"),
        REQUEST("POST /-/reload"),
        REQUEST("GET /nothing"),
        WITH("GET /", ""),
        WITH("GET /", "Bearer"),
        WITH("GET /", "Bearer "),
        WITH("GET /", "Bearertoken"),
        WITH("GET /", "Basic dXNlcjpwYXNzd29yZA=="),
        WITH("GET /", "Bearer two words"),
        WITH("GET /", "Bearer t\xc3\xbc"),
        WITH("GET /", "Bearer one\r\nAuthorization: Bearer two"),
    };
    struct world *w = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ask(&w->e, cases[i], &b);
        assert_memory_equal(b.p, "HTTP/1.1 401 ", 13);
        assert_non_null(strstr(b.p, "\r\nWWW-Authenticate: Bearer\r\n"));
        assert_memory_equal(body_of(&b), "401: ", 5);
    }
    assert_int_equal(fake_requests(w->f->server), 0);
    assert_int_equal(atomic_load(&w->e.handled), 0);
}

static void refuses_a_token_that_is_too_long(void **state)
{
    enum { LONGEST = 16 << 10 };
    struct world *w = *state;
    BUF_AUTO(token, 32 << 10);
    BUF_AUTO(request, 64 << 10);
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < LONGEST; i++)
        assert_int_equal(buf_putc(&token, 'x'), 0);
    for (int longer = 0; longer < 2; longer++) {
        push(w, NOBODY);
        buf_truncate(&request, 0);
        assert_int_equal(
            buf_printf(&request, WITH("GET /", "Bearer %s%.*s"), longer ? "x" : "", (int)token.n, token.p),
            0);
        assert_int_equal(buf_putc(&request, '\0'), 0);
        ask(&w->e, request.p, &b);
        assert_memory_equal(b.p, "HTTP/1.1 401 ", 13);
        assert_int_equal(fake_requests(w->f->server), 1);
        assert_true((strstr(b.p, "longer than 16384 bytes") != NULL) == longer);
    }
}

static void asks_for_the_right_of_each_path(void **state)
{
    static const struct {
        const char *request, *right;
    } cases[] = {
        {WITH("GET /metrics", "Bearer t1"), "{\"path\":\"/metrics\",\"verb\":\"get\"}"},
        {WITH("HEAD /metrics?x=1", "bearer  t2"), "{\"path\":\"/metrics\",\"verb\":\"get\"}"},
        {WITH("GET /", "BEARER t3"), "{\"path\":\"/status\",\"verb\":\"get\"}"},
        {WITH("GET /-/ready", "Bearer t4"), "{\"path\":\"/status\",\"verb\":\"get\"}"},
        {WITH("POST /-/reload", "Bearer t5"), "{\"path\":\"/-/reload\",\"verb\":\"post\"}"},
    };
    struct world *w = *state;
    BUF_AUTO(b, 1 << 20);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        push(w, USER);
        push(w, i % 2 ? YES : NO);
        ask(&w->e, cases[i].request, &b);
        assert_non_null(strstr(fake_request(w->f->server, 2 * i + 1)->body, cases[i].right));
        assert_memory_equal(b.p, i % 2 ? "HTTP/1.1 200 " : "HTTP/1.1 403 ", 13);
        assert_true(i % 2 || strstr(body_of(&b), "403: user \"prometheus\" cannot "));
    }
    assert_int_equal(atomic_load(&w->e.handled), 2);
    assert_int_equal(fake_requests(w->f->server), 2 * ARRAY_SIZE(cases));
}

static void push_certificate(struct world *w, const struct pair *p, const char *authorization)
{
    struct httpd_ticket nobody = {.server = w->e.server};
    const struct httpd_guard *g = kube_guard_httpd(w->guard);
    struct httpd_refusal refusal;
    struct httpd_request rq = {.path = "/metrics", .authorization = authorization};
    gnutls_datum_t der;

    assert_int_equal(gnutls_x509_crt_export2(p->crt, GNUTLS_X509_FMT_DER, &der), 0);
    rq.client_certificate = (struct str){(const char *)der.data, der.size};
    assert_int_equal(g->check(g->arg, &rq, &nobody, &refusal), HTTPD_LATER);
    gnutls_free(der.data);
}

/* A token counts more, as the certificate may be that of a proxy. */
static void takes_a_client_certificate_in_place_of_a_token(void **state)
{
    struct world *w = *state;
    struct pair p = {0};

    make_pair(&p, (struct wish){.name = "scraper", .organizations = {"monitoring"}});
    push(w, YES);
    push(w, USER);
    push(w, NO);
    push_certificate(w, &p, "");
    fake_kube_requests(w->f, 1);
    assert_non_null(strstr(fake_request(w->f->server, 0)->body, "\"user\":\"scraper\",\"groups\":["));
    push_certificate(w, &p, "Bearer t");
    fake_kube_requests(w->f, 3);
    assert_non_null(strstr(fake_request(w->f->server, 2)->body, "\"user\":\"prometheus\""));
    push_certificate(w, &p, "");
    fake_kube_settle(w->f);
    assert_int_equal(fake_requests(w->f->server), 3);
    drop_pair(&p);
    make_pair(&p, (struct wish){.name = ""}); /* which is nobody's */
    push_certificate(w, &p, "");
    fake_kube_settle(w->f);
    assert_int_equal(fake_requests(w->f->server), 3);
    drop_pair(&p);
}

static void answers_404_and_405_only_to_those_who_may_see_them(void **state)
{
    struct world *w = *state;
    BUF_AUTO(b, 1 << 20);

    push(w, USER);
    push(w, YES);
    ask(&w->e, WITH("GET /nothing", "Bearer t"), &b);
    assert_memory_equal(b.p, "HTTP/1.1 404 ", 13);
    ask(&w->e, WITH("POST /", "Bearer t"), &b);
    assert_memory_equal(b.p, "HTTP/1.1 405 ", 13);
}

/* Also if the loop has not seen the request yet. */
static void stops_while_requests_wait(void **state)
{
    struct world *w = *state;
    int fds[2];
    char byte;

    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    for (size_t i = 0; i < 2; i++) {
        const char *request = i ? WITH("GET /", "Bearer t2") : WITH("GET /", "Bearer t1");

        fds[i] = dial(httpd_port(w->e.server, 0), 0);
        say(fds[i], request, strlen(request));
        if (i == 0)
            fake_kube_requests(w->f, 1);
        else
            (void)usleep(20000); /* usually long enough for the server's thread to see it */
    }
    w->e.server = httpd_stop(w->e.server, 1000);
    w->guard = kube_guard_free(w->guard);
    for (size_t i = 0; i < 2; i++) {
        (void)recv(fds[i], &byte, 1, 0);
        (void)close(fds[i]);
    }
    assert_int_equal(atomic_load(&w->e.handled), 0);
}

int main(void)
{
#undef CASE
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, guard_setup, guard_teardown)
    const struct CMUnitTest tests[] = {
        CASE(refuses_requests_without_a_token),
        CASE(refuses_a_token_that_is_too_long),
        CASE(asks_for_the_right_of_each_path),
        CASE(takes_a_client_certificate_in_place_of_a_token),
        CASE(answers_404_and_405_only_to_those_who_may_see_them),
        CASE(stops_while_requests_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
