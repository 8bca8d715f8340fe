/* A server whose web configuration file changes. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/web/access.h"
#include "test/unit/base/httpd_world.h"
#include "test/unit/web/web_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define USERS "basic_auth_users:\n  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n"
#define WITH(authorization)                                                                                  \
    "GET /direct HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " authorization "\r\n\r" \
    "\n"
#define ALICE WITH("Basic YWxpY2U6VSpV")

struct guarded {
    struct env *e;
    struct folder folder;
    struct metrics *metrics;
    struct access *access;
    unsigned changes;
};

static void on_changed(void *arg)
{
    ((struct guarded *)arg)->changes++;
}

static enum httpd_access on_guard(void *arg, const struct httpd_request *rq,
                                  const struct httpd_ticket *ticket, struct httpd_refusal *ret)
{
    (void)arg;
    (void)ticket;
    *ret = (struct httpd_refusal){.status = 403, .text = "403: not by this guard\n"};
    return rq->authorization[0] ? HTTPD_ALLOW : HTTPD_REFUSE;
}

static const struct httpd_guard guard = {.check = on_guard, .deadline_ms = 20000};

static int begin(struct guarded *g, struct loop *loop, const char *text, const struct httpd_guard *own)
{
    CLEANUP(cleanup_free) char *why = NULL;
    int r;

    folder_make(&g->folder);
    if (text)
        folder_write(&g->folder, text);
    g->metrics = metrics_new(METRIC_OWNER_LOOP);
    r = access_new(&g->access,
                   &(struct access_options){.loop = loop,
                                            .metrics = g->metrics,
                                            .file = text ? g->folder.file : NULL,
                                            .guard = own,
                                            .changed = on_changed,
                                            .arg = g},
                   &why);
    assert_int_equal(r == -EINVAL, why != NULL);
    return r;
}

static void end(struct guarded *g)
{
    access_close(g->access);
    if (g->e)
        g->e->server = httpd_stop(g->e->server, 0);
    g->access = access_free(g->access);
    g->metrics = metrics_free(g->metrics);
    folder_remove(&g->folder);
}

static void serve(struct guarded *g, struct env *e, const char *text, const struct httpd_guard *own)
{
    struct httpd_options o = options_for(e);

    g->e = e;
    assert_int_equal(begin(g, e->loop, text, own), 0);
    access_configure(g->access, &o);
    open_server(e, &o);
    assert_int_equal(access_serve(g->access, e->server), 0);
}

static int ask_for(struct guarded *g, const char *request, struct buf *b)
{
    ask(g->e, request, b);
    return atoi(b->p + 9);
}

static int reload(struct guarded *g, const char *text)
{
    folder_write(&g->folder, text);
    return access_reload(g->access, NULL);
}

static void applies_each_part_of_the_file(void **state)
{
    struct guarded g = {0};
    BUF_AUTO(b, 1 << 20);

    serve(&g, *state, "", NULL);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 200);
    assert_int_equal(reload(&g, USERS "http_server_config:\n  headers: {X-Frame-Options: deny}\n"), 0);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 401);
    assert_non_null(strstr(b.p, "\r\nX-Frame-Options: deny\r\n"));
    assert_int_equal(ask_for(&g, ALICE, &b), 200);
    assert_int_equal(reload(&g, "rate_limit:\n  interval: 10s\n  burst: 2\n"), 0);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 200);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 200);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 429);
    assert_non_null(strstr(b.p, "\r\nRetry-After: 10\r\n"));
    assert_null(strstr(b.p, "X-Frame-Options"));
    assert_int_equal(reload(&g, ""), 0);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 200);
    end(&g);
}

static void keeps_the_last_valid_file(void **state)
{
    struct guarded g = {0};
    BUF_AUTO(b, 1 << 20);
    BUF_AUTO(why, 1 << 20);

    serve(&g, *state, USERS, NULL);
    assert_true(metric_get(g.metrics, METRIC_WEB_CONFIG_OK, LV_NONE) == 1);
    assert_true(access_status(g.access)->ok && !access_status(g.access)->problems);
    folder_write(&g.folder, "basic_auth_users: {}\nbasic: 1\n");
    assert_int_equal(access_reload(g.access, &why), -EINVAL);
    assert_int_equal(buf_putc(&why, '\0'), 0);
    assert_non_null(strstr(why.p, "web.yml:2:1: error: basic: unknown key"));
    assert_true(metric_get(g.metrics, METRIC_WEB_CONFIG_OK, LV_NONE) == 0);
    assert_false(access_status(g.access)->ok);
    assert_non_null(strstr(access_status(g.access)->problems, ":2:1: error: basic: unknown key"));
    assert_int_equal(g.changes, 2);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 401);
    assert_int_equal(ask_for(&g, ALICE, &b), 200);
    assert_int_equal(reload(&g, "tls_server_config:\n  cert: x\n  key: x\n"), -EINVAL);
    assert_non_null(strstr(access_status(g.access)->problems, "tls_server_config: cannot be added"));
    assert_int_equal(reload(&g, USERS), 0);
    assert_true(metric_get(g.metrics, METRIC_WEB_CONFIG_OK, LV_NONE) == 1);
    end(&g);
}

static void asks_a_guard_of_its_own_without_users(void **state)
{
    struct guarded g = {0};
    BUF_AUTO(b, 1 << 20);

    serve(&g, *state, "rate_limit:\n  interval: 10s\n  burst: 2\n", &guard);
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 403);
    assert_int_equal(ask_for(&g, ALICE, &b), 200);
    assert_int_equal(ask_for(&g, ALICE, &b), 429);
    assert_int_equal(reload(&g, USERS), -EINVAL);
    assert_non_null(
        strstr(access_status(g.access)->problems, "cannot be combined with --web.kubernetes-auth"));
    end(&g);
    g = (struct guarded){0};
    serve(&g, *state, NULL, &guard);
    assert_null(access_status(g.access));
    assert_int_equal(ask_for(&g, REQUEST("GET /direct"), &b), 403);
    assert_int_equal(access_reload(g.access, NULL), 0);
    end(&g);
}

static void refuses_to_start_with_an_invalid_file(void **state)
{
    static const char *const cases[] = {"x", "basic_auth_users:\n  john: doe\n",
                                        "tls_server_config:\n  cert_file: x\n"};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct guarded g = {0};
        assert_int_equal(begin(&g, ((struct env *)*state)->loop, cases[i], NULL), -EINVAL);
        assert_null(g.access);
        end(&g);
    }
}

/* ---- With a clock of its own ---- */

