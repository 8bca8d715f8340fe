/* Queries over a store, on a worker thread as in the agent. */
#include "exporter/base/buf.h"
#include "exporter/score/error.h"

#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/problems.h"
#include "exporter/base/worker.h"
#include "exporter/otlp/series.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, NOW = 1700000000 };

static int64_t wall_ms;

static unix_ms test_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){wall_ms};
}

static mono_ms real_mono(const struct clock *c)
{
    (void)c;
    return clock_system.mono(&clock_system);
}

static const struct clock test_clock = {.mono = real_mono, .wall = test_wall};

struct env {
    struct loop *loop;
    struct http *http;
    struct worker *worker;
    struct store *store;
    struct source_env source;
    struct http_share share;
    struct summary summary;
    unsigned times;
    struct source_result result;
};

/* Two series of one metric: 1 and 2 a minute ago, 2 and 4 now. */
static void add_samples(struct store *store)
{
    store_lock(store);
    for (int i = 1; i <= 2; i++) {
        const char *cluster = i == 1 ? "c1" : "c\"2";
        const struct series_label labels[] = {{STR("__name__"), STR("m")}, {STR("cluster"), str_of(cluster)}};
        struct series *x;

        assert_int_equal(store_enter(store, labels, 2, (uint64_t)i, &x), STORE_OK);
        assert_int_equal(store_append(store, x, (NOW - 60) * INT64_C(1000), i), STORE_OK);
        assert_int_equal(store_append(store, x, NOW * INT64_C(1000), 2 * i), STORE_OK);
    }
    store_unlock(store);
}

static int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));

    assert_non_null(e);
    wall_ms = NOW * INT64_C(1000);
    assert_int_equal(loop_new(&e->loop, &test_clock), 0);
    assert_int_equal(http_new(&e->http, e->loop, "test/1"), 0);
    assert_int_equal(worker_new(&e->worker, e->loop), 0);
    e->store = store_new(&test_clock);
    store_set_limits(e->store, 64u << 20, 1000);
    add_samples(e->store);
    e->source = (struct source_env){.loop = e->loop,
                                    .http = e->http,
                                    .max_answer = 1 << 20,
                                    .cluster_name = "c1",
                                    .worker = e->worker,
                                    .store = e->store};
    e->summary.source = (struct summary_source){.type = SOURCE_OPENTELEMETRY, .range_s = 60, .step_s = 60};
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    http_share_done(&e->share);
    e->worker = worker_free(e->worker);
    e->http = http_free(e->http);
    e->loop = loop_free(e->loop);
    e->store = store_free(e->store);
    free(e);
    return 0;
}

static void on_done(void *arg, const struct source_result *result)
{
    struct env *e = arg;

    e->times++;
    e->result = *result;
}

static int start(struct env *e, const char *query, int64_t timeout_ms, struct source **ret)
{
    const struct source_request rq = {
        .env = &e->source,
        .summary = &e->summary,
        .now = test_wall(NULL),
        .deadline = mono_add(loop_now(e->loop), timeout_ms),
        .share = &e->share,
    };

    e->times = 0;
    e->summary.source.query = (char *)(uintptr_t)query;
    return source_for(&e->summary)->start(ret, &rq, on_done, e);
}

static void turn_until_done(struct env *e)
{
    int64_t end = real_mono(NULL).ms + PATIENCE_MS;

    while (e->times == 0 && real_mono(NULL).ms < end)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    assert_int_equal(e->times, 1);
}

static struct source *fetch(struct env *e, const char *query)
{
    struct source *s = NULL;

    assert_int_equal(start(e, query, PATIENCE_MS, &s), 0);
    assert_int_equal(e->times, 0);
    turn_until_done(e);
    return s;
}

#define FIRST                                                                                                \
    "{\"metric\":{\"__name__\":\"m\",\"cluster\":\"c1\"},\"values\":[[1699999940,\"1\"],[1700000000,\"2\"]]" \
    "}"
#define SUM "{\"metric\":{},\"values\":[[1699999940,\"3\"],[1700000000,\"6\"]]}"

static void answers_each_query(void **state)
{
    struct env *e = *state;

    for (int beside = 0; beside < 2; beside++) {
        struct source *s;

        e->source.worker = beside ? e->worker : NULL;
        s = fetch(e, "m{cluster='${cluster}'}; none; sum(m)");
        assert_int_equal(e->result.error, ROUND_OK);
        assert_int_equal(e->result.series, 2);
        assert_int_equal(e->result.n_parts, 3);
        assert_true(str_eq(e->result.parts[0], STR(FIRST)));
        assert_int_equal(e->result.parts[1].n, 0);
        assert_true(str_eq(e->result.parts[2], STR(SUM)));
        (void)source_free(s);
    }
}

