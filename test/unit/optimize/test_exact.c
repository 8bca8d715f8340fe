#include "controller/optimize/exact.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/buf.h"
#include "test/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Stand-ins for dynamic-scoring-cbc are scripts in a folder of the test; the program itself is in the folder
 * above that of the test. */
static char folder[] = "/tmp/exact.XXXXXX";

static const int64_t REQUESTS[] = {2000, 2000, 3000};
static const uint32_t REPLICAS[] = {1, 1, 1}, FIRST_SETTING[] = {0, 2, 3};
static const int64_t SUPPLIES[] = {2000, 4000, 3000};
/* The best: workloads 0 and 1 with setting 1, workload 2 with setting 2: 5 + 6 + 9. */
static const int16_t SCORES[] = {7, 8, SCORE_IMPOSSIBLE, 5, 6, 9, 1, 1, 9};
static const struct problem PROBLEM = {.n_workloads = 3,
                                       .n_sites = 2,
                                       .n_settings = 3,
                                       .n_resources = 1,
                                       .requests = REQUESTS,
                                       .replicas = REPLICAS,
                                       .first_setting = FIRST_SETTING,
                                       .supplies = SUPPLIES,
                                       .scores = SCORES,
                                       .unit = 1,
                                       .max_moves = SIZE_MAX};
static const struct wire_choice BEST[] = {{0, 1}, {1, 1}, {2, 2}}, TOO_MUCH[] = {{0, 1}, {1, 1}, {2, 1}};

static struct solution nothing_placed(void)
{
    struct solution s = {.bound = 100, .engine = "relaxation"};

    s.setting = malloc(PROBLEM.n_sites * sizeof *s.setting);
    assert_non_null(s.setting);
    for (size_t i = 0; i < PROBLEM.n_sites; i++)
        s.setting[i] = NO_SETTING;
    return s;
}

static void write_file(const char *name, const void *p, size_t n, mode_t mode, char path[128])
{
    int fd;

    snprintf(path, 128, "%s/%s", folder, name);
    (void)unlink(path);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    assert_int_equal(close(fd), 0);
}

/* Runs exact_solve() with a stand-in that is this script; `answer` is in the file $1 of it. */
static int solve_with(struct solution *s, const char *script, const struct buf *answer, int64_t deadline_ms,
                      const atomic_bool *cancel)
{
    struct solve_options o = {.deadline_ms = deadline_ms, .cancel = cancel};
    char path[128], program[128], text[512];

    write_file("answer", answer && answer->n ? answer->p : "", answer ? answer->n : 0, 0600, path);
    snprintf(text, sizeof text, "#!/bin/sh\nanswer=%s\n%s\n", path, script);
    write_file("program", text, strlen(text), 0700, program);
    o.cbc = program;
    return exact_solve(s, &PROBLEM, &o);
}

static void put(struct buf *out, uint32_t kind, int64_t value, const struct wire_choice *choices, uint32_t n)
{
    assert_int_equal(wire_put_message(out, &(struct wire_message){kind, n, value, choices}), 0);
}

static void no_child_is_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void takes_a_better_solution_and_bound(void **state)
{
    struct solution s = nothing_placed();
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_BOUND, 25, NULL, 0);
    put(&answer, WIRE_SOLUTION, 20, BEST, 3);
    put(&answer, WIRE_BOUND, 20, NULL, 0);
    put(&answer, WIRE_END, 1, NULL, 0);
    assert_int_equal(solve_with(&s, "cat >/dev/null; exec cat $answer", &answer, 10000, NULL), 0);
    assert_null(solution_check(&PROBLEM, &s));
    assert_int_equal(s.objective, 20);
    assert_int_equal(s.bound, 20);
    assert_string_equal(s.engine, "CBC");
    assert_false(s.deadline_reached);
    solution_done(&s);
    no_child_is_left();
}

static void keeps_the_solution_when_the_program_fails(void **state)
{
    static const char *const scripts[] = {
        "exit 0",
        "exit 3",
        "kill -SEGV $$",
        "cat >/dev/null; kill -KILL $$",
        "cat >/dev/null; echo garbage 0123456789",
        "cat >/dev/null; cat /dev/zero",
        "head -c 20 >/dev/null; exec cat /dev/null",
        "cat >/dev/null; exec cat $answer", /* a solution that does not fit */
    };
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_SOLUTION, 20, TOO_MUCH, 3);
    put(&answer, WIRE_END, 1, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        struct solution s = nothing_placed();

        assert_int_equal(solve_with(&s, scripts[i], &answer, 10000, NULL), -EIO);
        assert_int_equal(s.n_placed, 0);
        assert_int_equal(s.bound, 100);
        assert_string_equal(s.engine, "relaxation");
        solution_done(&s);
        no_child_is_left();
    }
}

