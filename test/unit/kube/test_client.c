/* REST calls: what is sent, what comes back, and credentials that change meanwhile. */
#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct got {
    unsigned times;
    struct kube_answer a; /* its object is ours */
};

static int setup(void **state)
{
    *state = fake_kube_new();
    return 0;
}

static int teardown(void **state)
{
    *state = fake_kube_free(*state);
    return 0;
}

static void on_done(void *arg, struct kube_answer *a)
{
    struct got *g = arg;

    g->times++;
    json_decref(g->a.object);
    g->a = *a;
    json_incref(a->object);
}

static void call(struct fake_kube *f, const struct kube_request *rq, struct got *g)
{
    unsigned before = g->times;

    (void)kube_start(f->kube, rq, on_done, g);
    assert_int_equal(g->times, before);
    fake_kube_turn(f, &g->times, before + 1);
}

static void done_with(struct got *g)
{
    json_decref(g->a.object);
}

static const struct kube_request get_a = {
    .method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = "a"};

static void assert_header_is(struct fake_kube *f, size_t i, const char *name, const char *want)
{
    char value[256] = "(absent)";

    (void)fake_header(fake_request(f->server, i), name, value, sizeof(value));
    assert_string_equal(value, want);
}

static void sends_each_kind_of_request(void **state)
{
    json_auto_t *body = json_pack("{s:{s:s}}", "metadata", "name", "a");
    const struct {
        struct kube_request rq;
        const char *asked, *content_type;
    } cases[] = {
        {get_a, "GET /api/v1/namespaces/ns/configmaps/a", "(absent)"},
        {{.method = KUBE_LIST, .resource = &kube_secrets}, "GET /api/v1/secrets", "(absent)"},
        {{.method = KUBE_LIST,
          .resource = &kube_leases,
          .namespace = "ns",
          .label_selector = "a/b=c,d!=e",
          .field_selector = "metadata.name=x",
          .query = "limit=5"},
         "GET "
         "/apis/coordination.k8s.io/v1/namespaces/ns/leases?labelSelector=a%2Fb%3Dc%2Cd%21%3De&fieldSelector="
         "metadata.name%3Dx&limit=5",
         "(absent)"},
        {{.method = KUBE_CREATE, .resource = &kube_events, .namespace = "ns", .body = body},
         "POST /apis/events.k8s.io/v1/namespaces/ns/events",
         "application/json"},
        {{.method = KUBE_MERGE_PATCH,
          .resource = &kube_addonplacementscores,
          .namespace = "c1",
          .name = "energy",
          .subresource = "status",
          .body = body},
         "PATCH "
         "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/c1/addonplacementscores/energy/status",
         "application/merge-patch+json"},
        {{.method = KUBE_UPDATE, .resource = &kube_leases, .namespace = "ns", .name = "l", .body = body},
         "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l",
         "application/json"},
        {{.method = KUBE_DELETE, .resource = &kube_managedclusters, .name = "a:b"},
         "DELETE /apis/cluster.open-cluster-management.io/v1/managedclusters/a:b",
         "(absent)"},
    };
    struct fake_kube *f = *state;
    struct got g = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_push(f->server, (struct fake_answer){.body = "{\"ok\":true}"});
        call(f, &cases[i].rq, &g);
        assert_string_equal(g.a.why, "");
        assert_int_equal(g.a.verdict, KUBE_OK);
        assert_true(json_is_true(kube_get(g.a.object, "ok", NULL)));
        assert_string_equal(fake_kube_asked(f, i), cases[i].asked);
        assert_string_equal(fake_request(f->server, i)->body,
                            cases[i].rq.body ? "{\"metadata\":{\"name\":\"a\"}}" : "");
        assert_header_is(f, i, "Content-Type", cases[i].content_type);
        assert_header_is(f, i, "Authorization", "Bearer first");
        assert_header_is(f, i, "Accept-Encoding", "gzip");
        assert_header_is(f, i, "Accept", "application/json");
        assert_header_is(f, i, "User-Agent", "dynamic-scoring/test");
    }
    done_with(&g);
}

static void rejects_names_that_are_no_path_segments(void **state)
{
    static const struct kube_request cases[] = {
        {.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = ""},
        {.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = ".."},
        {.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "../x", .name = "a"},
        {.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "ns", .name = "a%2f"},
        {.method = KUBE_GET, .resource = &kube_configmaps, .namespace = "", .name = "a"},
    };
    struct fake_kube *f = *state;
    struct got g = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        call(f, &cases[i], &g);
        assert_int_equal(g.a.verdict, KUBE_INVALID);
    }
    assert_int_equal(fake_requests(f->server), 0);
}

