#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/buf.h"

#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t REQUESTS[] = {1000, 2000};
static const uint32_t REPLICAS[] = {1, 2}, FIRST_SETTING[] = {0, 2, 3};
static const int64_t SUPPLIES[] = {1000, 2000, 3000};
static const int16_t SCORES[] = {5, SCORE_IMPOSSIBLE, -3, 7, SCORE_IMPOSSIBLE, 9};
static const struct problem_pair RUNNING[] = {{0, 1}, {1, 0}};
static const uint32_t BOTH[] = {0, 1}, LAST[] = {1};
static const struct problem_limit LIMITS[] = {{BOTH, LAST, 2, 1, 1}, {LAST, BOTH, 1, 2, 3}};
static const struct wire_choice START[] = {{0, 1}, {1, 2}};

static const struct wire_problem PROBLEM = {
    .p = {.n_workloads = 2,
          .n_sites = 2,
          .n_settings = 3,
          .n_resources = 1,
          .requests = REQUESTS,
          .replicas = REPLICAS,
          .first_setting = FIRST_SETTING,
          .supplies = SUPPLIES,
          .scores = SCORES,
          .unit = 1,
          .running = RUNNING,
          .n_running = 2,
          .move_cost = 4,
          .max_moves = 1,
          .limits = LIMITS,
          .n_limits = 2},
    .start = START,
    .n_start = 2,
    .has_start = true,
    .bound = 20,
    .limit_ms = 5000,
};

static void keeps_every_part_of_a_problem(void **state)
{
    BUF_AUTO(out, 1 << 16);
    struct wire_problem w;

    (void)state;
    assert_int_equal(wire_put_problem(&out, &PROBLEM), 0);
    assert_int_equal(wire_get_problem(&w, out.p, out.n), 0);
    assert_memory_equal(w.p.requests, REQUESTS, sizeof REQUESTS);
    assert_memory_equal(w.p.supplies, SUPPLIES, sizeof SUPPLIES);
    assert_memory_equal(w.p.replicas, REPLICAS, sizeof REPLICAS);
    assert_memory_equal(w.p.first_setting, FIRST_SETTING, sizeof FIRST_SETTING);
    assert_memory_equal(w.p.scores, SCORES, sizeof SCORES);
    assert_memory_equal(w.p.running, RUNNING, sizeof RUNNING);
    assert_memory_equal(w.start, START, sizeof START);
    assert_int_equal(w.p.n_limits, 2);
    assert_int_equal(w.p.limits[1].max, 3);
    assert_int_equal(w.p.limits[1].n_workloads, 1);
    assert_memory_equal(w.p.limits[1].sites, BOTH, sizeof BOTH);
    assert_int_equal(w.p.move_cost, 4);
    assert_int_equal(w.p.max_moves, 1);
    assert_int_equal(w.bound, 20);
    assert_int_equal(w.limit_ms, 5000);
    assert_true(w.has_start);
    wire_problem_done(&w);
}

static void refuses_every_shorter_or_longer_problem(void **state)
{
    BUF_AUTO(out, 1 << 16);
    struct wire_problem w;

    (void)state;
    assert_int_equal(wire_put_problem(&out, &PROBLEM), 0);
    for (size_t n = 0; n < out.n; n++)
        assert_int_equal(wire_get_problem(&w, out.p, n), -EBADMSG);
    assert_int_equal(buf_putc(&out, 0), 0);
    assert_int_equal(wire_get_problem(&w, out.p, out.n), -EBADMSG);
}

