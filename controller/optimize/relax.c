#include "controller/optimize/relax.h"

#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/placing.h"
#include "controller/optimize/polish.h"
#include "controller/optimize/primal.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/tune.h"

#include <errno.h>

enum { ITERATIONS_MIN = 10, ITERATIONS_MAX = 4000, REPAIR_EVERY = 8 };

/* Scores that all iterations together may look at. */
static const size_t WORK = (size_t)200 << 20;

struct relax {
    struct layout layout;
    struct knapsack knapsack;
    struct dual dual;
    struct primal primal;
};

static void relax_done(struct relax *x)
{
    primal_done(&x->primal);
    dual_done(&x->dual);
    knapsack_done(&x->knapsack);
    layout_done(&x->layout);
}

static int relax_init(struct relax *x, const struct problem *p, const struct solve_options *o)
{
    int r;

    *x = (struct relax){0};
    r = layout_init(&x->layout, p, o->deadline_ms, o->cancel);
    if (r == 0)
        r = knapsack_init(&x->knapsack, p->n_workloads + 1);
    if (r == 0)
        r = dual_init(&x->dual, &x->layout, &x->knapsack);
    if (r == 0)
        r = primal_init(&x->primal, &x->layout, &x->knapsack);
    return r;
}

static bool relax_is_optimal(const struct relax *x)
{
    return x->primal.best.sum >= x->dual.bound;
}

static void relax_repair(struct relax *x)
{
    primal_repair(&x->primal, &x->dual);
    polish(&x->primal.now);
    primal_keep(&x->primal);
}

static int relax_search(struct relax *x)
{
    const struct problem *p = x->layout.p;
    size_t n = WORK / (p->n_workloads * p->n_settings + 1);
    int r;

    n = n > ITERATIONS_MAX ? ITERATIONS_MAX : size_max(n, ITERATIONS_MIN);
    r = dual_start(&x->dual, x->primal.best.setting, x->primal.grain);
    if (r == 0)
        r = tune_prices(&x->dual, x->primal.best.setting);
    for (size_t i = 0; i < n && r == 0 && !relax_is_optimal(x); i++) {
        r = dual_iterate(&x->dual, x->primal.best.sum);
        if (r == 0 && (i % REPAIR_EVERY == 0 || i == n - 1))
            relax_repair(x);
    }
    return r == -ECANCELED ? 0 : r;
}

static int relax_export(struct relax *x, struct solution *ret)
{
    const struct problem *p = x->layout.p;
    int r;

    if (x->primal.has_best) {
        polish(&x->primal.best);
    } else {
        placing_clear(&x->primal.now);
        placing_copy(&x->primal.best, &x->primal.now);
    }
    r = placing_export(&x->primal.best, ret);
    if (r < 0)
        return r;
    ret->engine = "relaxation";
    ret->deadline_reached = x->layout.stopped;
    ret->bound = x->dual.bound - p->move_cost * (int64_t)p->n_running;
    if (!x->primal.has_best) {
        ret->is_infeasible = true;
        ret->n_moves = 0;
        ret->objective = 0;
        if (primal_most_stays(&x->primal) < x->layout.stays_needed)
            ret->bound = INT64_MIN;
    }
    return 0;
}

int relax_solve(struct solution *ret, const struct problem *p, const struct solve_options *o)
{
    struct relax x;
    int r;

    if (problem_check(p))
        return -EINVAL;
    r = relax_init(&x, p, o);
    if (r == 0)
        primal_construct(&x.primal);
    if (r == 0 && x.primal.has_best && !relax_is_optimal(&x))
        r = relax_search(&x);
    if (r == 0)
        r = relax_export(&x, ret);
    relax_done(&x);
    return r;
}