static _Atomic int64_t clock_ms = 1000000;

static mono_ms test_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){atomic_load(&clock_ms)};
}

static unix_ms test_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){atomic_load(&clock_ms)};
}

static const struct clock test_clock = {.mono = test_mono, .wall = test_wall};

static void look(struct loop *loop)
{
    atomic_fetch_add(&clock_ms, 3000);
    assert_int_equal(loop_turn(loop, 0), 0);
    assert_int_equal(loop_turn(loop, 0), 0);
}

/* A Kubernetes volume: the folder that a link names is replaced, and the file's own link stays. */
static void follows_the_links_of_a_kubernetes_volume(void **state)
{
    CLEANUP(cleanup_loop_free) struct loop *loop = NULL;
    struct guarded g = {0};

    (void)state;
    assert_int_equal(loop_new(&loop, &test_clock), 0);
    assert_int_equal(begin(&g, loop, "", NULL), 0);
    assert_int_equal(chdir(g.folder.path), 0);
    assert_int_equal(
        system("mkdir v1 v2; mv web.yml v1; echo x > v2/web.yml; touch -r v1/web.yml v2/web.yml; "
               "ln -s v1 ..data; ln -s ..data/web.yml web.yml"),
        0);
    look(loop);
    assert_true(access_status(g.access)->ok);
    assert_int_equal(g.changes, 1); /* moving does not change it */
    assert_int_equal(system("ln -s v2 next; mv -T next ..data"), 0);
    look(loop);
    assert_int_equal(g.changes, 2);
    assert_false(access_status(g.access)->ok);
    look(loop);
    assert_int_equal(g.changes, 2); /* no change, no log line */
    assert_int_equal(system("rm ..data"), 0);
    look(loop);
    look(loop);
    assert_int_equal(g.changes, 3);
    assert_non_null(strstr(access_status(g.access)->problems, "No such file"));
    assert_int_equal(system("ln -s v1 ..data"), 0);
    look(loop);
    assert_int_equal(g.changes, 4);
    assert_true(access_status(g.access)->ok);
    assert_int_equal(chdir("/"), 0);
    end(&g);
}

