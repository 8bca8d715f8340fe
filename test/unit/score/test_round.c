/* What a round asks, sends and gives, and that it may end at any time. The servers, from fake_new(), have
 * threads of their own. */
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/score/round.h"
#include "exporter/score/round_error.h"
#include "exporter/score/summary.h"
#include "test/unit/score/rounds.h"

static void turns_series_into_a_batch(void **state)
{
    struct env *e = *state;
    struct batch *batch = NULL;
    struct round_result r = run(e, TIMEOUT_MS, &batch);
    const struct fake_request *rq = fake_request(e->prometheus, 0);

    assert_int_equal(r.error, ROUND_OK);
    assert_string_equal(rq->method, "GET");
    assert_string_equal(rq->target,
                        "/api/v1/query_range?query=up&start=1795238581.250&end=1795242181.250&step=60");
    assert_posted(e, 0, "{\"data\":[" SERIES_A "]}"); /* byte for byte as it came */
    assert_int_equal(series_count(batch->set), 2);
    assert_true(batch->values[0] == 1.5 && batch->values[1] == 2);
    assert_int_equal(batch->at.ms, 1795242181250);
    assert_string_equal(batch->score_name, "s1");
    assert_true(r.fetched && r.performed && r.source_series == 1 && r.source_warnings == 0);
    assert_int_equal(r.answer.results, 2);
    assert_int_equal(r.received[STAGE_SOURCE], strlen(MATRIX(SERIES_A)));
    assert_int_equal(r.received[STAGE_SCORING], strlen(SCORES));
    assert_int_equal(r.sent[STAGE_SCORING], strlen("{\"data\":[" SERIES_A "]}"));
    assert_true(r.fetch_s > 0 && r.perform_s > 0);
    (void)batch_unref(batch);
}

static void sends_queries_in_order_and_joins_the_results(void **state)
{
    struct env *e = *state;
    struct round_result r;

    e->from.query = (char *)(uintptr_t) "up{a=\";\"} ; ; rate(x[5m]);none;";
    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX(SERIES_A)});
    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX(SERIES_B "," SERIES_A)});
    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX("")});
    r = run(e, TIMEOUT_MS, NULL);
    assert_int_equal(r.error, ROUND_OK);
    assert_int_equal(r.source_series, 3);
    assert_int_equal(fake_requests(e->prometheus), 3);
    assert_non_null(strstr(fake_request(e->prometheus, 0)->target, "?query=up%7Ba%3D%22%3B%22%7D&start="));
    assert_non_null(strstr(fake_request(e->prometheus, 1)->target, "?query=rate%28x%5B5m%5D%29&start="));
    assert_non_null(strstr(fake_request(e->prometheus, 2)->target, "?query=none&start="));
    assert_posted(e, 0, "{\"data\":[" SERIES_A "," SERIES_B "," SERIES_A "]}");
}

static void leaves_no_commas_for_empty_parts(void **state)
{
    static const char *const answers[][3] = {
        {MATRIX(""), MATRIX(SERIES_A), MATRIX("")},
        {MATRIX(SERIES_A), MATRIX(""), MATRIX("")},
        {MATRIX(""), MATRIX(""), MATRIX(SERIES_A)},
        {MATRIX(""), MATRIX(""), "{\"data\":{\"resultType\":\"vector\",\"result\":[]}}"},
    };
    struct env *e = *state;

    e->from.query = (char *)(uintptr_t) "a;b;c";
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        for (size_t k = 0; k < 3; k++)
            fake_push(e->prometheus, (struct fake_answer){.body = answers[i][k]});
        struct round_result r = run(e, TIMEOUT_MS, NULL);
        assert_int_equal(r.error, ROUND_OK);
        assert_int_equal(r.source_series, i < 3);
        assert_posted(e, i, i < 3 ? "{\"data\":[" SERIES_A "]}" : "{\"data\":[]}");
    }
}

