/* Small problems with every option, against trying all solutions: prices, branches, patterns, repair and
 * combinations, and the program dynamic-scoring-cbc that puts them together. */
#include "controller/optimize/cbc/mip.h"
#include "controller/optimize/cbc/price.h"
#include "controller/optimize/problem.h"

#include "controller/optimize/cbc/branch.h"
#include "controller/optimize/cbc/dive.h"
#include "controller/optimize/cbc/model.h"
#include "controller/optimize/cbc/pattern.h"
#include "controller/optimize/cbc/repair.h"
#include "controller/optimize/exact.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WORKLOADS = 4, SITES = 3, SETTINGS = 6, RESOURCES = 2, PROBLEMS = 60 };

struct sample {
    struct problem p;
    int64_t requests[WORKLOADS * RESOURCES], supplies[SETTINGS * RESOURCES];
    uint32_t replicas[WORKLOADS], first_setting[SITES + 1], all_workloads[WORKLOADS], two_sites[2];
    int16_t scores[SETTINGS * WORKLOADS];
    struct problem_pair running[WORKLOADS];
    struct problem_limit limit;
    uint64_t seed;
    /* By trying all: */
    bool is_feasible;
    int64_t best;
    struct wire_choice choices[SITES * WORKLOADS];
    size_t n_choices;
};

static uint32_t random_below(struct sample *s, uint32_t n)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->seed >> 33) % n;
}

static void add_options(struct sample *s)
{
    struct problem *p = &s->p;

    if (random_below(s, 2)) {
        for (uint32_t w = 0; w < WORKLOADS; w++) {
            if (random_below(s, 2))
                s->running[p->n_running++] = (struct problem_pair){w, random_below(s, SITES)};
        }
        p->move_cost = random_below(s, 6);
        if (random_below(s, 2))
            p->max_moves = random_below(s, 2);
    }
    if (random_below(s, 2)) {
        s->limit =
            (struct problem_limit){s->all_workloads, s->two_sites, WORKLOADS, 2, 1 + random_below(s, 2)};
        p->limits = &s->limit;
        p->n_limits = 1;
    }
}

static void sample_make(struct sample *s, uint64_t seed)
{
    *s = (struct sample){.seed = seed * 77 + 1};
    s->p = (struct problem){.n_workloads = WORKLOADS,
                            .n_sites = SITES,
                            .n_settings = SETTINGS,
                            .n_resources = 1 + random_below(s, RESOURCES),
                            .requests = s->requests,
                            .replicas = s->replicas,
                            .first_setting = s->first_setting,
                            .supplies = s->supplies,
                            .scores = s->scores,
                            .unit = 1,
                            .running = s->running,
                            .max_moves = SIZE_MAX};
    for (uint32_t w = 0; w < WORKLOADS; w++) {
        s->all_workloads[w] = w;
        s->replicas[w] = 1 + random_below(s, 2);
    }
    for (size_t i = 0; i < ARRAY_SIZE(s->requests); i++)
        s->requests[i] = random_below(s, 4) * 500;
    for (size_t i = 0; i < ARRAY_SIZE(s->supplies); i++)
        s->supplies[i] = random_below(s, 7) * 500;
    for (size_t i = 0; i < ARRAY_SIZE(s->scores); i++)
        s->scores[i] = random_below(s, 6) ? (int16_t)((int)random_below(s, 40) - 5) : SCORE_IMPOSSIBLE;
    /* Sites of 1 to 4 settings. */
    s->first_setting[1] = 1 + random_below(s, 4);
    s->first_setting[2] = s->first_setting[1] + random_below(s, 2);
    s->first_setting[3] = SETTINGS;
    s->two_sites[1] = 2;
    add_options(s);
}

/* Whether the solution counts, and what it gains. */
static bool evaluate(const struct sample *s, const uint32_t *setting, const uint32_t *sets, int64_t *ret)
{
    struct problem_pair placed[SITES * WORKLOADS];
    uint32_t in_force[SITES];
    struct solution x = {.setting = in_force, .placed = placed, .bound = INT64_MAX};
    size_t stay = 0;

    memcpy(in_force, setting, sizeof in_force);
    for (uint32_t w = 0; w < WORKLOADS; w++) {
        for (uint32_t i = 0; i < SITES; i++) {
            if (!(sets[i] >> w & 1))
                continue;
            if (problem_score(&s->p, setting[i], w) == SCORE_IMPOSSIBLE)
                return false;
            x.objective += problem_score(&s->p, setting[i], w);
            placed[x.n_placed++] = (struct problem_pair){w, i};
            for (size_t k = 0; k < s->p.n_running; k++)
                stay += s->running[k].workload == w && s->running[k].site == i;
        }
    }
    x.n_moves = s->p.n_running - stay;
    x.objective -= s->p.move_cost * (int64_t)x.n_moves;
    *ret = x.objective;
    return !solution_check(&s->p, &x);
}