/* ---- The rate limit ---- */

static bool take(struct rate_limit *l, int64_t at)
{
    return rate_limit_take(l, (mono_ms){at});
}

static void allows_everything_without_an_interval(void **state)
{
    struct rate_limit l = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(take(&l, 5));
}

static void allows_a_burst_and_then_one_for_each_interval(void **state)
{
    struct rate_limit l = {.interval_ms = 100, .burst = 3};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(take(&l, 1000));
    assert_false(take(&l, 1000));
    assert_false(take(&l, 1099));
    assert_true(take(&l, 1100));
    assert_false(take(&l, 1199));
    assert_true(take(&l, 1350)); /* half of another has come back meanwhile */
    assert_true(take(&l, 1400));
    assert_true(take(&l, 1401));
    assert_false(take(&l, 1499));
    for (int i = 0; i < 3; i++)
        assert_true(take(&l, 100000)); /* no more than the burst is saved */
    assert_false(take(&l, 100000));
}

static void refuses_everything_with_a_burst_of_0(void **state)
{
    struct rate_limit l = {.interval_ms = 100};

    (void)state;
    assert_false(take(&l, 1));
    assert_false(take(&l, 1000000));
}

/* ---- The bearer token ---- */

static bool is_probe(const struct httpd_request *rq)
{
    return strcmp(rq->path, "/healthz") == 0;
}

/* 200, or the status of the refusal. */
static unsigned status_of(const struct bearer *b, const char *method, const char *path,
                          const char *authorization)
{
    const struct httpd_request rq = {.method = method, .path = path, .authorization = authorization};
    const struct httpd_guard *g = bearer_guard(b);
    struct httpd_refusal refusal = {0};

    if (g->check(g->arg, &rq, NULL, &refusal) == HTTPD_ALLOW)
        return 200;
    assert_int_equal(refusal.challenge != NULL, refusal.status == 401);
    return refusal.status;
}

static void requires_the_token(void **state)
{
    static const struct {
        const char *authorization;
        unsigned status;
    } cases[] = {
        {"Bearer s3cret", 200}, {"bEARER  s3cret ", 200}, {"", 401},
        {"Bearer", 401},        {"Bearer ", 401},         {"Bearer s3cre", 401},
        {"s3cret", 401},        {"Bearer s3cret2", 401},  {"Basic s3cret", 401},
        {"Bearer S3CRET", 401}, {"Bearers3cret", 401},
    };
    struct bearer b;

    (void)state;
    bearer_init(&b, NULL, "s3cret", is_probe);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(status_of(&b, "POST", "/scoring", cases[i].authorization), cases[i].status);
    assert_int_equal(status_of(&b, "GET", "/config", ""), 401);
    assert_int_equal(status_of(&b, "GET", "/healthz", ""), 200);
}

static void refuses_all_calls_without_a_readable_token(void **state)
{
    struct bearer b;

    (void)state;
    bearer_init(&b, "/nonexistent/token", NULL, is_probe);
    assert_int_equal(status_of(&b, "POST", "/scoring", "Bearer x"), 503);
    bearer_init(&b, NULL, "", is_probe);
    assert_int_equal(status_of(&b, "POST", "/scoring", "Bearer x"), 503);
    bearer_init(&b, NULL, NULL, is_probe);
    assert_null(bearer_guard(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(applies_each_part_of_the_file),
        CASE(keeps_the_last_valid_file),
        CASE(asks_a_guard_of_its_own_without_users),
        CASE(refuses_to_start_with_an_invalid_file),
        CASE(follows_the_links_of_a_kubernetes_volume),
        cmocka_unit_test(allows_everything_without_an_interval),
        cmocka_unit_test(allows_a_burst_and_then_one_for_each_interval),
        cmocka_unit_test(refuses_everything_with_a_burst_of_0),
        cmocka_unit_test(requires_the_token),
        cmocka_unit_test(refuses_all_calls_without_a_readable_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