/* No series is no error: the scoring API is asked all the same, and says what it makes of it. */
static void accepts_an_empty_result(void **state)
{
    struct env *e = *state;
    struct round_result r;

    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX("")});
    fake_push(e->scorer, (struct fake_answer){.body = "{\"results\":[]}"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_int_equal(r.error, ROUND_OK);
    assert_true(r.fetched && r.source_series == 0);
    assert_posted(e, 0, "{\"data\":[]}");
}

static void sends_a_long_query_as_a_form(void **state)
{
    struct env *e = *state;
    const struct fake_request *rq;
    char type[64] = "";

    memset(e->long_query, 'q', sizeof(e->long_query) - 1);
    (void)memcpy(e->long_query, "a b&c=d+%\xc3\xa9", 11);
    e->from.query = e->long_query;
    e->from.endpoint = (char *)(uintptr_t)fake_url(e->prometheus, "/q?tenant=a");
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    rq = fake_request(e->prometheus, 0);
    assert_string_equal(rq->method, "POST");
    assert_string_equal(rq->target, "/q?tenant=a");
    assert_true(fake_header(rq, "Content-Type", type, sizeof(type)));
    assert_string_equal(type, "application/x-www-form-urlencoded");
    assert_memory_equal(rq->body, "query=a%20b%26c%3Dd%2B%25%C3%A9qqq", 34);
    assert_non_null(strstr(rq->body, "qqq&start=1795238581.250&end=1795242181.250&step=60"));
    e->from.query = (char *)(uintptr_t) "up";
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    assert_memory_equal(fake_request(e->prometheus, 1)->target, "/q?tenant=a&query=up&start=", 26);
}

static void assert_token(struct fake_server *s, size_t i, const char *want)
{
    char value[128] = "";

    assert_int_equal(fake_header(fake_request(s, i), "Authorization", value, sizeof(value)), want != NULL);
    assert_string_equal(value, cstr(want));
}

static void reads_tokens_for_each_round(void **state)
{
    struct env *e = *state;

    e->from.auth = (struct secret_ref){(char *)(uintptr_t) "prom", (char *)(uintptr_t) "token"};
    e->summary.scoring_auth = (struct secret_ref){(char *)(uintptr_t) "scorer", (char *)(uintptr_t) "token"};
    write_secret(e, "prom", "p-one\n");
    write_secret(e, "scorer", "s-one");
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    assert_token(e->prometheus, 0, "Bearer p-one");
    assert_token(e->scorer, 0, "Bearer s-one");
    write_secret(e, "prom", "p-two");
    write_secret(e, "scorer", "s-two");
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    assert_token(e->prometheus, 1, "Bearer p-two");
    assert_token(e->scorer, 1, "Bearer s-two");
    e->from.auth = e->summary.scoring_auth = (struct secret_ref){0};
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    assert_token(e->prometheus, 2, NULL); /* a reference that was removed sends nothing any more */
    assert_token(e->scorer, 2, NULL);
}

static void passes_warnings_on(void **state)
{
    struct env *e = *state;
    struct round_result r;

    e->from.query = (char *)(uintptr_t) "a;b;c";
    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX("")});
    fake_push(
        e->prometheus,
        (struct fake_answer){.body = "{\"status\":\"success\",\"warnings\":[\"first\",\"second\"],\"data\":{"
                                     "\"resultType\":\"matrix\",\"result\":[]}}"});
    fake_push(e->prometheus,
              (struct fake_answer){.body = "{\"data\":{\"result\":[]},\"warnings\":[\"third\"]}"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_int_equal(r.error, ROUND_OK);
    assert_int_equal(r.source_warnings, 3);
    assert_string_equal(r.source_warning, "first");
}

/* Ways in which an answer may come. */
static void accepts_unusual_transports(void **state)
{
    struct env *e = *state;
    const struct fake_answer answers[] = {
        {.mode = FAKE_CHUNKED, .body = SCORES}, {.mode = FAKE_GZIP, .body = SCORES},
        {.body = SCORES, .close = true},        {.status = 307, .location = "/elsewhere"},
        {.status = 201, .body = SCORES},
    };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct batch *batch = NULL;
        fake_push(e->scorer, answers[i]);
        assert_int_equal(run(e, TIMEOUT_MS, &batch).error, ROUND_OK);
        assert_int_equal(series_count(batch->set), 2);
        (void)batch_unref(batch);
    }
    assert_string_equal(fake_request(e->scorer, 4)->target, "/elsewhere"); /* a POST stays one */
    assert_string_equal(fake_request(e->scorer, 4)->body, "{\"data\":[" SERIES_A "]}");
}

static void posts_no_series_without_a_source(void **state)
{
    struct env *e = *state;
    struct round_result r;

    e->summary.n_sources = 0;
    r = run(e, TIMEOUT_MS, NULL);
    assert_int_equal(r.error, ROUND_OK);
    assert_posted(e, 0, "{\"data\":[]}");
    assert_int_equal(fake_requests(e->prometheus), 0);
    assert_int_equal(r.source_series, 0);
}

static void wait_for_request(struct env *e, struct fake_server *s)
{
    int64_t end = test_clock.mono(&test_clock).ms + PATIENCE_MS;

    while (fake_requests(s) == 0 && test_clock.mono(&test_clock).ms < end)
        assert_int_equal(loop_turn(e->loop, 5), 0);
    assert_int_equal(fake_requests(s), 1);
}

