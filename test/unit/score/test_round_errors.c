/* How rounds fail: where, as which class, and with whose words.
 * The servers, from fake_new(), have threads of their own. */
#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "test/unit/score/rounds.h"

static void fails_without_its_secret(void **state)
{
    struct env *e = *state;
    struct round_result r;

    e->summary.source.auth = (struct secret_ref){(char *)(uintptr_t) "prom", (char *)(uintptr_t) "token"};
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_SECRET, "secret \"prom\", key \"token\": not found");
    assert_int_equal(fake_requests(e->prometheus), 0);
    assert_false(r.fetched || r.performed);
    write_secret(e, "prom", "t");
    e->summary.scoring_auth = (struct secret_ref){(char *)(uintptr_t) "scorer", (char *)(uintptr_t) "token"};
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_SECRET, "secret \"scorer\", key \"token\": not found");
    assert_true(r.fetched && !r.performed);
    assert_int_equal(fake_requests(e->scorer), 0);
    write_secret(e, "scorer", "sesame\nX-Evil: 1");
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_SECRET, "not a token");
    assert_null(strstr(r.reason, "sesame"));
    write_secret(e, "scorer", "t"); /* and heals by itself */
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
}

static void keeps_the_words_of_source_errors(void **state)
{
    static const struct {
        struct fake_answer answer;
        enum round_error error;
        const char *reason;
        int64_t retry_after_ms;
    } cases[] = {
        {{.status = 400,
          .body = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter "
                  "\\\"query\\\": 1:4: "
                  "parse error\"}"},
         ROUND_QUERY,
         "bad_data: invalid parameter \"query\": 1:4: parse error",
         -1},
        {{.status = 422, .body = "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many\"}"},
         ROUND_QUERY,
         "execution: too many",
         -1},
        {{.status = 503,
          .headers = "Retry-After: 7\r\n",
          .body = "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}"},
         ROUND_HTTP_5XX,
         "timeout: query timed out",
         7000},
        {{.status = 200, .body = "{\"status\":\"error\",\"errorType\":\"internal\",\"error\":\"e\"}"},
         ROUND_QUERY,
         "internal: e",
         -1},
        {{.status = 502, .body = "<h1>Bad\nGateway</h1>"},
         ROUND_HTTP_5XX,
         "HTTP 502 Bad Gateway: <h1>Bad Gateway</h1>",
         -1},
        {{.status = 401, .body = ""}, ROUND_HTTP_4XX, "HTTP 401 Unauthorized", -1},
        {{.status = 200, .body = "<html>"}, ROUND_JSON, "response is not JSON", -1},
        {{.status = 200, .body = "{}"}, ROUND_SHAPE, "missing list data.result", -1},
        {{.status = 200, .body = ""}, ROUND_JSON, "response is not JSON", -1},
        {{.mode = FAKE_CLOSE}, ROUND_BROKEN, "", -1},
        {{.body = MATRIX(SERIES_A), .close_after = 120}, ROUND_BROKEN, "", -1},
        {{.body = "x", .repeat = 2u << 20}, ROUND_TOO_LARGE, "", -1},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        /* A broken connection that was used before is tried once more. */
        fake_push(e->prometheus, cases[i].answer);
        if (cases[i].answer.mode == FAKE_CLOSE)
            fake_push(e->prometheus, cases[i].answer);
        struct round_result r = run(e, TIMEOUT_MS, NULL);
        assert_failed(&r, STAGE_SOURCE, cases[i].error, cases[i].reason);
        assert_int_equal(r.retry_after_ms, cases[i].retry_after_ms);
        assert_false(r.fetched || r.performed);
    }
    assert_int_equal(fake_requests(e->scorer), 0);
}

static void fails_if_a_later_query_fails(void **state)
{
    struct env *e = *state;
    struct round_result r;

    e->summary.source.query = (char *)(uintptr_t) "a;b;c";
    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX(SERIES_A)});
    fake_push(e->prometheus, (struct fake_answer){.status = 500, .body = "no"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_HTTP_5XX, "HTTP 500 Internal Server Error: no");
    assert_int_equal(fake_requests(e->prometheus), 2);
    assert_int_equal(fake_requests(e->scorer), 0);
}