static bool set_fits(const struct sample *s, uint32_t setting, uint32_t set)
{
    for (size_t k = 0; k < s->p.n_resources; k++) {
        int64_t left = problem_supply(&s->p, setting)[k];

        for (uint32_t w = 0; w < WORKLOADS; w++)
            left -= set >> w & 1 ? problem_request(&s->p, w)[k] : 0;
        if (left < 0)
            return false;
    }
    return true;
}

static void keep_if_best(struct sample *s, const uint32_t *setting, const uint32_t *sets)
{
    int64_t gained;

    if (!evaluate(s, setting, sets, &gained) || (s->is_feasible && gained <= s->best))
        return;
    s->is_feasible = true;
    s->best = gained;
    s->n_choices = 0;
    for (uint32_t w = 0; w < WORKLOADS; w++) {
        for (uint32_t i = 0; i < SITES; i++) {
            if (sets[i] >> w & 1)
                s->choices[s->n_choices++] = (struct wire_choice){w, setting[i]};
        }
    }
}

static void try_all(struct sample *s, uint32_t site, uint32_t *setting, uint32_t *sets)
{
    if (site == SITES) {
        keep_if_best(s, setting, sets);
        return;
    }
    setting[site] = NO_SETTING;
    sets[site] = 0;
    try_all(s, site + 1, setting, sets);
    for (uint32_t i = s->first_setting[site]; i < s->first_setting[site + 1]; i++) {
        for (uint32_t set = 1; set < 1u << WORKLOADS; set++) {
            setting[site] = i;
            sets[site] = set;
            if (set_fits(s, i, set))
                try_all(s, site + 1, setting, sets);
        }
    }
}

static struct sample *samples(void)
{
    static struct sample all[PROBLEMS];

    for (size_t i = 0; i < PROBLEMS && !all[PROBLEMS - 1].p.n_sites; i++) {
        uint32_t setting[SITES], sets[SITES];

        sample_make(&all[i], i);
        assert_null(problem_check(&all[i].p));
        try_all(&all[i], 0, setting, sets);
    }
    return all;
}

static int do_not_look(void *arg, int64_t *objective)
{
    (void)arg;
    (void)objective;
    return 0;
}

static mono_ms in_a_minute(void)
{
    return mono_add(clock_system.mono(&clock_system), 60000);
}

static bool item_is_left(const struct price *x, struct wire_choice c)
{
    for (size_t i = 0; i < x->settings[c.setting].n_items; i++) {
        if (x->settings[c.setting].items[i].workload == c.workload)
            return true;
    }
    return false;
}

static void bounds_every_solution_and_drops_none_that_is_wanted(void **state)
{
    size_t n_dropped = 0;

    (void)state;
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        int64_t objective = s->best - 1;

        if (!s->is_feasible)
            continue;
        assert_int_equal(price_new(&x, &s->p), 0);
        for (int steps = 1; steps <= 100; steps *= 10) {
            assert_int_equal(price_lower(x, &objective, steps, in_a_minute(), do_not_look, NULL), 0);
            assert_true(price_bound(x) >= s->best);
            n_dropped += SETTINGS * WORKLOADS - price_drop(x, s->best);
            for (size_t i = 0; i < s->n_choices; i++)
                assert_true(item_is_left(x, s->choices[i]));
        }
    }
    assert_true(n_dropped > PROBLEMS);
}

static bool has_pattern(const struct patterns *x, uint32_t setting, const struct sample *s)
{
    for (size_t i = 0; i < x->n; i++) {
        size_t at = i > 0 ? x->end[i - 1] : 0;
        bool same = x->setting[i] == setting;

        for (size_t k = 0; k < s->n_choices && same; k++) {
            if (s->choices[k].setting != setting)
                continue;
            same = at < x->end[i] && x->workloads[at] == s->choices[k].workload;
            at++;
        }
        if (same && at == x->end[i])
            return true;
    }
    return false;
}

