/* Which tokens are allowed, what is cached, and what many requests cost the API server. */
#include "controller/kube/client.h"
#include "controller/kube/review.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TTL_MS = 60 * 1000, REFUSED_MS = 10 * 1000, TIMEOUT_MS = 60 * 1000, UNDER_WAY = 16 };

#define USER   "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"system:serviceaccount:m:p\"}}}"
#define NOBODY "{\"status\":{\"authenticated\":false,\"error\":\"[invalid bearer token, expired]\"}}"
#define YES    "{\"status\":{\"allowed\":true}}"
#define NO     "{\"status\":{\"allowed\":false,\"reason\":\"\"}}"

struct world {
    struct fake_kube *f;
    struct kube_reviews *reviews;
};

/* A request that waits, and what it was told; status 0: allowed. */
struct asker {
    struct kube_review review;
    unsigned told, status, retry_after;
    char text[512];
    const char *challenge;
};

static const struct kube_right metrics = {"get", "/metrics"}, status = {"get", "/status"};

static void make_reviews(struct world *w, int64_t ttl_ms, int64_t timeout_ms)
{
    const struct kube_review_options o = {
        .kube = w->f->kube, .cache_ttl_ms = ttl_ms, .timeout_ms = timeout_ms};

    w->reviews = kube_reviews_free(w->reviews);
    w->reviews = kube_reviews_new(&o);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    make_reviews(w, TTL_MS, TIMEOUT_MS);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->reviews = kube_reviews_free(w->reviews);
    w->f = fake_kube_free(w->f);
    free(w);
    return 0;
}

static void on_done(struct kube_review *r, const struct httpd_refusal *refusal)
{
    struct asker *a = CONTAINER_OF(r, struct asker, review);

    a->told++;
    if (!refusal)
        return;
    a->status = refusal->status;
    a->retry_after = refusal->retry_after;
    a->challenge = refusal->challenge;
    (void)snprintf(a->text, sizeof(a->text), "%s", refusal->text);
}

static void start(struct world *w, struct asker *a, const char *token, const struct kube_right *right)
{
    const struct kube_credential c = {.token = str_of(token)};

    *a = (struct asker){.review.done = on_done};
    kube_review_start(w->reviews, &a->review, &c, right);
}

/* Asks and waits for the answer: the status. */
static unsigned ask(struct world *w, const char *token, const struct kube_right *right)
{
    struct asker a;

    start(w, &a, token, right);
    fake_kube_turn(w->f, &a.told, 1);
    assert_int_equal(a.told, 1);
    return a.status;
}

static void push(struct world *w, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.status = 201, .body = body});
}

static void push_both(struct world *w, const char *token, const char *access)
{
    push(w, token);
    push(w, access);
}

static size_t asked(struct world *w)
{
    return fake_requests(w->f->server);
}

