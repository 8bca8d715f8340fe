#include "controller/optimize/problem.h"
#include "test/unit/optimize/solution_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Three workloads; site 0 with settings 0 and 1, site 1 with setting 2; two resources. */
static const int16_t scores[] = {5, 3, 1, 9, 9, SCORE_IMPOSSIBLE, 4, 6, -2};
static const struct problem_limit limit = {(const uint32_t[]){0, 2}, (const uint32_t[]){1}, 2, 1, 1};
static const struct problem problem = {
    .n_workloads = 3,
    .n_sites = 2,
    .n_settings = 3,
    .n_resources = 2,
    .requests = (const int64_t[]){1000, 1, 1000, 1, 500, 1},
    .replicas = (const uint32_t[]){1, 2, 1},
    .first_setting = (const uint32_t[]){0, 2, 3},
    .supplies = (const int64_t[]){2000, 2, 1000, 9, 2500, 2},
    .scores = scores,
    .unit = 1,
    .running = (const struct problem_pair[]){{0, 0}, {0, 1}, {2, 0}},
    .n_running = 3,
    .move_cost = 2,
    .max_moves = 2,
    .limits = &limit,
    .n_limits = 1,
};

struct parts {
    uint32_t setting[2];
    struct problem_pair placed[4];
};

/* Workload 0 on site 0, 1 on both: 5 + 3 + 6, less two moves. */
static struct solution solution_of(struct parts *s)
{
    *s = (struct parts){.setting = {0, 2}, .placed = {{0, 0}, {1, 0}, {1, 1}}};
    return (struct solution){.setting = s->setting,
                             .placed = s->placed,
                             .n_placed = 3,
                             .n_moves = 2,
                             .objective = 10,
                             .bound = 10};
}

static void accepts_a_solution_that_keeps_the_rules(void **state)
{
    struct parts s;
    struct solution x = solution_of(&s);

    (void)state;
    assert_null(solution_check(&problem, &x));
}

#define REFUSES(change, wrong)                              \
    do {                                                    \
        struct parts s;                                     \
        struct problem p = problem;                         \
        struct solution x = solution_of(&s);                \
                                                            \
        change;                                             \
        assert_non_null(solution_check(&p, &x));            \
        assert_string_equal(solution_check(&p, &x), wrong); \
    } while (0)

static void refuses_settings_and_pairs_against_the_rules(void **state)
{
    (void)state;
    REFUSES(s.setting[0] = 2, "a site has a setting of another site");
    REFUSES(s.setting[1] = 1, "a site has a setting of another site");
    REFUSES(s.placed[2].workload = 3, "a replica is placed out of range");
    REFUSES(s.placed[2].site = 2, "a replica is placed out of range");
    REFUSES(s.placed[0].workload = 2, "the placed replicas do not ascend");
    REFUSES(s.placed[2].site = 0, "two replicas of a workload are on one site");
    REFUSES((s.placed[1] = (struct problem_pair){0, 1}), "more replicas are placed than the workload has");
    REFUSES(s.setting[1] = NO_SETTING, "a replica is on a site without a setting");
    REFUSES((s.setting[0] = 1, s.placed[0] = (struct problem_pair){2, 0}, x.n_placed = 1),
            "a replica is where it can never go");
}

static void refuses_amounts_and_limits_against_the_rules(void **state)
{
    static const int64_t supplies[] = {1999, 2, 1000, 9, 2500, 2}, second[] = {2000, 1, 1000, 9, 2500, 2};
    static const uint32_t both[] = {0, 1};
    static const struct problem_limit of_all = {both, both, 2, 2, 2};

    (void)state;
    REFUSES(p.supplies = supplies, "a site has not as much as its workloads request");
    REFUSES(p.supplies = second, "a site has not as much as its workloads request");
    REFUSES(x.n_placed = 2, "a site without a workload has a setting");
    REFUSES((s.placed[0].site = 1, s.placed[3] = (struct problem_pair){2, 1}, x.n_placed = 4),
            "a site has not as much as its workloads request");
    REFUSES(p.limits = &of_all, "a limit is exceeded");
}

static void refuses_wrong_figures(void **state)
{
    (void)state;
    REFUSES(x.n_moves = 1, "the number of moves is wrong");
    REFUSES(p.max_moves = 1, "there are more moves than allowed");
    REFUSES(x.objective = 11, "the objective is wrong");
    REFUSES(x.bound = 9, "the bound is below the objective");
}

static void accepts_an_infeasible_solution_only_if_it_is_empty(void **state)
{
    (void)state;
    REFUSES((x = (struct solution){.setting = s.setting, .is_infeasible = true}),
            "an infeasible solution has a setting");
    REFUSES((s.setting[0] = s.setting[1] = NO_SETTING, x.is_infeasible = true),
            "an infeasible solution is not empty");
    REFUSES((s.setting[0] = s.setting[1] = NO_SETTING, p.max_moves = 3,
             x = (struct solution){.setting = s.setting, .is_infeasible = true}),
            "a problem that any answer solves is called infeasible");
}

static void computes_the_gap(void **state)
{
    struct solution s = {.objective = 50, .bound = 51};

    (void)state;
    assert_float_equal(solution_gap(&s), 0.02, 1e-12);
    s.bound = 50;
    assert_float_equal(solution_gap(&s), 0, 0);
    s = (struct solution){.objective = -4, .bound = 0};
    assert_float_equal(solution_gap(&s), 1, 1e-12);
    s = (struct solution){.objective = 0, .bound = 3};
    assert_float_equal(solution_gap(&s), 3, 1e-12);
    s = (struct solution){.is_infeasible = true, .bound = INT64_MIN};
    assert_float_equal(solution_gap(&s), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_a_solution_that_keeps_the_rules),
        cmocka_unit_test(refuses_settings_and_pairs_against_the_rules),
        cmocka_unit_test(refuses_amounts_and_limits_against_the_rules),
        cmocka_unit_test(refuses_wrong_figures),
        cmocka_unit_test(accepts_an_infeasible_solution_only_if_it_is_empty),
        cmocka_unit_test(computes_the_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