static void explains_errors(void **state)
{
    struct fake_kube *f = *state;
    struct got g = {0};

    fake_kube_status(f, 403, "Forbidden", "User u cannot get");
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_FORBIDDEN);
    assert_int_equal(g.a.http_status, 403);
    assert_string_equal(g.a.reason, "Forbidden");
    assert_string_equal(g.a.why, "hub: get configmaps ns/a: User u cannot get");
    assert_null(g.a.object);

    fake_push(f->server, (struct fake_answer){.status = 429,
                                              .headers = "Retry-After: 1\r\nContent-Type: text/plain\r\n",
                                              .body = "Too many requests, please try again later."});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_int_equal(g.a.retry_after_ms, 1000);
    assert_non_null(strstr(g.a.why, "HTTP 429 Too Many Requests: Too many requests, please"));

    fake_push(f->server, (struct fake_answer){.body = "<html>"});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_non_null(strstr(g.a.why,
                           "HTTP 200 with a body that is not JSON at line 1, column 1; Content-Type: "
                           "none, it begins with: <html>"));
    fake_push(f->server, (struct fake_answer){.body = "{\"kind\":\"Secret\",\"data\":{\"token\":\"c2VjcmV0"});
    call(f, &get_a, &g);
    assert_non_null(strstr(g.a.why, "not JSON at line 1"));
    assert_null(strstr(g.a.why, "c2VjcmV0"));

    /* Twice: curl itself tries again when a kept connection turns out to be closed. */
    fake_push(f->server, (struct fake_answer){.mode = FAKE_CLOSE});
    fake_push(f->server, (struct fake_answer){.mode = FAKE_CLOSE});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_int_equal(g.a.http_status, 0);

    fake_push(f->server, (struct fake_answer){.status = 302, .location = "http://127.0.0.1:1/login"});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_int_equal(g.a.http_status, 302);
}

static void limits_the_size_of_an_answer(void **state)
{
    struct fake_kube *f = *state;
    struct kube_request rq = get_a;
    struct got g = {0};

    fake_push(f->server, (struct fake_answer){.body = "x", .repeat = 17 << 20});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_TOO_LARGE);
    fake_push(f->server, (struct fake_answer){.body = " ", .repeat = 1 << 20, .mode = FAKE_GZIP});
    rq.max_answer = 1000;
    call(f, &rq, &g);
    assert_int_equal(g.a.verdict, KUBE_TOO_LARGE);
}

static void reads_a_compressed_answer(void **state)
{
    struct fake_kube *f = *state;
    struct got g = {0};

    fake_push(f->server,
              (struct fake_answer){.mode = FAKE_GZIP, .body = fake_kube_object(f, "ns", "a", "12")});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_OK);
    assert_string_equal(kube_version(g.a.object), "12");
    done_with(&g);
}

static void refuses_to_send_an_oversized_body(void **state)
{
    struct fake_kube *f = *state;
    char *big = calloc(1, 9 << 20);
    json_auto_t *body = NULL;
    struct kube_request rq = {.method = KUBE_CREATE, .resource = &kube_configmaps, .namespace = "ns"};
    struct got g = {0};

    memset(big, 'a', (9 << 20) - 1);
    body = json_pack("{s:s}", "a", big);
    rq.body = body;
    call(f, &rq, &g);
    assert_int_equal(g.a.verdict, KUBE_TOO_LARGE);
    assert_int_equal(fake_requests(f->server), 0);
    free(big);
}

/* 401: the token is read again, and the caller sees only the end of it. */
static void reads_the_token_again_after_a_401(void **state)
{
    struct fake_kube *f = *state;
    struct got g = {0};

    fake_push(f->server, (struct fake_answer){.body = "{}"});
    call(f, &get_a, &g);
    fake_kube_file(f, "token", "second");
    fake_kube_status(f, 401, "Unauthorized", "Unauthorized");
    fake_push(f->server, (struct fake_answer){.body = "{}"});
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_OK);
    assert_int_equal(fake_requests(f->server), 3);
    assert_header_is(f, 1, "Authorization", "Bearer first");
    assert_header_is(f, 2, "Authorization", "Bearer second");

    /* Not renewed: said at once. */
    fake_kube_status(f, 401, "Unauthorized", "Unauthorized");
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_UNAUTHORIZED);
    assert_int_equal(fake_requests(f->server), 4);

    /* Renewed, and no better: once more, not for ever. */
    fake_kube_file(f, "token", "third");
    fake_kube_status(f, 401, "Unauthorized", "Unauthorized");
    fake_kube_status(f, 401, "Unauthorized", "Unauthorized");
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_UNAUTHORIZED);
    assert_int_equal(fake_requests(f->server), 6);
    assert_null(strstr(g.a.why, "third"));
    done_with(&g);
}

