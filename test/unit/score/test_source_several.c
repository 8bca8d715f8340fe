/* Rounds with several sources. The servers, from fake_new(), have threads of their own; the second source is
 * a third server. */
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "test/unit/score/rounds.h"

static const char second_query[] = "down;x";

/* One more server, and a summary that names both: the first with "up", the other with two queries. */
static struct fake_server *add_source(struct env *e, struct summary_source *more)
{
    struct fake_server *f = fake_new();

    assert_non_null(f);
    fake_default(f, (struct fake_answer){.body = MATRIX(SERIES_B)});
    more[0] = (struct summary_source){
        .type = SOURCE_PROMETHEUS,
        .endpoint = (char *)(uintptr_t)fake_url(f, "/q?tenant=b"),
        .auth = {(char *)(uintptr_t) "second", (char *)(uintptr_t) "token"},
        .query = (char *)(uintptr_t)second_query,
        .range_s = 60,
        .step_s = 5,
    };
    write_secret(e, "first", "t-one");
    write_secret(e, "second", "t-two");
    e->summary.source.auth = (struct secret_ref){(char *)(uintptr_t) "first", (char *)(uintptr_t) "token"};
    e->summary.more_sources = more;
    e->summary.n_more_sources = 1;
    return f;
}

static void assert_header(const struct fake_request *rq, const char *name, const char *want)
{
    char value[128] = "";

    assert_non_null(rq);
    assert_int_equal(fake_header(rq, name, value, sizeof(value)), want != NULL);
    assert_string_equal(value, cstr(want));
}

/* Each has its own endpoint, token, queries, range and step; the end of the range is the same. */
static void fetches_each_source_by_its_own_settings(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    struct round_result r = run(e, TIMEOUT_MS, NULL);

    assert_int_equal(r.error, ROUND_OK);
    assert_int_equal(r.source_series, 3);
    assert_int_equal(fake_requests(e->prometheus), 1);
    assert_int_equal(fake_requests(f), 2);
    assert_string_equal(fake_request(e->prometheus, 0)->target,
                        "/api/v1/query_range?query=up&start=1795238581.250&end=1795242181.250&step=60");
    assert_string_equal(fake_request(f, 0)->target,
                        "/q?tenant=b&query=down&start=1795242121.250&end=1795242181.250&step=5");
    assert_string_equal(fake_request(f, 1)->target,
                        "/q?tenant=b&query=x&start=1795242121.250&end=1795242181.250&step=5");
    assert_header(fake_request(e->prometheus, 0), "Authorization", "Bearer t-one");
    assert_header(fake_request(f, 0), "Authorization", "Bearer t-two");
    assert_posted(e, 0, "{\"data\":[" SERIES_A "," SERIES_B "," SERIES_B "]}");
    assert_int_equal(r.received[STAGE_SOURCE], strlen(MATRIX(SERIES_A)) + 2 * strlen(MATRIX(SERIES_B)));
    assert_true(r.fetch_s > 0);
    more[0].auth = (struct secret_ref){0}; /* no other's token is sent in its place */
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    assert_header(fake_request(f, 2), "Authorization", NULL);
    (void)fake_free(f);
}