static void classifies_scoring_errors(void **state)
{
    static const struct {
        struct fake_answer answer;
        enum round_error error;
        const char *reason;
        int64_t retry_after_ms;
    } cases[] = {
        {{.status = 500, .body = "{\"detail\":\"model not loaded\"}"},
         ROUND_HTTP_5XX,
         "HTTP 500 Internal Server Error: {\"detail\":\"model not loaded\"}",
         -1},
        {{.status = 500, .body = SCORES}, ROUND_HTTP_5XX, "HTTP 500", -1}, /* scores in a failure are none */
        {{.status = 429, .headers = "Retry-After: 3\r\n", .body = "slow down"},
         ROUND_HTTP_5XX,
         "HTTP 429 Too Many Requests: slow down",
         3000},
        {{.status = 404, .body = "no such path"}, ROUND_HTTP_4XX, "HTTP 404 Not Found: no such path", -1},
        {{.status = 204, .body = ""}, ROUND_JSON, "response is not JSON", -1},
        {{.body = "{\"results\":[{\"score\":null}]}"},
         ROUND_SHAPE,
         "results[0].score: expected a number, got null",
         -1},
        {{.body = "{\"results\":"}, ROUND_JSON, "response is not JSON", -1},
        {{.body = SCORES, .close_after = 100}, ROUND_BROKEN, "", -1},
        {{.body = " ", .repeat = 2u << 20}, ROUND_TOO_LARGE, "", -1},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_push(e->scorer, cases[i].answer);
        struct round_result r = run(e, TIMEOUT_MS, NULL);
        assert_failed(&r, STAGE_SCORING, cases[i].error, cases[i].reason);
        assert_int_equal(r.retry_after_ms, cases[i].retry_after_ms);
        assert_true(r.fetched && r.performed && r.source_series == 1);
    }
}

static void ends_at_the_deadline(void **state)
{
    struct env *e = *state;
    struct round_result r;

    fake_push(e->prometheus, (struct fake_answer){.mode = FAKE_HANG});
    r = run(e, 60, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_TIMEOUT, "");
    fake_push(e->scorer, (struct fake_answer){.mode = FAKE_HANG});
    r = run(e, 2000, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_TIMEOUT, "");
    fake_push(e->scorer, (struct fake_answer){.mode = FAKE_HANG_LATE, .body = SCORES});
    r = run(e, 2000, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_TIMEOUT, "");
    r = run(e, 0, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_TIMEOUT, "timed out before all queries were sent");
    e->summary.source.type = SOURCE_NONE;
    r = run(e, 0, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_TIMEOUT, "the source took all of the round's time");
}

static void rejects_invalid_urls_and_queries(void **state)
{
    struct env *e = *state;
    struct round_result r;
    char *good = e->summary.source.endpoint;
    CLEANUP(cleanup_free) char *large = calloc(1, 1u << 21);
    BUF_AUTO(many, 1000);

    e->summary.source.endpoint = (char *)(uintptr_t) "ftp://host/";
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_URL, "sourceEndpoint is not a valid URL");
    e->summary.source.endpoint = good;
    e->summary.scoring_endpoint = (char *)(uintptr_t) "/scoring";
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_URL, "scoringEndpoint is not a valid URL");
    memset(large, 'q', 1u << 20);
    e->summary.source.query = large;
    e->summary.scoring_endpoint = (char *)(uintptr_t)fake_url(e->scorer, "/scoring");
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK); /* as long as may be */
    large[1u << 20] = 'q';
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_QUERY, "query longer than");
    for (int i = 0; i < 65; i++)
        assert_int_equal(buf_puts(&many, "up;"), 0);
    assert_int_equal(buf_putc(&many, '\0'), 0);
    e->summary.source.query = many.p;
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_QUERY, "more than 64 queries");
    e->summary.source.query = (char *)(uintptr_t) " ; ;";
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK); /* nothing to ask */
}

static void leaves_the_series_set_alone_on_failure(void **state)
{
    struct env *e = *state;
    struct batch *first = NULL, *second = NULL;

    assert_int_equal(run(e, TIMEOUT_MS, &first).error, ROUND_OK);
    fake_push(e->scorer,
              (struct fake_answer){.body = "{\"results\":[{\"metric\":{\"pod\":\"z\"},\"score\":1},"});
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_JSON);
    assert_int_equal(run(e, TIMEOUT_MS, &second).error, ROUND_OK);
    assert_ptr_equal(first->set, second->set);
    (void)batch_unref(first);
    (void)batch_unref(second);
}

static void rejects_too_many_series(void **state)
{
    struct env *e = *state;
    struct round_result r;

    batch_builder_set_max(e->builder, 1);
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_SERIES, "too many series");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fails_without_its_secret),
        TEST(keeps_the_words_of_source_errors),
        TEST(fails_if_a_later_query_fails),
        TEST(classifies_scoring_errors),
        TEST(ends_at_the_deadline),
        TEST(rejects_invalid_urls_and_queries),
        TEST(leaves_the_series_set_alone_on_failure),
        TEST(rejects_too_many_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
