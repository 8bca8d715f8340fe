#include "exporter/base/loop.h"

#include "exporter/base/clock.h"

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
        CASE(ends_jobs_that_finish_while_others_end),
        CASE(ends_every_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