static void names_the_cause_of_a_failure(void **state)
{
    static const struct {
        const char *query;
        enum round_error error;
        const char *reason;
        uint64_t max;
    } cases[] = {
        {"m; abs(m)", ROUND_QUERY, "line 1, column 1: function abs is not supported", 1 << 20},
        {"m{a=`${cluster}`}", ROUND_QUERY, "sourceQuery: a string between backticks cannot contain", 1 << 20},
        {"rate(m[1m]); m", ROUND_TOO_LARGE, "the result exceeds the limit of 10 bytes", 10},
    };
    struct env *e = *state;

    e->source.cluster_name = "c`1";
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct source *s;

        e->source.max_answer = cases[i].max;
        s = fetch(e, cases[i].query);
        assert_int_equal(e->result.error, cases[i].error);
        if (strncmp(e->result.reason, cases[i].reason, strlen(cases[i].reason)) != 0)
            fail_msg("%s: %s", cases[i].query, e->result.reason);
        (void)source_free(s);
    }
}

/* The first point is 60 s old, and looks back on the 5 minutes before it. */
static void warns_of_series_that_were_refused_in_its_range(void **state)
{
    static const struct {
        uint64_t max_bytes;
        uint32_t max_series;
        int64_t later_s;
        size_t warnings;
        const char *limit;
    } cases[] = {
        {64 << 20, 1000, 0, 0, NULL},
        {64 << 20, 2, 0, 1, "limits.otlpSeries"},
        {64 << 20, 2, 360, 1, "limits.otlpSeries"},
        {64 << 20, 1000, 721, 0, NULL},
        {1, 1000, 721, 1, "limits.otlpMemory"},
        {64 << 20, 2, 721, 2, "limits.otlpSeries"},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct series_label labels[] = {{STR("__name__"), STR("other")}};
        struct source *s;
        struct series *x;

        wall_ms = NOW * INT64_C(1000) + cases[i].later_s * 1000;
        store_set_limits(e->store, cases[i].max_bytes, cases[i].max_series);
        if (cases[i].limit && cases[i].later_s != 360)
            assert_int_not_equal(store_enter(e->store, labels, 1, 9, &x), STORE_OK);
        s = fetch(e, "sum(m); m");
        assert_int_equal(e->result.error, ROUND_OK);
        assert_int_equal(e->result.warnings, cases[i].warnings);
        assert_true(!cases[i].limit || strstr(e->result.warning, cases[i].limit));
        (void)source_free(s);
    }
}

static void names_the_missing_flag(void **state)
{
    struct env *e = *state;
    struct source *s;

    e->source.store = NULL;
    s = fetch(e, "m");
    assert_int_equal(e->result.error, ROUND_QUERY);
    assert_string_equal(e->result.reason,
                        "the agent receives no OpenTelemetry metrics: start it with --otlp.listen-address");
    (void)source_free(s);
}

/* Only what exceeds 64 KiB is counted. */
static void counts_results_as_responses(void **state)
{
    struct env *e = *state;
    struct http_share other = {0};
    struct source *s;
    BUF_AUTO(queries, 4096);

    for (int i = 0; i < 60; i++)
        assert_int_equal(buf_puts(&queries, "last_over_time(m[2m]);"), 0);
    assert_int_equal(buf_putc(&queries, '\0'), 0);
    e->summary.source.step_s = 1;
    http_set_budget(e->http, 1 << 20);
    s = fetch(e, queries.p);
    assert_int_equal(e->result.error, ROUND_OK);
    (void)source_free(s);
    http_share_done(&e->share);
    assert_int_equal(http_share_hold(&other, e->http, (64 << 10) + (1 << 20)), 0);
    s = fetch(e, queries.p);
    assert_int_equal(e->result.error, ROUND_MEMORY);
    assert_string_equal(e->result.reason, "over limits.memory: no room for the result of the query");
    (void)source_free(s);
    http_share_done(&other);
}

struct busy {
    struct job job;
    sem_t free;
};

static void busy_run(struct job *j)
{
    struct busy *b = CONTAINER_OF(j, struct busy, job);

    while (sem_wait(&b->free) < 0)
        continue;
}

static void busy_done(struct job *j)
{
    (void)j;
}