static void lists_the_patterns_of_the_best_solution(void **state)
{
    (void)state;
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        CLEANUP(cleanup_patterns_free) struct patterns *all = NULL, *few = NULL;
        int64_t objective = s->best;
        struct mip mip;

        if (!s->is_feasible)
            continue;
        assert_int_equal(price_new(&x, &s->p), 0);
        assert_int_equal(price_lower(x, &objective, 100, in_a_minute(), do_not_look, NULL), 0);
        assert_int_equal(patterns_new(&all, x, s->best, 1000), 0);
        for (size_t i = 0; i < s->n_choices; i++)
            assert_true(has_pattern(all, s->choices[i].setting, s));
        if (all->n > 0)
            assert_int_equal(patterns_new(&few, x, s->best, all->n - 1), -EFBIG);
        assert_int_equal(patterns_mip(&mip, all), 0);
        assert_int_equal(mip.n_cols, all->n);
        mip_done(&mip);
    }
}

static void repairs_to_solutions_that_count(void **state)
{
    size_t n = 0;

    (void)state;
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        struct wire_choice choices[SITES * WORKLOADS];
        uint32_t n_choices, setting[SITES] = {NO_SETTING, NO_SETTING, NO_SETTING}, sets[SITES] = {0};
        int64_t objective = s->best - 1, gained;

        assert_int_equal(price_new(&x, &s->p), 0);
        assert_int_equal(price_lower(x, &objective, 10, in_a_minute(), do_not_look, NULL), 0);
        if (!repair_is_for(x))
            continue;
        if (s->seed % 2 == 0)
            assert_int_equal(dive(x, INT32_MIN, (uint32_t)n, in_a_minute()), 0);
        assert_int_equal(repair(x, choices, &n_choices), 0);
        for (uint32_t i = 0; i < n_choices; i++) {
            setting[x->settings[choices[i].setting].site] = choices[i].setting;
            sets[x->settings[choices[i].setting].site] |= 1u << choices[i].workload;
        }
        assert_true(evaluate(s, setting, sets, &gained));
        assert_true(gained <= s->best);
        n++;
    }
    assert_in_range(n, 5, PROBLEMS);
}

struct branching {
    const struct sample *s;
    const struct price *x;
    int64_t bound; /* of all branches, the last one told */
    unsigned n_leaves;
};

/* Finds the best solution in the branch that has it, at the second try. */
static int solve_leaf(void *arg, int64_t *objective, int64_t *bound, uint32_t n_tries)
{
    struct branching *b = arg;
    bool is_open = true;

    b->n_leaves++;
    if (n_tries == 0)
        return 0;
    for (size_t i = 0; i < b->s->n_choices; i++)
        is_open = is_open && !b->x->settings[b->s->choices[i].setting].is_closed;
    if (is_open)
        *objective = b->s->best;
    *bound = *objective;
    return 0;
}

static int take_bound(void *arg, int64_t bound)
{
    struct branching *b = arg;

    assert_true(bound <= b->bound);
    assert_true(bound >= b->s->best);
    b->bound = bound;
    return 0;
}

static void has_the_best_solution_in_a_branch(void **state)
{
    unsigned n_leaves = 0;

    (void)state;
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        struct branching b = {.s = s, .bound = INT64_MAX};
        const struct branch_hooks hooks = {do_not_look, solve_leaf, take_bound, &b};
        int64_t objective = s->best - 2;
        double before;

        if (!s->is_feasible)
            continue;
        assert_int_equal(price_new(&x, &s->p), 0);
        assert_int_equal(price_lower(x, &objective, 3, in_a_minute(), do_not_look, NULL), 0);
        b.x = x;
        before = x->bound;
        assert_int_equal(branch(x, &objective, in_a_minute(), &hooks), 0);
        assert_int_equal(objective, s->best);
        assert_int_equal(b.bound, s->best);
        assert_true(x->bound == before);
        n_leaves += b.n_leaves;
    }
    assert_true(n_leaves > PROBLEMS);
}

