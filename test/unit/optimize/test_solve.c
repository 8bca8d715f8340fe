#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "controller/optimize/solve.h"
#include "exporter/base/def.h"
#include "test/bench/placement_instances.h"
#include "test/unit/optimize/small_problem.h"
#include "test/unit/optimize/solution_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

enum { PROBLEMS = 2000, NO_HURRY_MS = 600000 /* for an emulator, too */ };

static void assert_keeps_the_rules(const struct opt_problem *p, const struct solution *s, uint64_t seed)
{
    const char *wrong = solution_check(p, s);

    if (wrong)
        fail_msg("problem %d: %s", (int)seed, wrong);
}

/* Compares with the best of all answers, which must be found and proven. */
static void assert_is_proven(uint64_t seed)
{
    struct small_problem small;
    struct solution s;
    int64_t best;
    bool is_feasible;

    small_problem_make(&small, seed);
    is_feasible = small_problem_best(&small.problem, &best);
    solve(&s, &small.problem, NO_HURRY_MS, NULL);
    assert_keeps_the_rules(&small.problem, &s, seed);
    if (s.is_infeasible == is_feasible || solution_gap(&s) > 0)
        fail_msg("problem %d: not solved: objective %d, bound %d", (int)seed, (int)s.objective, (int)s.bound);
    if (is_feasible && s.objective != best)
        fail_msg("problem %d: %d is not the best, %d", (int)seed, (int)s.objective, (int)best);
    assert_false(s.deadline_reached);
    solution_done(&s);
}

static void finds_and_proves_the_best_of_all_answers(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed++)
        assert_is_proven(seed);
    assert_is_proven(5891); /* slopes that are zero but for rounding */
}

static void gives_the_same_answer_to_the_same_problem(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed += 20) {
        struct small_problem small;
        struct solution a, b;

        small_problem_make(&small, seed);
        solve(&a, &small.problem, NO_HURRY_MS, NULL);
        solve(&b, &small.problem, NO_HURRY_MS, NULL);
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

    (void)state;
    for (uint64_t seed = 0; seed < PROBLEMS; seed += 2) {
        struct small_problem small;
        struct solution s;
        int64_t best;

        small_problem_make(&small, seed);
        if (seed / 2 % 2)
            solve(&s, &small.problem, NO_HURRY_MS, &yes);
        else
            solve(&s, &small.problem, 0, NULL);
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
    static uint32_t replicas[N], first_setting[N + 1];
    static int64_t amounts[N];
    static int16_t scores[N * N];
    static struct problem_pair running[N];
    const struct opt_problem p = {.n_workloads = N,
                                  .n_sites = N,
                                  .n_settings = N,
                                  .n_resources = 1,
                                  .requests = amounts,
                                  .replicas = replicas,
                                  .first_setting = first_setting,
                                  .supplies = amounts,
                                  .scores = scores,
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
    solve(&s, &p, 0, NULL);
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
    const struct opt_problem p = {.n_workloads = WORKLOADS,
                                  .n_sites = SITES,
                                  .n_settings = SITES,
                                  .n_resources = 1,
                                  .requests = requests,
                                  .replicas = replicas,
                                  .first_setting = first_setting,
                                  .supplies = supplies,
                                  .scores = scores,
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
    solve(&s, &p, NO_HURRY_MS, NULL);
    assert_keeps_the_rules(&p, &s, 0);
    print_message("objective %d, bound %d\n", (int)s.objective, (int)s.bound);
    assert_true(s.objective >= s.bound - s.bound / 100);
    solution_done(&s);
}

/* The guide's example: two clusters with three devices, at most one workload on each; the scores of
 * performance, then those of power. */
static void proves_the_guides_example_and_breaks_ties_by_index(void **state)
{
    enum { NONE = SCORE_IMPOSSIBLE };
    static const struct {
        int16_t scores[12];
        int64_t best;
        uint32_t setting;
    } cases[] = {{{10, 15, 60, 55, NONE, NONE, 10, 15, 60, 55, NONE, NONE}, 115, 1},
                 {{80, 90, 30, 55, NONE, NONE, 80, 90, 30, 55, NONE, NONE}, 170, 0}};
    struct opt_problem p = {.n_workloads = 2,
                            .n_sites = 2,
                            .n_settings = 6,
                            .n_resources = 1,
                            .requests = (const int64_t[]){2000, 2000},
                            .replicas = (const uint32_t[]){1, 1},
                            .first_setting = (const uint32_t[]){0, 3, 6},
                            .supplies = (const int64_t[]){3000, 2000, 1000, 3000, 2000, 1000},
                            .max_moves = SIZE_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct solution s;

        p.scores = cases[i].scores;
        solve(&s, &p, NO_HURRY_MS, NULL);
        assert_int_equal(s.objective, cases[i].best);
        assert_int_equal(s.bound, cases[i].best);
        assert_int_equal(s.n_placed, 2);
        assert_int_equal(s.placed[0].site, 0);
        assert_int_equal(s.placed[1].site, 1);
        assert_int_equal(s.setting[0], cases[i].setting);
        assert_int_equal(s.setting[1], 3 + cases[i].setting);
        solution_done(&s);
    }
}

/* Ten times as many combinations as those that all answers of can be tried. */
static void proves_the_best_of_larger_problems(void **state)
{
    static const struct {
        enum instance_kind kind;
        size_t sites, workloads, settings;
        int64_t best; /* HiGHS agrees */
    } cases[] = {{INSTANCE_TIGHT, 4, 20, 2, 1567},
                 {INSTANCE_DEVICES, 6, 40, 3, 3148},
                 {INSTANCE_LOOSE, 8, 60, 1, 3679}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct instance x =
            instance_make(cases[i].kind, cases[i].sites, cases[i].workloads, cases[i].settings, 1);
        struct solution s;

        solve(&s, &x.problem, NO_HURRY_MS, NULL);
        assert_keeps_the_rules(&x.problem, &s, i);
        assert_int_equal(s.objective, cases[i].best);
        assert_int_equal(s.bound, cases[i].best);
        solution_done(&s);
        instance_done(&x);
    }
}

/* As the relaxation alone: what branching may add here is not much. */
static void is_near_the_best_of_tight_problems(void **state)
{
    static const int64_t most_gap[] = {23, 56, 54};

    (void)state;
    for (uint64_t seed = 1; seed <= ARRAY_SIZE(most_gap); seed++) {
        struct instance x = instance_make(INSTANCE_TIGHT, 20, 150, 3, seed);
        struct solution s;

        solve(&s, &x.problem, 20000, NULL);
        assert_keeps_the_rules(&x.problem, &s, seed);
        if (!s.deadline_reached)
            assert_true(s.bound - s.objective <= most_gap[seed - 1]);
        solution_done(&s);
        instance_done(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_and_proves_the_best_of_all_answers),
        cmocka_unit_test(gives_the_same_answer_to_the_same_problem),
        cmocka_unit_test(keeps_the_rules_without_time),
        cmocka_unit_test(leaves_what_runs_without_time),
        cmocka_unit_test(knows_all_of_workloads_that_repeat),
        cmocka_unit_test(proves_the_guides_example_and_breaks_ties_by_index),
        cmocka_unit_test(proves_the_best_of_larger_problems),
        cmocka_unit_test(is_near_the_best_of_tight_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