static void asks_who_the_user_is_and_what_it_may(void **state)
{
    struct world *w = *state;

    push_both(w,
              "{\"spec\":{\"token\":\"a\\\"b\"},\"status\":{\"authenticated\":true,\"user\":{\"username\":"
              "\"u\",\"uid\":\"7\",\"groups\":[\"g\",\"h\"],\"extra\":{\"k\":[\"v\"]}}}}",
              YES);
    assert_int_equal(ask(w, "a\"b", &metrics), 0);
    assert_string_equal(fake_kube_asked(w->f, 0), "POST /apis/authentication.k8s.io/v1/tokenreviews");
    assert_string_equal(fake_request(w->f->server, 0)->body,
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{"
                        "\"token\":\"a\\\"b\"}}");
    assert_string_equal(fake_kube_asked(w->f, 1), "POST /apis/authorization.k8s.io/v1/subjectaccessreviews");
    assert_string_equal(fake_request(w->f->server, 1)->body,
                        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
                        "\"spec\":{\"user\":\"u\",\"groups\":[\"g\",\"h\"],\"uid\":\"7\",\"extra\":{\"k\":["
                        "\"v\"]},\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}}}");
}

static void answers_as_the_api_server_does(void **state)
{
    static const struct {
        struct fake_answer token, access;
        unsigned status, requests;
        const char *text;
        bool cached;
    } cases[] = {
        {{.body = USER}, {.body = YES}, 0, 2, "", true},
        {{.body = USER},
         {.body = NO},
         403,
         2,
         "403: user \"system:serviceaccount:m:p\" cannot get path \"/metrics\": ",
         true},
        {{.body = USER}, {.body = "{\"status\":{\"denied\":true}}"}, 403, 2, "403: user ", true},
        {{.body = USER}, {.body = "{}"}, 403, 2, "403: user ", true},
        {{.body = NOBODY}, {0}, 401, 1, "401: the API server does not accept the token", true},
        {{.body = "{\"status\":{\"user\":{\"username\":\"u\"}}}"}, {0}, 401, 1, "401: ", true},
        {{.body = "{\"status\":{\"authenticated\":\"true\",\"user\":{\"username\":\"u\"}}}"},
         {0},
         401,
         1,
         "401: ",
         true},
        {{.body = "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}}}"},
         {0},
         401,
         1,
         "",
         true},
        {{.body = "{\"status\":{\"authenticated\":true}}"}, {0}, 401, 1, "401: ", true},
        {{.body = "[]"}, {0}, 401, 1, "401: ", true},
        {{.body = "no JSON"}, {0}, 503, 1, "the API server does not answer", false},
        {{.status = 500}, {0}, 503, 1, "the API server does not answer", false},
        {{.status = 429, .headers = "Retry-After: 1\r\n"}, {0}, 503, 1, "does not answer", false},
        {{.status = 502}, {0}, 503, 1, "the API server does not answer", false},
        {{.status = 401}, {0}, 503, 1, "the API server refuses reviews", false},
        {{.status = 403}, {0}, 503, 1, "the API server refuses reviews", false},
        {{.status = 404}, {0}, 503, 1, "the API server refuses reviews", false},
        {{.body = USER}, {.status = 403}, 503, 2, "the API server refuses reviews", false},
        {{.body = USER}, {.status = 502}, 503, 2, "the API server does not answer", false},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct asker a;
        size_t before = asked(w);

        make_reviews(w, TTL_MS, TIMEOUT_MS);
        fake_push(w->f->server, cases[i].token);
        if (cases[i].requests == 2)
            fake_push(w->f->server, cases[i].access);
        start(w, &a, "token", &metrics);
        assert_int_equal(a.told, 0);
        fake_kube_turn(w->f, &a.told, 1);
        assert_int_equal(a.status, cases[i].status);
        assert_non_null(strstr(a.text, cases[i].text));
        assert_true((a.challenge != NULL) == (a.status == 401));
        assert_true((a.retry_after > 0) == (a.status == 503));
        assert_int_equal(asked(w), before + cases[i].requests);
        if (cases[i].cached) {
            assert_int_equal(ask(w, "token", &metrics), cases[i].status);
            assert_int_equal(asked(w), before + cases[i].requests);
        } else {
            push_both(w, USER, YES);
            fake_kube_settle(w->f);
            assert_int_equal(ask(w, "token", &metrics), 0);
            assert_int_equal(asked(w), before + cases[i].requests + 2);
        }
    }
}

static void caches_answers_for_a_while(void **state)
{
    struct world *w = *state;

    push_both(w, USER, YES);
    push_both(w, USER, NO);
    push(w, NOBODY);
    assert_int_equal(ask(w, "good", &metrics), 0);
    assert_int_equal(ask(w, "good", &status), 403);
    assert_int_equal(ask(w, "bad", &metrics), 401);
    assert_int_equal(asked(w), 5);

    fake_kube_advance(w->f, REFUSED_MS - 1);
    assert_int_equal(ask(w, "good", &status), 403);
    assert_int_equal(ask(w, "bad", &metrics), 401);
    assert_int_equal(asked(w), 5);
    fake_kube_advance(w->f, 1);
    push_both(w, USER, YES);
    push(w, NOBODY);
    assert_int_equal(ask(w, "good", &status), 0);
    assert_int_equal(ask(w, "bad", &metrics), 401);
    assert_int_equal(asked(w), 8);

    fake_kube_advance(w->f, TTL_MS - REFUSED_MS - 1);
    assert_int_equal(ask(w, "good", &metrics), 0);
    assert_int_equal(asked(w), 8);
    fake_kube_advance(w->f, 1);
    push_both(w, USER, NO);
    assert_int_equal(ask(w, "good", &metrics), 403);
    assert_int_equal(asked(w), 10);
}

static void caches_nothing_with_a_ttl_of_zero(void **state)
{
    struct world *w = *state;

    make_reviews(w, 0, TIMEOUT_MS);
    for (size_t i = 0; i < 3; i++) {
        push_both(w, USER, i == 1 ? NO : YES);
        assert_int_equal(ask(w, "good", &metrics), i == 1 ? 403 : 0);
    }
    assert_int_equal(asked(w), 6);
}

static void reviews_a_token_once_for_many_requests(void **state)
{
    struct world *w = *state;
    struct asker many[20];

    push_both(w, USER, YES);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        start(w, &many[i], "good", &metrics);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        fake_kube_turn(w->f, &many[i].told, 1);
        assert_int_equal(many[i].told, 1);
        assert_int_equal(many[i].status, 0);
    }
    assert_int_equal(asked(w), 2);
}

