#include "controller/optimize/problem.h"
#include "controller/optimize/relax.h"
#include "controller/optimize/solve.h"
#include "test/oom.h"
#include "test/unit/optimize/small_problem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

enum { PROBLEMS = 2000 };

static const struct solve_options no_hurry = {.deadline_ms = 60000};

static void assert_keeps_the_rules(const struct problem *p, const struct solution *s, uint64_t seed)
{
    const char *wrong = solution_check(p, s);

    if (wrong)
        fail_msg("problem %d: %s", (int)seed, wrong);
}

static void keeps_the_rules_and_bounds_the_best_of_all_answers(void **state)
{
    unsigned best_found = 0, proven = 0, feasible = 0;

    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct small_problem small;
        struct solution s;
        int64_t best;
        bool is_feasible;

        small_problem_make(&small, seed);
        is_feasible = small_problem_best(&small.problem, &best);
        assert_int_equal(relax_solve(&s, &small.problem, &no_hurry), 0);
        assert_keeps_the_rules(&small.problem, &s, seed);
        if (is_feasible && s.bound < best)
            fail_msg("problem %d: bound %d below the best, %d", (int)seed, (int)s.bound, (int)best);
        assert_true(is_feasible || s.is_infeasible);
        feasible += is_feasible;
        best_found += is_feasible && !s.is_infeasible && s.objective == best;
        proven += is_feasible && s.bound == best;
        solution_done(&s);
    }
    print_message("%u problems with an answer: best found for %u, proven for %u\n", feasible, best_found,
                  proven);
}

static void gives_the_same_answer_to_the_same_problem(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed += 20) {
        struct small_problem small;
        struct solution a, b;

        small_problem_make(&small, seed);
        assert_int_equal(relax_solve(&a, &small.problem, &no_hurry), 0);
        assert_int_equal(relax_solve(&b, &small.problem, &no_hurry), 0);
        assert_int_equal(a.objective, b.objective);
        assert_int_equal(a.bound, b.bound);
        assert_int_equal(a.n_placed, b.n_placed);
        assert_memory_equal(a.setting, b.setting, small.problem.n_sites * sizeof(*a.setting));
        assert_memory_equal(a.placed, b.placed, a.n_placed * sizeof(*a.placed));
        solution_done(&a);
        solution_done(&b);
    }
}

static void keeps_the_rules_without_time(void **state)
{
    static const atomic_bool yes = true;
    static const struct solve_options hurried[] = {{.deadline_ms = 0},
                                                   {.deadline_ms = 60000, .cancel = &yes}};

    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed += 2) {
        struct small_problem small;
        struct solution s;
        int64_t best;

        small_problem_make(&small, seed);
        assert_int_equal(relax_solve(&s, &small.problem, &hurried[seed / 2 % 2]), 0);
        assert_keeps_the_rules(&small.problem, &s, seed);
        if (small_problem_best(&small.problem, &best))
            assert_true(s.bound >= best);
        assert_true(s.deadline_reached || s.bound <= s.objective);
        solution_done(&s);
    }
}

/* Large enough to begin with prices instead of an answer. */
static void leaves_what_runs_without_time(void **state)
{
    enum { N = 1024 };
    static const struct solve_options none = {.deadline_ms = 0};
    static uint32_t replicas[N], first_setting[N + 1];
    static int64_t amounts[N];
    static int16_t scores[N * N];
    static struct problem_pair running[N];
    const struct problem p = {.n_workloads = N,
                              .n_sites = N,
                              .n_settings = N,
                              .n_resources = 1,
                              .requests = amounts,
                              .replicas = replicas,
                              .first_setting = first_setting,
                              .supplies = amounts,
                              .scores = scores,
                              .unit = 1,
                              .running = running,
                              .n_running = N,
                              .max_moves = SIZE_MAX};
    struct solution s;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        replicas[i] = 1;
        first_setting[i + 1] = i + 1;
        amounts[i] = 1000;
        running[i] = (struct problem_pair){i, i};
        for (uint32_t w = 0; w < N; w++)
            scores[i * N + w] = (int16_t)((i + w) % 100);
    }
    scores[0] = SCORE_IMPOSSIBLE; /* where it may not stay */
    assert_int_equal(relax_solve(&s, &p, &none), 0);
    assert_keeps_the_rules(&p, &s, 0);
    assert_true(s.deadline_reached);
    assert_int_equal(s.n_placed, N - 1);
    assert_int_equal(s.n_moves, 1);
    solution_done(&s);
}

