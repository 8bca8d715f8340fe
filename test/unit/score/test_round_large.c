/* Large responses, which a worker reads beside the loop. The servers, from fake_new(), have threads of their
 * own. */
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer_job.h"
#include "exporter/score/round.h"
#include "exporter/score/round_error.h"
#include "test/unit/score/rounds.h"

#define NOT_JSON "response is not JSON: line 1, column 1: expected an object"

enum { LARGE = 1 << 20 };

static char large_matrix[LARGE], large_scores[LARGE], large_html[LARGE];

static struct fake_answer pad(char *room, const char *text)
{
    memset(room, ' ', LARGE);
    memcpy(room, text, strlen(text));
    return (struct fake_answer){.body = room, .body_len = LARGE};
}

static struct worker *use_worker(struct env *e)
{
    struct worker *w;

    assert_int_equal(worker_new(&w, e->loop), 0);
    e->source.worker = w;
    e->source.max_answer = 4 * LARGE;
    fake_default(e->prometheus, pad(large_matrix, MATRIX(SERIES_A)));
    fake_default(e->scorer, pad(large_scores, SCORES));
    return w;
}

static void are_read_like_small_ones(void **state)
{
    struct env *e = *state;
    struct worker *w = use_worker(e);

    for (int i = 0; i < 3; i++) {
        struct batch *batch = NULL;
        struct round_result r = run(e, TIMEOUT_MS, &batch);

        assert_int_equal(r.error, ROUND_OK);
        assert_posted(e, (size_t)i, "{\"data\":[" SERIES_A "]}");
        assert_int_equal(series_count(batch->set), 2);
        assert_int_equal(r.source_series, 1);
        assert_int_equal(r.answer.results, 2);
        assert_false(answer_job_is_busy(e->answer_job));
        (void)batch_unref(batch);
    }
    (void)worker_free(w);
}

static void fail_like_small_ones(void **state)
{
    struct env *e = *state;
    struct worker *w = use_worker(e);
    struct round_result r;

    fake_push(e->scorer, pad(large_html, "<html>"));
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SCORING, ROUND_JSON, NOT_JSON);
    fake_push(e->prometheus, pad(large_html, "<html>"));
    r = run(e, TIMEOUT_MS, NULL);
    assert_failed(&r, STAGE_SOURCE, ROUND_JSON, NOT_JSON);
    assert_int_equal(run(e, TIMEOUT_MS, NULL).error, ROUND_OK);
    (void)worker_free(w);
}

/* The end of the job frees what the worker was reading, and itself if it has no owner any more. */
static void can_be_cancelled_while_they_are_read(void **state)
{
    struct env *e = *state;
    struct worker *w = use_worker(e);
    unsigned abandoned = 0;

    for (int turns = 0; turns < 400 || abandoned == 0; turns++) {
        struct got g = {0};
        struct round *r = NULL;

        if (answer_job_is_busy(e->answer_job)) {
            (void)answer_job_free(e->answer_job);
            e->answer_job = answer_job_new("c1", "s1", 100);
        }
        assert_int_equal(start(e, &r, &g, TIMEOUT_MS), 0);
        for (int i = 0; i < turns % 50 && g.times == 0; i++)
            assert_int_equal(loop_turn(e->loop, 1), 0);
        r = round_free(r);
        abandoned += answer_job_is_busy(e->answer_job);
        (void)batch_unref(g.batch);
    }
    (void)worker_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(are_read_like_small_ones),
        TEST(fail_like_small_ones),
        TEST(can_be_cancelled_while_they_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
