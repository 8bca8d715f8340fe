#include "exporter/base/loop.h"

#include "exporter/base/clock.h"
#include "exporter/base/json.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

enum { SLOW_JOBS = 10 };

struct env {
    struct loop *loop;
    struct worker *worker;
};

static int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));

    assert_int_equal(loop_new(&e->loop, &clock_system), 0);
    assert_int_equal(worker_new(&e->worker, e->loop), 0);
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    e->worker = worker_free(e->worker);
    e->loop = loop_free(e->loop);
    free(e);
    return 0;
}

struct task {
    struct job job;
    unsigned ran, ended; /* when, counted by the two below; 0: never */
    pthread_t by;
};

static unsigned runs, ends;

static void task_run(struct job *j)
{
    struct task *t = CONTAINER_OF(j, struct task, job);

    t->ran = ++runs;
    t->by = pthread_self();
}

static void task_done(struct job *j)
{
    CONTAINER_OF(j, struct task, job)->ended = ++ends;
}

static void tasks_start(struct env *e, struct task *tasks, size_t n)
{
    runs = ends = 0;
    for (size_t i = 0; i < n; i++) {
        tasks[i] = (struct task){.job = {.run = task_run, .done = task_done}};
        worker_start(e->worker, &tasks[i].job);
    }
}

static void runs_jobs_in_order_beside_the_loop(void **state)
{
    struct env *e = *state;
    struct task tasks[100];

    tasks_start(e, tasks, ARRAY_SIZE(tasks));
    while (ends < ARRAY_SIZE(tasks))
        assert_int_equal(loop_turn(e->loop, 1000), 0);
    for (unsigned i = 0; i < ARRAY_SIZE(tasks); i++) {
        assert_int_equal(tasks[i].ran, i + 1);
        assert_int_equal(tasks[i].ended, i + 1);
        assert_false(pthread_equal(tasks[i].by, pthread_self()));
    }
}

static atomic_bool all_wait;

/* Reads much, once all others wait; each slice lets the small ones go first. */
static void reader_run(struct job *j)
{
    CLEANUP(cleanup_free) char *text = malloc(4 * WORKER_SLICE_BYTES);
    struct jr reader;

    while (!atomic_load(&all_wait))
        (void)sched_yield();
    memset(text, ' ', 4 * WORKER_SLICE_BYTES);
    text[0] = '[';
    text[4 * WORKER_SLICE_BYTES - 1] = ']';
    jr_init(&reader, (struct str){text, 4 * WORKER_SLICE_BYTES}, JR_STRICT);
    assert_true(jr_skip(&reader, NULL));
    task_run(j);
}

/* One that reads much is running, another waits, and behind it a small one and one of unknown size. */
static void lets_small_jobs_go_first(void **state)
{
    enum { LARGE = 100 << 20, SMALL = 1 << 20 };
    struct env *e = *state;
    struct task first = {.job = {.run = reader_run, .done = task_done}},
                second = {.job = {.run = reader_run, .done = task_done}},
                small = {.job = {.run = task_run, .done = task_done}},
                unknown = {.job = {.run = task_run, .done = task_done}};

    runs = ends = 0;
    atomic_store(&all_wait, false);
    worker_do(e->worker, &first.job, LARGE);
    worker_do(e->worker, &second.job, LARGE - 1);
    worker_do(e->worker, &small.job, SMALL);
    worker_start(e->worker, &unknown.job);
    atomic_store(&all_wait, true);
    while (ends < 4)
        assert_int_equal(loop_turn(e->loop, 1000), 0);
    assert_int_equal(small.ended, 1);
    assert_int_equal(first.ended, 2);
    assert_int_equal(second.ended, 3);
    assert_int_equal(unknown.ended, 4);
    assert_true(pthread_equal(small.by, first.by));
    worker_slice(); /* not the worker's thread */
}

static atomic_uint begun, ending;

/* Ends once the job before it is being ended. */
static void slow_run(struct job *j)
{
    unsigned before = atomic_fetch_add(&begun, 1);

    task_run(j);
    while (atomic_load(&ending) < before)
        (void)sched_yield();
}

/* Takes until the next job has finished, which the begin of the one after that shows. */
static void slow_done(struct job *j)
{
    unsigned next = atomic_fetch_add(&ending, 1) + 1;

    task_done(j);
    while (next + 1 < SLOW_JOBS && atomic_load(&begun) < next + 2)
        (void)sched_yield();
}

static void ends_jobs_that_finish_while_others_end(void **state)
{
    struct env *e = *state;
    struct task tasks[SLOW_JOBS];

    runs = ends = 0;
    for (size_t i = 0; i < SLOW_JOBS; i++) {
        tasks[i] = (struct task){.job = {.run = slow_run, .done = slow_done}};
        worker_start(e->worker, &tasks[i].job);
    }
    while (ends < SLOW_JOBS)
        assert_int_equal(loop_turn(e->loop, 1000), 0);
    assert_int_equal(loop_turn(e->loop, 0), 0); /* a post that is on its list twice would never end */
}

static void ends_every_job(void **state)
{
    struct env *e = *state;
    struct task tasks[100];

    tasks_start(e, tasks, ARRAY_SIZE(tasks));
    e->worker = worker_free(e->worker);
    assert_int_equal(ends, ARRAY_SIZE(tasks));
    assert_int_equal(loop_turn(e->loop, 0), 0); /* no post is left behind */
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(runs_jobs_in_order_beside_the_loop),
        CASE(lets_small_jobs_go_first),
        CASE(ends_jobs_that_finish_while_others_end),
        CASE(ends_every_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