static void answers_from_the_cache_while_the_api_server_is_away(void **state)
{
    struct world *w = *state;
    struct asker a;
    size_t before;

    push_both(w, USER, YES);
    assert_int_equal(ask(w, "good", &metrics), 0);
    fake_kube_health(w->f, "/readyz", (struct fake_answer){.mode = FAKE_CLOSE});
    fake_kube_health(w->f, "/version", (struct fake_answer){.mode = FAKE_CLOSE});
    assert_int_equal(ask(w, "new", &metrics), 503);
    for (size_t i = 0; i < 100 && !kube_is_away(w->f->kube); i++) {
        fake_kube_advance(w->f, 100);
        fake_kube_settle(w->f);
    }
    assert_true(kube_is_away(w->f->kube));
    before = asked(w);
    assert_int_equal(ask(w, "good", &metrics), 0);
    start(w, &a, "new", &metrics);
    assert_int_equal(a.told, 1);
    assert_int_equal(a.status, 503);
    fake_kube_advance(w->f, TTL_MS);
    assert_int_equal(ask(w, "good", &metrics), 503);
    assert_int_equal(asked(w), before);
}

static void limits_reviews_under_way(void **state)
{
    struct world *w = *state;
    struct asker hanging[UNDER_WAY];
    char token[32];

    push_both(w, USER, YES);
    assert_int_equal(ask(w, "good", &metrics), 0);
    fake_kube_advance(w->f, TTL_MS);
    for (size_t i = 0; i < UNDER_WAY; i++)
        fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    for (size_t i = 0; i < UNDER_WAY; i++) {
        (void)snprintf(token, sizeof(token), "unknown-%zu", i);
        start(w, &hanging[i], token, &metrics);
    }
    fake_kube_requests(w->f, 2 + UNDER_WAY);
    assert_int_equal(ask(w, "one-more", &metrics), 503);
    assert_int_equal(asked(w), 2 + UNDER_WAY);
    push_both(w, USER, YES);
    assert_int_equal(ask(w, "good", &metrics), 0); /* as it was allowed before */
    for (size_t i = 0; i < UNDER_WAY; i++)
        assert_int_equal(hanging[i].told, 0);
}

/* So that those of good tokens find a place among the requests that wait. */
static void limits_requests_that_wait(void **state)
{
    enum { WAITING = 128 };
    struct world *w = *state;
    struct asker waiting[WAITING + 1], good[WAITING + 1];

    push_both(w, USER, YES);
    assert_int_equal(ask(w, "good", &metrics), 0);
    fake_kube_advance(w->f, TTL_MS);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    for (size_t i = 0; i <= WAITING; i++)
        start(w, &waiting[i], "unknown", &metrics);
    assert_int_equal(waiting[WAITING - 1].told, 0);
    assert_int_equal(waiting[WAITING].status, 503);
    fake_kube_requests(w->f, 3);
    push_both(w, USER, YES);
    for (size_t i = 0; i <= WAITING; i++)
        start(w, &good[i], "good", &metrics);
    for (size_t i = 0; i <= WAITING; i++) {
        fake_kube_turn(w->f, &good[i].told, 1);
        assert_int_equal(good[i].status, 0);
    }
    assert_int_equal(waiting[0].told, 0);
}

static void keeps_good_tokens_among_many_bad_ones(void **state)
{
    struct world *w = *state;
    char token[32];
    size_t before;

    push_both(w, USER, YES);
    assert_int_equal(ask(w, "good", &metrics), 0);
    fake_default(w->f->server, (struct fake_answer){.status = 201, .body = NOBODY});
    for (size_t i = 0; i < 600; i++) {
        (void)snprintf(token, sizeof(token), "bad-%zu", i);
        assert_int_equal(ask(w, token, &metrics), 401);
    }
    before = asked(w);
    assert_int_equal(ask(w, "good", &metrics), 0);
    assert_int_equal(ask(w, "bad-599", &metrics), 401);
    assert_int_equal(asked(w), before);
    assert_int_equal(ask(w, "bad-0", &metrics), 401); /* was dropped */
    assert_int_equal(asked(w), before + 1);
}

static void gives_up_after_the_timeout(void **state)
{
    struct world *w = *state;

    make_reviews(w, TTL_MS, 200);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    assert_int_equal(ask(w, "good", &metrics), 503);
    push(w, USER);
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    assert_int_equal(ask(w, "good", &metrics), 503);
}

static void calls_nobody_after_it_was_freed(void **state)
{
    struct world *w = *state;
    struct asker a;

    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    start(w, &a, "good", &metrics);
    fake_kube_requests(w->f, 1);
    w->reviews = kube_reviews_free(w->reviews);
    fake_kube_idle(w->f);
    assert_int_equal(a.told, 0);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(asks_who_the_user_is_and_what_it_may),
        CASE(answers_as_the_api_server_does),
        CASE(caches_answers_for_a_while),
        CASE(caches_nothing_with_a_ttl_of_zero),
        CASE(reviews_a_token_once_for_many_requests),
        CASE(answers_from_the_cache_while_the_api_server_is_away),
        CASE(limits_reviews_under_way),
        CASE(limits_requests_that_wait),
        CASE(keeps_good_tokens_among_many_bad_ones),
        CASE(gives_up_after_the_timeout),
        CASE(calls_nobody_after_it_was_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