static void reads_the_token_each_minute(void **state)
{
    struct fake_kube *f = *state;
    struct got g = {0};

    fake_default(f->server, (struct fake_answer){.body = "{}"});
    fake_kube_file(f, "token", "second");
    fake_kube_advance(f, 59000);
    call(f, &get_a, &g);
    assert_header_is(f, 0, "Authorization", "Bearer first");
    fake_kube_advance(f, 1000);
    call(f, &get_a, &g);
    assert_header_is(f, 1, "Authorization", "Bearer second");
    done_with(&g);
}

static void keeps_the_last_good_credentials(void **state)
{
    struct fake_kube *f = *state;
    const char *late = fake_kube_text(f, "%s/late", f->dir);
    struct kube *k = NULL, *usual = f->kube;
    struct got g = {0};

    fake_default(f->server, (struct fake_answer){.body = "{}"});
    /* Known before: the old ones go on. */
    assert_int_equal(unlink(fake_kube_text(f, "%s/token", f->dir)), 0);
    fake_kube_advance(f, 60000);
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_OK);
    assert_non_null(strstr(kube_credentials_error(f->kube), "tokenFile: cannot read file"));
    fake_kube_file(f, "token", "second");
    call(f, &get_a, &g);
    assert_null(kube_credentials_error(f->kube));
    assert_header_is(f, 1, "Authorization", "Bearer second");

    /* Never known: a verdict, until they come. */
    k = kube_new(f->loop, f->http, "late", late);
    assert_non_null(strstr(kube_credentials_error(k), "No such file"));
    assert_null(kube_default_namespace(k));
    f->kube = k;
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_UNAUTHORIZED);
    assert_non_null(strstr(g.a.why, "No such file"));
    assert_int_equal(symlink("kubeconfig", late), 0);
    call(f, &get_a, &g);
    assert_int_equal(g.a.verdict, KUBE_OK);
    assert_string_equal(kube_default_namespace(k), "ns");
    done_with(&g);
    (void)kube_free(k);
    f->kube = usual;
}

static void times_out(void **state)
{
    struct fake_kube *f = *state;
    struct kube_request rq = get_a;
    struct got g = {0};

    rq.timeout_ms = 80;
    fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG});
    call(f, &rq, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_non_null(strstr(g.a.why, "hub: get configmaps ns/a: timed out after "));
    assert_non_null(strstr(g.a.why, " s with 0 bytes received"));
}

static void waits_longer_for_a_large_body(void **state)
{
    static char body[64000];
    struct fake_kube *f = *state;
    struct kube_request rq = {
        .method = KUBE_MERGE_PATCH, .resource = &kube_configmaps, .namespace = "ns", .name = "a"};
    struct got g = {0};

    memset(body, ' ', sizeof(body));
    rq.body_text[0] = (struct str){body, sizeof(body)};
    rq.timeout_ms = 50;
    fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG});
    call(f, &rq, &g);
    assert_int_equal(g.a.verdict, KUBE_RETRY);
    assert_non_null(strstr(g.a.why, "timed out after 2."));
}

static void on_never(void *arg, struct kube_answer *a)
{
    (void)arg;
    (void)a;
    fail_msg("called after its end");
}

static void never_calls_back_after_a_cancel(void **state)
{
    struct fake_kube *f = *state;
    struct kube_call *c;

    fake_default(f->server, (struct fake_answer){.mode = FAKE_HANG});
    c = kube_start(f->kube, &get_a, on_never, NULL);
    assert_null(kube_cancel(c));
    c = kube_start(f->kube, &get_a, on_never, NULL);
    fake_kube_requests(f, 1);
    assert_null(kube_cancel(c));
    assert_null(kube_cancel(NULL));
    /* The rest ends with the client. */
    (void)kube_start(f->kube, &get_a, on_never, NULL);
    fake_kube_idle(f);
    f->kube = kube_free(f->kube);
    fake_kube_idle(f);
}

static void on_done_free(void *arg, struct kube_answer *a)
{
    struct fake_kube *f = arg;

    assert_int_equal(a->verdict, KUBE_OK);
    f->kube = kube_free(f->kube);
}

static void may_be_freed_by_its_callback(void **state)
{
    struct fake_kube *f = *state;

    fake_push(f->server, (struct fake_answer){.body = "{}"});
    (void)kube_start(f->kube, &get_a, on_done_free, f);
    for (unsigned i = 0; i < 2000 && f->kube; i++)
        assert_int_equal(loop_turn(f->loop, 5), 0);
    assert_null(f->kube);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sends_each_kind_of_request),
        CASE(rejects_names_that_are_no_path_segments),
        CASE(explains_errors),
        CASE(limits_the_size_of_an_answer),
        CASE(reads_a_compressed_answer),
        CASE(refuses_to_send_an_oversized_body),
        CASE(reads_the_token_again_after_a_401),
        CASE(reads_the_token_each_minute),
        CASE(keeps_the_last_good_credentials),
        CASE(times_out),
        CASE(waits_longer_for_a_large_body),
        CASE(never_calls_back_after_a_cancel),
        CASE(may_be_freed_by_its_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