static void reports_a_program_that_is_missing(void **state)
{
    struct solution s = nothing_placed();
    struct solve_options o = {.deadline_ms = 1000, .cbc = "/nonexistent/dynamic-scoring-cbc"};

    (void)state;
    assert_int_equal(exact_solve(&s, &PROBLEM, &o), -EIO);
    solution_done(&s);
    no_child_is_left();
}

static void keeps_what_came_before_the_program_fails(void **state)
{
    struct solution s = nothing_placed();
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_SOLUTION, 20, BEST, 3);
    put(&answer, WIRE_SOLUTION, 21, BEST, 3);
    assert_int_equal(
        solve_with(&s, "cat >/dev/null; head -c 50 $answer; kill -ABRT $$", &answer, 10000, NULL), 0);
    assert_int_equal(s.objective, 20);
    assert_int_equal(s.bound, 100);
    assert_true(s.deadline_reached);
    solution_done(&s);
}

static void kills_a_program_that_hangs(void **state)
{
    static const char *const scripts[] = {"sleep 1000", "cat >/dev/null; cat $answer; exec sleep 1000",
                                          "trap '' TERM; exec sleep 1000"};
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_BOUND, 30, NULL, 0);
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        struct solution s = nothing_placed();

        assert_int_equal(solve_with(&s, scripts[i], &answer, i == 1 ? 2000 : 50, NULL), 0);
        assert_true(s.deadline_reached);
        assert_int_equal(s.bound, i == 1 ? 30 : 100);
        solution_done(&s);
        no_child_is_left();
    }
}

static void ends_when_it_is_cancelled(void **state)
{
    const atomic_bool cancel = true;
    struct solution s = nothing_placed();

    (void)state;
    assert_int_equal(solve_with(&s, "exec sleep 1000", NULL, 1000000, &cancel), 0);
    assert_int_equal(s.n_placed, 0);
    solution_done(&s);
    no_child_is_left();
}

static void refuses_a_bound_below_the_objective(void **state)
{
    struct solution s = nothing_placed();
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_BOUND, 10, NULL, 0);
    put(&answer, WIRE_SOLUTION, 20, BEST, 3);
    put(&answer, WIRE_END, 1, NULL, 0);
    assert_int_equal(solve_with(&s, "cat >/dev/null; exec cat $answer", &answer, 10000, NULL), 0);
    assert_int_equal(s.objective, 20);
    assert_int_equal(s.bound, INT64_MAX); /* nothing is proven by a program that was wrong */
    solution_done(&s);
}

static void is_for_small_problems(void **state)
{
    struct problem p = PROBLEM;
    size_t n = 200 * 200;
    CLEANUP(cleanup_free) int16_t *scores = calloc(n, sizeof *scores);

    (void)state;
    assert_non_null(scores);
    assert_true(exact_is_for(&PROBLEM));
    p.n_workloads = p.n_settings = 200;
    p.scores = scores;
    assert_false(exact_is_for(&p));
    for (size_t i = 0; i < n; i++)
        scores[i] = i % 10 == 0 ? 1 : SCORE_IMPOSSIBLE;
    assert_true(exact_is_for(&p));
    for (size_t i = 0; i < n; i++)
        scores[i] = SCORE_IMPOSSIBLE;
    assert_false(exact_is_for(&p));
    p.n_workloads = 0;
    assert_false(exact_is_for(&p));
}

static void survives_each_failed_allocation(void **state)
{
    BUF_AUTO(answer, 1 << 12);

    (void)state;
    put(&answer, WIRE_SOLUTION, 20, BEST, 3);
    put(&answer, WIRE_END, 1, NULL, 0);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct solution s = {.bound = 100, .is_infeasible = true};
        int r = solve_with(&s, "cat >/dev/null; exec cat $answer", &answer, 10000, NULL);

        assert_true(r == 0 || oom_happened());
        solution_done(&s);
        no_child_is_left();
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/answer", folder);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/program", folder);
    (void)unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_a_better_solution_and_bound),
        cmocka_unit_test(keeps_the_solution_when_the_program_fails),
        cmocka_unit_test(reports_a_program_that_is_missing),
        cmocka_unit_test(keeps_what_came_before_the_program_fails),
        cmocka_unit_test(kills_a_program_that_hangs),
        cmocka_unit_test(ends_when_it_is_cancelled),
        cmocka_unit_test(refuses_a_bound_below_the_objective),
        cmocka_unit_test(is_for_small_problems),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