/* Each column that is 1 in the best solution, against the rows. */
static void writes_rows_that_the_best_solution_keeps(void **state)
{
    (void)state;
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        CLEANUP(cleanup_model_free) struct model *m = NULL;
        struct wire_choice choices[SETTINGS * WORKLOADS];
        double solution[SETTINGS * (WORKLOADS + 1)] = {0}, row[200] = {0}, cost = 0;

        if (!s->is_feasible)
            continue;
        assert_int_equal(price_new(&x, &s->p), 0);
        assert_int_equal(model_new(&m, x), 0);
        for (size_t i = 0; i < s->n_choices; i++) {
            struct wire_choice c = s->choices[i];

            for (size_t k = 0; k < x->settings[c.setting].n_items; k++) {
                if (x->settings[c.setting].items[k].workload == c.workload)
                    solution[m->first_z[c.setting] + (int)k] = 1;
            }
            if (m->y[c.setting] >= 0)
                solution[m->y[c.setting]] = 1;
        }
        for (int c = 0; c < m->mip.n_cols; c++) {
            cost += solution[c] * m->mip.cost[c];
            for (int k = m->mip.start[c]; k < m->mip.start[c + 1]; k++)
                row[m->mip.row[k]] += solution[c] * m->mip.value[k];
        }
        for (int i = 0; i < m->mip.n_rows; i++)
            assert_true(row[i] >= m->mip.row_lower[i] && row[i] <= m->mip.row_upper[i]);
        assert_int_equal(x->constant - (int64_t)cost, s->best);
        assert_int_equal(model_choices(m, solution, choices), s->n_choices);
    }
}

/* The program is in the folder above that of this test. */
static char *program(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

    assert_true(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    strcpy(strrchr(path, '/'), "/dynamic-scoring-cbc");
    return path;
}

static void solves_as_trying_all_does(void **state)
{
    struct solve_options o = {.deadline_ms = 60000, .cbc = program()};

    (void)state;
    if (access(o.cbc, X_OK) < 0) {
        print_message("dynamic-scoring-cbc is not built: coinor-libcbc-dev is missing\n");
        assert_null(getenv("CI"));
        skip();
    }
    for (struct sample *s = samples(), *end = s + PROBLEMS; s < end; s++) {
        struct solution x = {.bound = INT32_MAX, .is_infeasible = true, .engine = "relaxation"};

        x.setting = malloc(SITES * sizeof *x.setting);
        assert_non_null(x.setting);
        for (size_t i = 0; i < SITES; i++)
            x.setting[i] = NO_SETTING;
        assert_int_equal(exact_solve(&x, &s->p, &o), 0);
        assert_int_equal(x.is_infeasible, !s->is_feasible);
        assert_false(x.deadline_reached);
        if (s->is_feasible) {
            assert_int_equal(x.objective, s->best);
            assert_int_equal(x.bound, s->best);
            assert_null(solution_check(&s->p, &x));
        } else {
            assert_true(x.bound == INT64_MIN);
        }
        solution_done(&x);
    }
}

static void survives_each_failed_allocation(void **state)
{
    struct sample *s = samples();

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        CLEANUP(cleanup_price_free) struct price *x = NULL;
        CLEANUP(cleanup_patterns_free) struct patterns *all = NULL;
        CLEANUP(cleanup_model_free) struct model *m = NULL;
        struct wire_choice choices[SITES * WORKLOADS];
        struct branching b = {.s = s, .bound = INT64_MAX};
        const struct branch_hooks hooks = {do_not_look, solve_leaf, take_bound, &b};
        int64_t objective = s->best - 1, below = s->best - 2;
        struct mip mip = {0};
        uint32_t n_choices;
        int r = price_new(&x, &s->p);

        b.x = x;

        if (r == 0)
            r = price_lower(x, &objective, 10, in_a_minute(), do_not_look, NULL);
        if (r == 0)
            r = branch(x, &below, in_a_minute(), &hooks);
        if (r == 0)
            r = dive(x, INT32_MIN, 1, in_a_minute());
        if (r == 0)
            r = repair(x, choices, &n_choices);
        if (r == 0)
            r = patterns_new(&all, x, s->best - 20, 1000);
        if (r == 0)
            r = patterns_mip(&mip, all);
        mip_done(&mip);
        if (r == 0)
            r = model_new(&m, x);
        assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_every_solution_and_drops_none_that_is_wanted),
        cmocka_unit_test(lists_the_patterns_of_the_best_solution),
        cmocka_unit_test(has_the_best_solution_in_a_branch),
        cmocka_unit_test(repairs_to_solutions_that_count),
        cmocka_unit_test(writes_rows_that_the_best_solution_keeps),
        cmocka_unit_test(solves_as_trying_all_does),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