/* A round that is freed says nothing more, wherever it stood. */
static void can_be_freed_at_every_stage(void **state)
{
    struct env *e = *state;
    struct got g = {0};
    struct round *r = NULL;

    assert_null(round_free(NULL));
    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0); /* before anything happened */
    r = round_free(r);
    e->summary.n_sources = 0;
    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0);
    r = round_free(r);
    e->summary.n_sources = 1;
    fake_default(e->prometheus, (struct fake_answer){.mode = FAKE_HANG});
    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0); /* while the source is asked */
    wait_for_request(e, e->prometheus);
    r = round_free(r);
    fake_default(e->prometheus, (struct fake_answer){.body = MATRIX(SERIES_A)});
    fake_default(e->scorer, (struct fake_answer){.mode = FAKE_HANG});
    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0); /* while the scoring API is asked */
    wait_for_request(e, e->scorer);
    r = round_free(r);
    for (int i = 0; i < 20; i++)
        assert_int_equal(loop_turn(e->loop, 1), 0);
    assert_int_equal(g.times, 0);
}

/* From inside the callback, at each place from which it may be called. */
static void can_be_freed_by_its_callback(void **state)
{
    static const char *const secret = "nobody";
    struct env *e = *state;

    for (int way = 0; way < 6; way++) {
        struct round *r = NULL;
        struct got g = {.free = &r};
        e->from.auth = e->summary.scoring_auth = (struct secret_ref){0};
        if (way == 1)
            fake_push(e->prometheus, (struct fake_answer){.status = 500});
        else if (way == 2)
            e->from.auth = (struct secret_ref){(char *)(uintptr_t)secret, (char *)(uintptr_t)secret};
        else if (way == 3)
            e->summary.scoring_auth =
                (struct secret_ref){(char *)(uintptr_t)secret, (char *)(uintptr_t)secret};
        else if (way == 4)
            fake_push(e->scorer, (struct fake_answer){.status = 500});
        else if (way == 5)
            fake_push(e->scorer, (struct fake_answer){.body = "{}"});
        assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0);
        turn_until_done(e, &g);
        assert_int_equal(g.result.error == ROUND_OK, way == 0);
        assert_null(r);
        (void)batch_unref(g.batch);
    }
}

static void judges_answers(void **state)
{
    static const struct {
        long status;
        enum http_error error;
        const char *word;
        bool may_pass;
    } cases[] = {
        {199, HTTP_OK, "http_other", false},  {200, HTTP_OK, "ok", false},
        {299, HTTP_OK, "ok", false},          {300, HTTP_OK, "http_other", false},
        {399, HTTP_OK, "http_other", false},  {400, HTTP_OK, "http_4xx", false},
        {408, HTTP_OK, "http_4xx", false},    {422, HTTP_OK, "http_4xx", false},
        {429, HTTP_OK, "http_5xx", true},     {499, HTTP_OK, "http_4xx", false},
        {500, HTTP_OK, "http_5xx", true},     {599, HTTP_OK, "http_5xx", true},
        {600, HTTP_OK, "http_other", false},  {0, HTTP_URL, "url", false},
        {0, HTTP_DNS, "dns", true},           {0, HTTP_CONNECT, "connect", true},
        {0, HTTP_FORBIDDEN, "connect", true}, {0, HTTP_TLS, "tls", true},
        {0, HTTP_TIMEOUT, "timeout", true},   {0, HTTP_TOO_LARGE, "too_large", false},
        {0, HTTP_BROKEN, "broken", true},     {0, HTTP_REDIRECT, "http_other", false},
        {0, HTTP_MEMORY, "memory", true},     {0, HTTP_AUTH, "auth", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct http_response a = {.status = cases[i].status, .error = cases[i].error};
        enum round_error e = round_error_of_response(&a);

        assert_string_equal(round_error_word(e), cases[i].word);
        assert_int_equal(round_error_may_pass(e), cases[i].may_pass);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(turns_series_into_a_batch),
        TEST(sends_queries_in_order_and_joins_the_results),
        TEST(leaves_no_commas_for_empty_parts),
        TEST(accepts_an_empty_result),
        TEST(sends_a_long_query_as_a_form),
        TEST(reads_tokens_for_each_round),
        TEST(passes_warnings_on),
        TEST(accepts_unusual_transports),
        TEST(posts_no_series_without_a_source),
        TEST(can_be_freed_at_every_stage),
        TEST(can_be_freed_by_its_callback),
        cmocka_unit_test(judges_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
