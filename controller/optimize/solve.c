#include "controller/optimize/solve.h"

#include "controller/optimize/branch.h"
#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/placing.h"
#include "controller/optimize/primal.h"
#include "controller/optimize/problem.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITERATIONS_MIN = 30,
    ITERATIONS_MAX = 4000,
    TUNED_PART = 10,
    REPAIR_EVERY = 8,
    CONSTRUCTED_CELLS = 1 << 20,
};

/* Scores that all iterations together may look at. */
static const size_t WORK = (size_t)200 << 20;
/* Longer steps than these find more, but take long to settle. */
static const double FACTOR_OF_FEW = 0.05;

struct relax {
    struct layout layout;
    struct knapsack knapsack;
    struct dual dual;
    struct primal primal;
    bool is_constructed; /* the answer, before the prices */
    bool has_branched;   /* and found or proved something by that */
};

static void relax_done(struct relax *x)
{
    knapsack_done(&x->knapsack);
    layout_done(&x->layout);
}

static void relax_init(struct relax *x, const struct problem *p, const struct solve_options *o)
{
    *x = (struct relax){0};
    layout_init(&x->layout, p, o->deadline_ms, o->cancel);
    knapsack_init(&x->knapsack, p->n_workloads + 1);
    dual_init(&x->dual, &x->layout, &x->knapsack);
    primal_init(&x->primal, &x->layout, &x->knapsack);
}

static bool relax_is_optimal(const struct relax *x)
{
    return x->primal.has_best && x->primal.best.sum >= x->dual.bound;
}

static void relax_repair(struct relax *x)
{
    primal_repair(&x->primal, &x->dual);
    polish(&x->primal.now);
    primal_keep(&x->primal);
}

/* What the prices are tuned for: the answer's settings, and the first where it has none. */
static void choose_settings(const struct relax *x, uint32_t *setting)
{
    const struct problem *p = x->layout.p;

    memcpy(setting, x->primal.best.setting, p->n_sites * sizeof(*setting));
    for (size_t s = 0; s < p->n_sites; s++) {
        if (setting[s] == NO_SETTING && p->first_setting[s] < p->first_setting[s + 1])
            setting[s] = p->first_setting[s];
    }
}

/* Prices that are tuned for the only settings there are need few more steps. */
static size_t iterations_of(const struct relax *x)
{
    size_t cells = x->layout.p->n_workloads * x->layout.p->n_settings + 1, n = WORK / cells;

    if (!x->is_constructed)
        return size_max(n / TUNED_PART, 1);
    return n > ITERATIONS_MAX ? ITERATIONS_MAX : size_max(n, ITERATIONS_MIN);
}

static void relax_iterate(struct relax *x)
{
    size_t n = iterations_of(x);

    if (n < ITERATIONS_MAX)
        x->dual.factor = FACTOR_OF_FEW;
    for (size_t i = 0; i < n && !relax_is_optimal(x) && dual_evaluate(&x->dual) == 0; i++) {
        if (i % REPAIR_EVERY == 0 || i == n - 1)
            relax_repair(x);
        dual_step(&x->dual, x->primal.best.sum);
    }
}

static void relax_search(struct relax *x)
{
    const struct problem *p = x->layout.p;
    CLEANUP(cleanup_free) uint32_t *setting = xmalloc((p->n_sites + 1) * sizeof(*setting));

    choose_settings(x, setting);
    memcpy(x->dual.grain, x->primal.grain, p->n_settings * sizeof(*x->primal.grain));
    tune_prices(&x->dual, setting, true);
    if (!x->is_constructed)
        primal_construct(&x->primal);
    tune_prices(&x->dual, setting, false);
    relax_iterate(x);
}

static void relax_branch(struct relax *x)
{
    int64_t sum = x->primal.has_best ? x->primal.best.sum : INT64_MIN, bound = x->dual.bound;

    branch(&x->primal, x->dual.lowest, &x->dual.bound);
    x->has_branched = x->dual.bound < bound || (x->primal.has_best && x->primal.best.sum > sum);
}

static void relax_export(struct relax *x, struct solution *ret)
{
    const struct problem *p = x->layout.p;

    if (x->primal.has_best) {
        polish(&x->primal.best);
    } else {
        placing_clear(&x->primal.now);
        placing_copy(&x->primal.best, &x->primal.now);
    }
    placing_export(&x->primal.best, ret);
    ret->engine = x->has_branched ? "branch and bound" : "relaxation";
    ret->deadline_reached = x->layout.stopped;
    ret->bound =
        x->dual.bound == INT64_MIN ? INT64_MIN : x->dual.bound - p->move_cost * (int64_t)p->n_running;
    if (!x->primal.has_best) {
        ret->is_infeasible = true;
        ret->n_moves = 0;
        ret->objective = 0;
        if (x->dual.bound == INT64_MIN || primal_most_stays(&x->primal) < x->layout.stays_needed)
            ret->bound = INT64_MIN;
    }
    if (ret->is_infeasible ? ret->bound == INT64_MIN : ret->bound <= ret->objective)
        ret->deadline_reached = false;
}

/* Whether an answer must be there before prices can be tuned: large problems begin with the prices, which
 * give a bound and a better answer. */
static bool relax_needs_settings(const struct relax *x)
{
    const struct problem *p = x->layout.p;

    return p->n_settings > p->n_sites || x->layout.stays_needed > 0 ||
           p->n_workloads * p->n_settings < CONSTRUCTED_CELLS;
}

int solve(struct solution *ret, const struct problem *p, const struct solve_options *o)
{
    struct relax x;

    if (problem_check(p))
        return -EINVAL;
    relax_init(&x, p, o);
    x.is_constructed = relax_needs_settings(&x);
    if (x.is_constructed)
        primal_construct(&x.primal);
    else
        primal_start(&x.primal);
    if (x.primal.has_best && !relax_is_optimal(&x))
        relax_search(&x);
    if (!relax_is_optimal(&x) && branch_is_for(p) && !x.layout.stopped)
        relax_branch(&x);
    relax_export(&x, ret);
    relax_done(&x);
    return 0;
}