static void ends_at_its_deadline(void **state)
{
    struct busy busy = {.job = {.run = busy_run, .done = busy_done}};
    struct env *e = *state;
    struct source *s = NULL;

    assert_int_equal(sem_init(&busy.free, 0, 0), 0);
    worker_start(e->worker, &busy.job);
    assert_int_equal(start(e, "m", 20, &s), 0);
    turn_until_done(e);
    assert_int_equal(e->result.error, ROUND_TIMEOUT);
    assert_string_equal(e->result.reason, "timed out before all queries were answered");
    (void)source_free(s);
    assert_int_equal(sem_post(&busy.free), 0);
    e->worker = worker_free(e->worker);
    (void)sem_destroy(&busy.free);
}

static void can_be_cancelled_at_any_time(void **state)
{
    struct env *e = *state;
    struct source *s;

    for (int turns = 0; turns < 4; turns++) {
        s = NULL;
        assert_int_equal(start(e, "m; m; m", PATIENCE_MS, &s), 0);
        for (int i = 0; i < turns && e->times == 0; i++)
            assert_int_equal(loop_turn(e->loop, 0), 0);
        (void)source_free(s);
    }
    s = fetch(e, "m");
    assert_int_equal(e->result.error, ROUND_OK);
    (void)source_free(s);
}

/* A configuration in YAML; *said is what was wrong, printed. */
static struct summaries read_summaries(const char *text, enum problem_kind unknown, struct buf *said)
{
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    struct summaries s = {0};
    struct problems p;

    problems_init(&p, "f");
    assert_int_equal(doc_parse(&d, str_of(text), &p), 0);
    assert_int_equal(summaries_parse(&s, doc_root(d), unknown, &p), 0);
    problems_sort(&p);
    assert_int_equal(problems_print(&p, said), 0);
    problems_done(&p);
    return s;
}

#define SCORER(name, rest) \
    "- {scoreName: " name ", scoringEndpoint: 'http://s', sourceType: otel, " rest "}\n"

static void tells_how_long_samples_are_needed(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } cases[] = {
        {"- {scoreName: a, scoringEndpoint: 'http://s', sourceType: None}", 0},
        {SCORER("a", "sourceQuery: m"), 3600 + 300 + 60 + 60},
        {SCORER("a", "sourceQuery: 'm; rate(m[1h])', sourceRange: 100, sourceStep: 10"),
         100 + 3600 + 10 + 60},
        {SCORER("a", "sourceQuery: m, sourceRange: 7200")
             SCORER("b", "sourceQuery: 'rate(m[2h])', sourceRange: 60"),
         7200 + 300 + 60 + 60},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(said, 1 << 16);
        struct summaries s = read_summaries(cases[i].text, PROBLEM_ERROR, &said);

        assert_int_equal(said.n, 0);
        assert_int_equal(summaries_otlp_age(&s), cases[i].seconds * 1000);
        summaries_done(&s);
    }
}

#define WAY_OUT \
    "; for all of PromQL set agent.otlp.prometheus.enabled in the chart, or give the source a host"

/* Not in the hub's lists, nor of an endpoint: there the engine decides. */
static void reports_what_is_wrong_in_a_summary(void **state)
{
    static const struct {
        const char *text, *said;
        enum problem_kind unknown;
    } cases[] = {
        {SCORER("a", "sourceQuery: 'm; absent(m)'"),
         "f:1:78: error: [0].sourceQuery: line 1, column 4: function absent is not supported by sourceType "
         "OpenTelemetry; supported functions: avg_over_time, count_over_time, delta, increase, irate, "
         "last_over_time, max_over_time, min_over_time, rate, sum_over_time" WAY_OUT "\n",
         PROBLEM_ERROR},
        {SCORER("a", "sourceQuery: absent(m)"), "", PROBLEM_WARNING},
        {SCORER("a", "sourceQuery: absent(m), sourceEndpoint: 'http://p'"), "", PROBLEM_ERROR},
        {SCORER("a", "sourceEndpoint: ''"),
         "f:1:3: error: [0].sourceQuery: missing, expected a query in PromQL\n", PROBLEM_ERROR},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(said, 1 << 16);
        struct summaries s = read_summaries(cases[i].text, cases[i].unknown, &said);

        if (!str_eq(buf_str(&said), str_of(cases[i].said)))
            fail_msg("%s\ngot:      %.*s\nexpected: %s", cases[i].text, STR_ARG(buf_str(&said)),
                     cases[i].said);
        summaries_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_each_query, setup, teardown),
        cmocka_unit_test_setup_teardown(names_the_cause_of_a_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(warns_of_series_that_were_refused_in_its_range, setup, teardown),
        cmocka_unit_test_setup_teardown(names_the_missing_flag, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_results_as_responses, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_at_its_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(can_be_cancelled_at_any_time, setup, teardown),
        cmocka_unit_test(tells_how_long_samples_are_needed),
        cmocka_unit_test(reports_what_is_wrong_in_a_summary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
