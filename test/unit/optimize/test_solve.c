#include "controller/optimize/problem.h"
#include "controller/optimize/solve.h"
#include "test/unit/optimize/small_problem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROBLEMS = 500 };

/* The program of this build, in the folder above the test's; "" if CBC is not there. */
static char cbc[4200];

static int find_cbc(void **state)
{
    char self[4096] = "";

    (void)state;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    *strrchr(self, '/') = '\0';
    (void)snprintf(cbc, sizeof(cbc), "%s/../dynamic-scoring-cbc", self);
    if (access(cbc, X_OK) < 0) {
        print_message("dynamic-scoring-cbc is not built: what the relaxation proves is checked\n");
        cbc[0] = '\0';
    }
    return 0;
}

static void finds_and_proves_the_best_of_all_answers(void **state)
{
    const struct solve_options o = {.deadline_ms = 60000, .cbc = cbc[0] ? cbc : NULL};
    unsigned by_cbc = 0;

    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        struct small_problem small;
        struct solution s;
        const char *wrong;
        int64_t best;
        bool is_feasible;

        small_problem_make(&small, seed);
        is_feasible = small_problem_best(&small.problem, &best);
        assert_int_equal(solve(&s, &small.problem, &o), 0);
        wrong = solution_check(&small.problem, &s);
        if (wrong)
            fail_msg("problem %d: %s", (int)seed, wrong);
        by_cbc += strcmp(s.engine, "CBC") == 0;
        if (cbc[0] && (s.is_infeasible == is_feasible || solution_gap(&s) > 0))
            fail_msg("problem %d: not solved: objective %d, bound %d", (int)seed, (int)s.objective,
                     (int)s.bound);
        if (is_feasible && solution_gap(&s) <= 0 && s.objective != best)
            fail_msg("problem %d: %d is not the best, %d", (int)seed, (int)s.objective, (int)best);
        assert_true(is_feasible || s.is_infeasible);
        solution_done(&s);
    }
    print_message("CBC found or proved %u of %d answers\n", by_cbc, PROBLEMS);
}

static void keeps_the_relaxation_if_the_program_is_not_there(void **state)
{
    const struct solve_options o = {.deadline_ms = 60000, .cbc = "/nonexistent"};

    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS / 10; seed++) {
        struct small_problem small;
        struct solution s;

        small_problem_make(&small, seed);
        assert_int_equal(solve(&s, &small.problem, &o), 0);
        assert_null(solution_check(&small.problem, &s));
        assert_string_equal(s.engine, "relaxation");
        solution_done(&s);
    }
}

static void refuses_a_problem_that_is_not_well_formed(void **state)
{
    struct solution s;

    (void)state;
    assert_int_equal(solve(&s, &(struct problem){0}, &(struct solve_options){0}), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_and_proves_the_best_of_all_answers),
        cmocka_unit_test(keeps_the_relaxation_if_the_program_is_not_there),
        cmocka_unit_test(refuses_a_problem_that_is_not_well_formed),
    };

    return cmocka_run_group_tests(tests, find_cbc, NULL);
}