static void counts_the_warnings_of_all_sources(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    struct round_result r;

    fake_push(e->prometheus, (struct fake_answer){.body = MATRIX("")});
    fake_push(f,
              (struct fake_answer){.body = "{\"data\":{\"result\":[]},\"warnings\":[\"first\",\"second\"]}"});
    fake_push(
        f, (struct fake_answer){.body = "{\"data\":{\"result\":[]},\"infos\":[],\"warnings\":[\"third\"]}"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_int_equal(r.error, ROUND_OK);
    assert_int_equal(r.source_series, 0);
    assert_int_equal(r.source_warnings, 3);
    assert_string_equal(r.source_warning, "first");
    assert_posted(e, 0, "{\"data\":[]}");
    (void)fake_free(f);
}

static void names_the_source_that_fails(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    struct round_result r;

    fake_push(f, (struct fake_answer){.body = MATRIX(SERIES_B)});
    fake_push(f, (struct fake_answer){.status = 503, .headers = "Retry-After: 7\r\n", .body = "later"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_HTTP_5XX, "source 2 of 2: HTTP 503 Service Unavailable: later");
    assert_int_equal(r.source, 1);
    assert_int_equal(r.retry_after_ms, 7000);
    assert_false(r.fetched || r.performed);

    fake_push(e->prometheus,
              (struct fake_answer){
                  .status = 400,
                  .body = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}"});
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_QUERY, "source 1 of 2: bad_data: parse error");
    assert_int_equal(r.source, 0);
    assert_int_equal(fake_requests(f), 2); /* the second was not asked */

    more[0].auth.name = (char *)(uintptr_t) "missing";
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_SECRET, ": secret \"missing\", key \"token\": not found");
    assert_int_equal(fake_requests(f), 2);
    assert_int_equal(fake_requests(e->scorer), 0);
    (void)fake_free(f);
}

static void cuts_long_words(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    CLEANUP(cleanup_free) char *words = calloc(1, 5000);
    struct round_result r;

    for (size_t i = 0; i < 1600; i++)
        (void)memcpy(words + 3 * i, "\xe2\x82\xac", 3);
    fake_push(f, (struct fake_answer){.status = 500, .body = words});
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_HTTP_5XX, "source 2 of 2: HTTP 500 ");
    assert_non_null(strstr(r.reason, "\xe2\x82\xac...\xe2\x82\xac"));
    (void)fake_free(f);
}

/* All share the round's time. */
static void ends_all_sources_at_the_deadline(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    struct round_result r;

    fake_push(f, (struct fake_answer){.mode = FAKE_HANG});
    r = run(e, 2000, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_TIMEOUT, "source 2 of 2: ");
    r = run(e, 0, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_TIMEOUT, "source 1 of 2: ");
    (void)fake_free(f);
}

static void keeps_the_order_of_sixteen_sources(void **state)
{
    struct env *e = *state;
    struct summary_source more[SUMMARY_MAX_SOURCES - 1];
    BUF_AUTO(want, 4096);

    e->summary.more_sources = more;
    e->summary.n_more_sources = ARRAY_SIZE(more);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        more[i] = summary_source(&e->summary, 0);
    for (size_t i = 0; i < SUMMARY_MAX_SOURCES; i++)
        fake_push(e->prometheus, (struct fake_answer){.body = i % 3 == 2   ? MATRIX("")
                                                              : i % 2 == 0 ? MATRIX(SERIES_A)
                                                                           : MATRIX(SERIES_B)});
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    for (size_t i = 0; i < SUMMARY_MAX_SOURCES; i++)
        if (i % 3 != 2)
            assert_int_equal(buf_printf(&want, "%s%s", want.n ? "," : "", i % 2 == 0 ? SERIES_A : SERIES_B),
                             0);
    assert_int_equal(buf_putc(&want, '\0'), 0);
    assert_memory_equal(fake_request(e->scorer, 0)->body, "{\"data\":[", 9);
    assert_memory_equal(fake_request(e->scorer, 0)->body + 9, want.p, want.n - 1);
    assert_string_equal(fake_request(e->scorer, 0)->body + 9 + want.n - 1, "]}");
}

static void can_be_freed_at_every_stage(void **state)
{
    struct env *e = *state;
    struct summary_source more[1];
    struct fake_server *f = add_source(e, more);
    struct got g = {0};
    struct round *r = NULL;
    int64_t end = test_clock.mono(&test_clock).ms + PATIENCE_MS;

    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0); /* before anything happened */
    r = round_free(r);
    fake_default(f, (struct fake_answer){.mode = FAKE_HANG});
    assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0); /* while the second is asked */
    while (fake_requests(f) == 0 && test_clock.mono(&test_clock).ms < end)
        assert_int_equal(loop_turn(e->loop, 5), 0);
    assert_int_equal(fake_requests(f), 1);
    r = round_free(r);
    for (int way = 0; way < 3; way++) { /* from inside the callback */
        struct got inside = {.free = &r};

        fake_default(f, (struct fake_answer){.status = way == 1 ? 500 : 200, .body = MATRIX(SERIES_B)});
        more[0].auth.name = (char *)(uintptr_t)(way == 2 ? "missing" : "second");
        assert_int_equal(start(e, &r, &inside, TIMEOUT_MS), 0);
        turn_until_done(e, &inside);
        assert_int_equal(inside.result.error == ROUND_OK, way == 0);
        assert_null(r);
        (void)batch_unref(inside.batch);
    }
    assert_int_equal(g.times, 0);
    (void)fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_each_source_by_its_own_settings),
        TEST(counts_the_warnings_of_all_sources),
        TEST(names_the_source_that_fails),
        TEST(cuts_long_words),
        TEST(ends_all_sources_at_the_deadline),
        TEST(keeps_the_order_of_sixteen_sources),
        TEST(can_be_freed_at_every_stage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