/* Each 32-bit word in turn is set to a large number: refused, unless it is an amount, a score or a bound. */
static void refuses_indices_and_sizes_that_are_out_of_range(void **state)
{
    BUF_AUTO(out, 1 << 16);
    struct wire_problem w;
    size_t refused = 0, n;

    (void)state;
    assert_int_equal(wire_put_problem(&out, &PROBLEM), 0);
    n = out.n / sizeof(uint32_t);
    for (size_t i = 0; i < n; i++) {
        uint32_t was, large = 0x7fffffff;

        memcpy(&was, out.p + i * sizeof was, sizeof was);
        memcpy(out.p + i * sizeof was, &large, sizeof large);
        if (wire_get_problem(&w, out.p, out.n) == 0) {
            assert_null(problem_check(&w.p));
            wire_problem_done(&w);
        } else {
            refused++;
        }
        memcpy(out.p + i * sizeof was, &was, sizeof was);
    }
    assert_in_range(refused, n / 2, n);
}

static void refuses_a_start_that_is_impossible(void **state)
{
    static const struct wire_choice impossible[] = {{1, 0}}, descending[] = {{1, 2}, {0, 1}};
    struct wire_problem from = PROBLEM, w;
    BUF_AUTO(out, 1 << 16);

    (void)state;
    from.start = impossible;
    from.n_start = 1;
    assert_int_equal(wire_put_problem(&out, &from), 0);
    assert_int_equal(wire_get_problem(&w, out.p, out.n), -EBADMSG);
    buf_truncate(&out, 0);
    from.start = descending;
    from.n_start = 2;
    assert_int_equal(wire_put_problem(&out, &from), 0);
    assert_int_equal(wire_get_problem(&w, out.p, out.n), -EBADMSG);
}

static void reads_messages_once_they_are_whole(void **state)
{
    BUF_AUTO(out, 1 << 16);
    struct wire_message sent = {WIRE_SOLUTION, 2, 14, START}, m;

    (void)state;
    assert_int_equal(wire_put_message(&out, &sent), 0);
    for (size_t n = 0; n < out.n; n++)
        assert_int_equal(wire_get_message(&m, &PROBLEM.p, out.p, n), 0);
    assert_int_equal(wire_get_message(&m, &PROBLEM.p, out.p, out.n), out.n);
    assert_int_equal(m.value, 14);
    assert_memory_equal(m.choices, START, sizeof START);
}

static void refuses_messages_that_are_wrong(void **state)
{
    static const struct wire_choice no_workload[] = {{2, 0}}, no_setting[] = {{0, 3}},
                                    twice[] = {{0, 1}, {0, 1}};
    static const struct wire_message wrong[] = {
        {0, 0, 0, NULL},
        {WIRE_END + 1, 0, 0, NULL},
        {WIRE_BOUND, 2, 1, START},
        {WIRE_SOLUTION, 1, 1, no_workload},
        {WIRE_SOLUTION, 1, 1, no_setting},
        {WIRE_SOLUTION, 2, 1, twice},
    };
    uint32_t many[4] = {WIRE_SOLUTION, UINT32_MAX, 0, 0};
    struct wire_message m;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        BUF_AUTO(out, 1 << 16);

        assert_int_equal(wire_put_message(&out, &wrong[i]), 0);
        assert_int_equal(wire_get_message(&m, &PROBLEM.p, out.p, out.n), -EBADMSG);
    }
    assert_int_equal(wire_get_message(&m, &PROBLEM.p, many, sizeof many), -EBADMSG);
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(out, 1 << 16);
        struct wire_problem w;
        int r = wire_put_problem(&out, &PROBLEM);

        if (r == 0)
            r = wire_get_problem(&w, out.p, out.n);
        if (r == 0)
            wire_problem_done(&w);
        else
            assert_int_equal(r, -ENOMEM);
        assert_true(r == 0 || oom_happened());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_part_of_a_problem),
        cmocka_unit_test(refuses_every_shorter_or_longer_problem),
        cmocka_unit_test(refuses_indices_and_sizes_that_are_out_of_range),
        cmocka_unit_test(refuses_a_start_that_is_impossible),
        cmocka_unit_test(reads_messages_once_they_are_whole),
        cmocka_unit_test(refuses_messages_that_are_wrong),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
