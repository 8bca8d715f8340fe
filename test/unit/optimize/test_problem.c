#include "controller/optimize/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { WORKLOADS = 2, SITES = 2, SETTINGS = 3 };

struct parts {
    int64_t requests[WORKLOADS], supplies[SETTINGS];
    uint32_t replicas[WORKLOADS], first_setting[SITES + 1], workloads[2], sites[2];
    int16_t scores[WORKLOADS * SETTINGS];
    struct problem_pair running[2];
    struct problem_limit limit;
};

/* A problem that is well-formed. */
static struct problem problem_of(struct parts *s)
{
    *s = (struct parts){
        .requests = {1000, 0},
        .supplies = {2000, 0, 500},
        .replicas = {1, 2},
        .first_setting = {0, 2, 3},
        .workloads = {0, 1},
        .sites = {0, 1},
        .running = {{0, 1}, {1, 0}},
        .limit = {.max = 0, .n_workloads = 2, .n_sites = 2},
    };
    s->limit.workloads = s->workloads;
    s->limit.sites = s->sites;
    return (struct problem){
        .n_workloads = WORKLOADS,
        .n_sites = SITES,
        .n_settings = SETTINGS,
        .n_resources = 1,
        .requests = s->requests,
        .replicas = s->replicas,
        .first_setting = s->first_setting,
        .supplies = s->supplies,
        .scores = s->scores,
        .unit = 1,
        .running = s->running,
        .n_running = 2,
        .move_cost = 0,
        .max_moves = SIZE_MAX,
        .limits = &s->limit,
        .n_limits = 1,
    };
}

static void accepts_a_problem_that_is_well_formed(void **state)
{
    struct parts s;
    struct problem p = problem_of(&s);

    (void)state;
    assert_null(problem_check(&p));
    p = (struct problem){.n_resources = 1};
    assert_null(problem_check(&p));
}

#define REFUSES(change, wrong)                         \
    do {                                               \
        struct parts s;                                \
        struct problem p = problem_of(&s);             \
                                                       \
        change;                                        \
        assert_non_null(problem_check(&p));            \
        assert_string_equal(problem_check(&p), wrong); \
    } while (0)

static void refuses_each_fault_of_a_problem(void **state)
{
    (void)state;
    REFUSES(p.n_resources = 0, "no resource");
    REFUSES(p.n_workloads = UINT32_MAX, "too many workloads, sites or settings");
    REFUSES(p.n_sites = UINT32_MAX, "too many workloads, sites or settings");
    REFUSES(p.n_settings = UINT32_MAX, "too many workloads, sites or settings");
    REFUSES(s.first_setting[0] = 1, "the sites' settings are not all settings");
    REFUSES(s.first_setting[2] = 2, "the sites' settings are not all settings");
    REFUSES(s.first_setting[1] = 4, "the sites' settings do not ascend");
    REFUSES(s.replicas[1] = 0, "a workload without replicas");
    REFUSES(s.requests[1] = -1, "a negative request");
    REFUSES(s.supplies[2] = -1, "a negative supply");
    REFUSES(p.move_cost = -1, "a cost of moves that is out of range");
    REFUSES(p.move_cost = (int64_t)MOVE_COST_MAX + 1, "a cost of moves that is out of range");
    REFUSES(s.running[1].workload = 2, "a running replica that is out of range");
    REFUSES(s.running[0].site = 2, "a running replica that is out of range");
    REFUSES(s.running[1].workload = 0, "running replicas do not ascend");
    REFUSES((s.running[1].workload = 0, s.running[1].site = 1), "running replicas do not ascend");
    REFUSES(s.workloads[1] = 0, "a limit whose lists do not ascend");
    REFUSES(s.sites[1] = 2, "a limit whose lists do not ascend");
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
    s = (struct solution){.is_infeasible = true, .bound = INT64_MIN};
    assert_float_equal(solution_gap(&s), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_a_problem_that_is_well_formed),
        cmocka_unit_test(refuses_each_fault_of_a_problem),
        cmocka_unit_test(computes_the_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