/* Every third workload is of the same application: a sample of every third would know no other. */
static void knows_all_of_workloads_that_repeat(void **state)
{
    enum { SITES = 512, WORKLOADS = 4096, APPS = 3 };
    static uint32_t replicas[WORKLOADS], first_setting[SITES + 1];
    static int64_t requests[WORKLOADS], supplies[SITES];
    static int16_t scores[SITES * WORKLOADS];
    const struct problem p = {.n_workloads = WORKLOADS,
                              .n_sites = SITES,
                              .n_settings = SITES,
                              .n_resources = 1,
                              .requests = requests,
                              .replicas = replicas,
                              .first_setting = first_setting,
                              .supplies = supplies,
                              .scores = scores,
                              .unit = 1,
                              .max_moves = SIZE_MAX};
    struct solution s;

    (void)state;
    for (size_t w = 0; w < WORKLOADS; w++) {
        replicas[w] = 1;
        requests[w] = 1000 * (int64_t)(1 + w * 7 % 8);
    }
    for (size_t i = 0; i < SITES; i++) {
        first_setting[i + 1] = (uint32_t)i + 1;
        supplies[i] = 45000;
        for (size_t w = 0; w < WORKLOADS; w++)
            scores[i * WORKLOADS + w] = (int16_t)(i * 31 % 61 + (i * 17 + w % APPS * 29) * 13 % 41);
    }
    assert_int_equal(relax_solve(&s, &p, &no_hurry), 0);
    assert_keeps_the_rules(&p, &s, 0);
    print_message("objective %d, bound %d\n", (int)s.objective, (int)s.bound);
    assert_true(s.objective >= s.bound - s.bound / 100);
    solution_done(&s);
}

/* The guide's example: two clusters with three devices, of which 3g.48gb can hold one of each. */
static void breaks_ties_by_index(void **state)
{
    static const int16_t scores[] = {SCORE_IMPOSSIBLE, SCORE_IMPOSSIBLE, 60, 55, 40, 35,
                                     SCORE_IMPOSSIBLE, SCORE_IMPOSSIBLE, 60, 55, 40, 35};
    const struct problem p = {.n_workloads = 2,
                              .n_sites = 2,
                              .n_settings = 6,
                              .n_resources = 1,
                              .requests = (const int64_t[]){2000, 2000},
                              .replicas = (const uint32_t[]){1, 1},
                              .first_setting = (const uint32_t[]){0, 3, 6},
                              .supplies = (const int64_t[]){1000, 2000, 3000, 1000, 2000, 3000},
                              .scores = scores,
                              .unit = 1,
                              .max_moves = SIZE_MAX};
    struct solution s;

    (void)state;
    assert_int_equal(relax_solve(&s, &p, &no_hurry), 0);
    assert_int_equal(s.objective, 115);
    assert_int_equal(s.bound, 115);
    assert_int_equal(s.n_placed, 2);
    assert_int_equal(s.placed[0].site, 0);
    assert_int_equal(s.placed[1].site, 1);
    assert_int_equal(s.setting[0], 1);
    assert_int_equal(s.setting[1], 4);
    solution_done(&s);
}

static void refuses_a_problem_that_is_not_well_formed(void **state)
{
    struct solution s;

    (void)state;
    assert_int_equal(relax_solve(&s, &(struct problem){0}, &no_hurry), -EINVAL);
}

static void survives_each_failed_allocation(void **state)
{
    struct small_problem small;

    (void)state;
    small_problem_make(&small, 1); /* with more than one of everything */
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct solution s;
        int r = relax_solve(&s, &small.problem, &no_hurry);

        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        if (r == 0)
            solution_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_rules_and_bounds_the_best_of_all_answers),
        cmocka_unit_test(gives_the_same_answer_to_the_same_problem),
        cmocka_unit_test(keeps_the_rules_without_time),
        cmocka_unit_test(leaves_what_runs_without_time),
        cmocka_unit_test(knows_all_of_workloads_that_repeat),
        cmocka_unit_test(breaks_ties_by_index),
        cmocka_unit_test(refuses_a_problem_that_is_not_well_formed),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
