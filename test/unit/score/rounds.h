/* Rounds between two servers that do what they are told: one in Prometheus' place, one in the scoring API's.
 * What test_round*.c share. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer_job.h"
#include "exporter/score/credentials.h"
#include "exporter/score/round.h"
#include "exporter/score/round_error.h"
#include "exporter/score/secret_files.h"
#include "exporter/score/summary.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, TIMEOUT_MS = 60000 };

#define SERIES_A "{\"metric\":{\"pod\":\"a\\u20ac\"} ,\"values\":[[1718600060.123,\"0.25\"]]}"
#define SERIES_B "{\"metric\":{\"pod\":\"b\"},\"values\":[[1718600060,\"1\"], [1718600120,\"NaN\"]]}"
#define MATRIX(series) \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[ " series " ]}}"
#define SCORES \
    "{\"results\":[{\"metric\":{\"pod\":\"a\"},\"score\":1.5},{\"metric\":{\"pod\":\"b\"},\"score\":2}]}"

struct env {
    struct loop *loop;
    struct http *http;
    struct fake_server *prometheus, *scorer;
    struct secret_files secrets;
    char dir[64], long_query[4000];
    struct source_env source;
    struct answer_job *answer_job;
    struct summary_source from;
    struct summary summary;
};

/* What a round ended with. */
struct got {
    unsigned times;
    struct round_result result;
    struct batch *batch;
    struct round **free; /* freed from inside the callback */
};

static mono_ms real_mono(const struct clock *c)
{
    (void)c;
    return clock_system.mono(&clock_system);
}

/* 2026-11-21T06:23:01.250Z */
static unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){1795242181250};
}

static const struct clock test_clock = {.mono = real_mono, .wall = fixed_wall};

static inline int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));

    assert_non_null(e);
    (void)unsetenv("http_proxy");
    (void)unsetenv("HTTP_PROXY");
    (void)unsetenv("ALL_PROXY");
    (void)unsetenv("all_proxy");
    e->prometheus = fake_new();
    e->scorer = fake_new();
    fake_default(e->prometheus, (struct fake_answer){.body = MATRIX(SERIES_A)});
    fake_default(e->scorer, (struct fake_answer){.body = SCORES});
    assert_int_equal(loop_new(&e->loop, &test_clock), 0);
    e->http = http_new(e->loop, "test/1");
    (void)strcpy(e->dir, "/tmp/test_round.XXXXXX");
    secret_files_init(&e->secrets, mkdtemp(e->dir));
    e->source = (struct source_env){e->loop, e->http, &e->secrets.secrets, 1u << 20, "c1", NULL, NULL, NULL};
    e->answer_job = answer_job_new("c1", "s1", 100);
    e->from = (struct summary_source){
        .type = SOURCE_PROMETHEUS,
        .endpoint = (char *)(uintptr_t)fake_url(e->prometheus, "/api/v1/query_range"),
        .query = (char *)(uintptr_t) "up",
        .range_s = 3600,
        .step_s = 60,
    };
    e->summary = (struct summary){
        .sources = &e->from,
        .n_sources = 1,
        .scoring_endpoint = (char *)(uintptr_t)fake_url(e->scorer, "/scoring"),
    };
    *state = e;
    return 0;
}

static inline int teardown(void **state)
{
    struct env *e = *state;
    char command[128];

    e->http = http_free(e->http);
    e->loop = loop_free(e->loop);
    e->answer_job = answer_job_free(e->answer_job);
    e->prometheus = fake_free(e->prometheus);
    e->scorer = fake_free(e->scorer);
    (void)snprintf(command, sizeof(command), "rm -r %s", e->dir);
    assert_int_equal(system(command), 0);
    free(e);
    return 0;
}

static inline void on_done(void *arg, struct round_result *result)
{
    struct got *g = arg;

    g->times++;
    g->result = *result;
    g->batch = TAKE_PTR(result->batch);
    if (g->free)
        *g->free = round_free(*g->free);
}

static inline int start(struct env *e, struct round **ret, struct got *g, int64_t timeout_ms)
{
    struct round_request rq = {&e->source, &e->summary, e->answer_job, 256, timeout_ms};

    *ret = round_start(&rq, on_done, g);
    return 0;
}

static inline void turn_until_done(struct env *e, const struct got *g)
{
    int64_t end = test_clock.mono(&test_clock).ms + PATIENCE_MS;

    while (g->times == 0 && test_clock.mono(&test_clock).ms < end)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    assert_int_equal(g->times, 1);
}

/* One whole round; the batch is dropped unless it is asked for. */
static inline struct round_result run(struct env *e, int64_t timeout_ms, struct batch **ret_batch)
{
    struct got g = {0};
    struct round *r = NULL;

    assert_int_equal(loop_turn(e->loop, 0), 0);
    assert_int_equal(start(e, &r, &g, timeout_ms), 0);
    assert_int_equal(g.times, 0); /* never from inside */
    turn_until_done(e, &g);
    assert_int_equal(g.result.error == ROUND_OK, g.batch != NULL);
    assert_int_equal(g.result.error == ROUND_OK, g.result.reason[0] == '\0');
    assert_null(round_free(r));
    if (ret_batch)
        *ret_batch = g.batch;
    else
        (void)batch_unref(g.batch);
    return g.result;
}

static inline void assert_failed(const struct round_result *r, enum round_stage stage, enum round_error error,
                                 const char *reason)
{
    if (r->error != error || r->stage != stage || !strstr(r->reason, reason))
        fail_msg("%s at %s: %s; expected %s: %s", round_error_word(r->error), round_stage_word(r->stage),
                 r->reason, round_error_word(error), reason);
}

static inline void assert_posted(struct env *e, size_t i, const char *body)
{
    const struct fake_request *rq = fake_request(e->scorer, i);
    char type[64] = "";

    assert_non_null(rq);
    assert_string_equal(rq->method, "POST");
    assert_string_equal(rq->target, "/scoring");
    assert_true(fake_header(rq, "Content-Type", type, sizeof(type)));
    assert_string_equal(type, "application/json");
    assert_string_equal(rq->body, body);
}

static inline void write_secret(struct env *e, const char *name, const char *value)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", e->dir, name);
    (void)mkdir(path, 0700);
    (void)strcat(path, "/token");
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(value, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
