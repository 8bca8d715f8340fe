/* The search: relaxation first, then for small problems branch and bound. Owns all of it while it runs. On
 * the thread that solves, which is never the loop. Steps are counted, not timed: only the deadline makes
 * two runs differ. */
#include "controller/optimize/solve.h"

#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/primal.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "controller/optimize/tune.h"
#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

#include <errno.h>
#include <math.h>

/* ---- Branch and bound, for small problems ---- */

/* Depth first. A node is a problem of its own: what is fixed there has taken its part of supplies and
 * replicas, and what is excluded has become impossible, so that the dual's bound and an answer from its
 * picks are those of any problem. Subgradient steps start from the parent's prices. What cannot be part of a
 * better answer at the present prices is excluded as well, which is what keeps the tree small.
 *
 * A node branches on the workload and setting on which the picks of its evaluations disagree most: first it
 * fixes a replica there, then it excludes it. Where nothing is left to exclude the fixed replicas are the
 * answer, so the search is complete whatever the bound is worth. */

enum {
    CELLS_MAX = 1 << 15,     /* workloads x settings */
    MEMORY_MAX = 64 << 20,   /* of the prices of all parents */
    EVALUATIONS_MAX = 40000, /* of the dual, in all nodes */
    STEPS_OF_NODE = 30,
    TIGHTEN_EVERY = 5,
};

static const size_t BRANCH_WORK = (size_t)100 << 20; /* scores that all evaluations together may look at */
static const double NODE_FACTOR = 0.05;

struct branch {
    struct primal *answers; /* of the whole problem */
    struct opt_problem p;   /* of the node; what is not borrowed from the whole follows */
    int16_t *scores;
    int64_t *supplies;
    struct layout l;
    struct dual dual;
    int64_t gains; /* of fixed replicas */
    int64_t stays; /* of them, that stay */
    struct dual_pick *fixed;
    size_t n_fixed;
    size_t n_open; /* cells that are not excluded */
    size_t depth, max_depth;
    uint32_t *picked; /* [setting * n_workloads + workload]: by how many evaluations of the node */
    uint32_t n_evaluated;
    size_t evaluations; /* that are left */
};

static size_t branch_cell(const struct branch *b, uint32_t setting, uint32_t workload)
{
    return (size_t)setting * b->p.n_workloads + workload;
}

static bool branch_is_open(const struct branch *b, uint32_t setting, uint32_t workload)
{
    return b->scores[branch_cell(b, setting, workload)] != SCORE_IMPOSSIBLE;
}

/* ---- Fixing and excluding ---- */

static void branch_exclude(struct branch *b, uint32_t setting, uint32_t workload)
{
    b->n_open -= branch_is_open(b, setting, workload);
    b->scores[branch_cell(b, setting, workload)] = SCORE_IMPOSSIBLE;
}

static void branch_close_setting(struct branch *b, uint32_t setting)
{
    for (uint32_t w = 0; w < b->p.n_workloads; w++)
        branch_exclude(b, setting, w);
}

/* Takes what the replica uses, or gives it back. */
static void branch_book(struct branch *b, struct dual_pick pick, int sign)
{
    uint32_t setting = pick.setting, workload = pick.workload, site = b->l.site_of[setting];
    int64_t needed;

    for (size_t r = 0; r < b->p.n_resources; r++)
        b->supplies[setting * b->p.n_resources + r] -= sign * problem_request(&b->p, workload)[r];
    b->l.replicas[workload] -= (uint32_t)sign;
    b->gains += sign * placing_gain(&b->answers->now, workload, setting);
    b->stays += placing_stays(&b->answers->now, workload, site) ? sign : 0;
    needed = b->answers->l->stays_needed - b->stays;
    b->l.stays_needed = needed > 0 ? needed : 0;
}

/* Whether the combination gains something, and what is fixed leaves room for it. */
static bool branch_is_useful(const struct branch *b, uint32_t setting, uint32_t workload)
{
    uint32_t site = b->l.site_of[setting];
    bool may_stay = b->answers->l->stays_needed > 0 && placing_stays(&b->answers->now, workload, site);

    return b->l.replicas[workload] > 0 && problem_fits(&b->p, setting, workload) &&
           (placing_gain(&b->answers->now, workload, setting) > 0 || may_stay);
}

static void branch_exclude_useless(struct branch *b)
{
    for (uint32_t k = 0; k < b->p.n_settings; k++) {
        for (uint32_t w = 0; w < b->p.n_workloads; w++) {
            if (branch_is_open(b, k, w) && !branch_is_useful(b, k, w))
                branch_exclude(b, k, w);
        }
    }
}

static void branch_fix(struct branch *b, struct dual_pick pick)
{
    uint32_t site = b->l.site_of[pick.setting];

    b->fixed[b->n_fixed++] = pick;
    branch_book(b, pick, 1);
    branch_exclude(b, pick.setting, pick.workload);
    for (uint32_t k = b->p.first_setting[site]; k < b->p.first_setting[site + 1]; k++) {
        if (k != pick.setting)
            branch_close_setting(b, k);
    }
    branch_exclude_useless(b);
}

/* ---- The bound of a node ---- */

/* Excludes what would lower the value of the last evaluation to that of the best answer, or below it. */
static void branch_tighten(struct branch *b)
{
    struct dual *x = &b->dual;
    int64_t wanted = (b->answers->best.sum - b->gains + 1) * PRICE_ONE;

    for (uint32_t s = 0; s < b->p.n_sites; s++) {
        int64_t most = 0, others;

        for (uint32_t k = b->p.first_setting[s]; k < b->p.first_setting[s + 1]; k++)
            most = x->worth[k].value > most ? x->worth[k].value : most;
        others = x->value - most;
        prices_at_site(&x->prices, s, true);
        for (uint32_t k = b->p.first_setting[s]; k < b->p.first_setting[s + 1]; k++) {
            if (others + x->worth[k].value < wanted)
                branch_close_setting(b, k);
            for (uint32_t w = 0; w < b->p.n_workloads; w++) {
                if (branch_is_open(b, k, w) && others + dual_most_with(x, k, w) < wanted)
                    branch_exclude(b, k, w);
            }
        }
        prices_at_site(&x->prices, s, false);
    }
}

static void branch_try_answer(struct branch *b, bool is_whole)
{
    struct primal *a = b->answers;

    placing_clear(&a->now);
    primal_place(a, b->fixed, b->n_fixed);
    if (!is_whole)
        primal_place(a, b->dual.picks, b->dual.n_picks);
    polish(&a->now);
    primal_keep(a);
}

/* 1: nothing below this node is better than the best answer. -ECANCELED when the search must end. Otherwise
 * something is open. */
static int branch_bound_node(struct branch *b)
{
    struct dual *x = &b->dual;

    x->bound = INT64_MAX / 4;
    x->lowest_value = INFINITY;
    x->factor = NODE_FACTOR;
    x->idle = 0;
    memset(x->step, 0, x->n * sizeof(*x->step));
    memset(b->picked, 0, b->p.n_settings * b->p.n_workloads * sizeof(*b->picked));
    b->n_evaluated = 0;
    for (int i = 0; i < STEPS_OF_NODE && b->n_open > 0; i++) {
        int r;

        if (b->evaluations-- == 0)
            return -ECANCELED;
        r = dual_evaluate(x);
        if (r < 0)
            return r;
        for (size_t k = 0; k < x->n_picks; k++)
            b->picked[branch_cell(b, x->picks[k].setting, x->picks[k].workload)]++;
        b->n_evaluated++;
        if (i == 0)
            branch_try_answer(b, false);
        if (b->gains + x->bound <= b->answers->best.sum)
            return 1;
        if (i % TIGHTEN_EVERY == 0 || i == STEPS_OF_NODE - 1)
            branch_tighten(b);
        dual_step(x, b->answers->has_best ? b->answers->best.sum - b->gains : x->value / PRICE_ONE - 1);
    }
    branch_try_answer(b, b->n_open == 0);
    return b->n_open == 0 || b->gains + x->bound <= b->answers->best.sum;
}

/* ---- The tree ---- */

/* The one on which the evaluations of the node disagree most. */
static struct dual_pick branch_choose(const struct branch *b)
{
    struct dual_pick choice = {0};
    int64_t most = -1;

    for (uint32_t k = 0; k < b->p.n_settings; k++) {
        for (uint32_t w = 0; w < b->p.n_workloads; w++) {
            size_t cell = branch_cell(b, k, w), n = b->picked[cell];
            int64_t doubt = (int64_t)size_min(n, b->n_evaluated - n) << 32;

            doubt += ((int64_t)n << 16) + b->scores[cell] - SCORE_IMPOSSIBLE; /* of equal ones */
            if (!branch_is_open(b, k, w) || doubt <= most)
                continue;
            most = doubt;
            choice = (struct dual_pick){w, k};
        }
    }
    return choice;
}

static void *copy_of(const void *from, size_t n)
{
    return memcpy(xmalloc(n), from, n);
}

/* Searches what is below a node, from the dual's prices. `bound`: of its parent. Returns a bound of what
 * was not searched; INT64_MIN: all was. Nodes that branch take STEPS_OF_NODE of the evaluations, which
 * limits the depth. */
static int64_t branch_search(struct branch *b, int64_t bound)
{
    struct dual *x = &b->dual;
    size_t scores_size = b->p.n_settings * b->p.n_workloads * sizeof(*b->scores);
    size_t prices_size = x->n * sizeof(*x->price), n_open;
    int r = branch_bound_node(b);
    CLEANUP(cleanup_free) int16_t *scores = NULL;
    CLEANUP(cleanup_free) double *prices = NULL;
    int64_t open = INT64_MIN;
    struct dual_pick choice;

    if (r != 0 || b->depth == b->max_depth)
        return r > 0 ? INT64_MIN : bound;
    bound = b->gains + x->bound < bound ? b->gains + x->bound : bound;
    choice = branch_choose(b);
    scores = copy_of(b->scores, scores_size);
    prices = copy_of(x->lowest, prices_size);
    n_open = b->n_open;
    b->depth++;
    for (int way = 0; way < 2 && open == INT64_MIN && bound > b->answers->best.sum; way++) {
        memcpy(x->price, prices, prices_size);
        if (way == 0)
            branch_fix(b, choice);
        else
            branch_exclude(b, choice.setting, choice.workload);
        open = branch_search(b, bound);
        memcpy(b->scores, scores, scores_size);
        b->n_open = n_open;
        if (way == 0) {
            branch_book(b, b->fixed[--b->n_fixed], -1);
            open = open == INT64_MIN ? open : bound; /* the other way was not searched */
        }
    }
    b->depth--;
    return open;
}

static void branch_init(struct branch *b, struct primal *answers, const double *prices)
{
    const struct opt_problem *p = answers->l->p;
    size_t cells = p->n_settings * p->n_workloads;

    *b = (struct branch){.answers = answers, .p = *p};
    layout_init(&b->l, &b->p, 0, answers->l->cancel);
    b->scores = layout_alloc(&b->l, cells, sizeof(*b->scores));
    b->supplies = layout_alloc(&b->l, p->n_settings * p->n_resources, sizeof(*b->supplies));
    b->fixed = layout_alloc(&b->l, cells, sizeof(*b->fixed));
    b->picked = layout_alloc(&b->l, cells, sizeof(*b->picked));
    dual_init(&b->dual, &b->l, answers->knapsack);
    memcpy(b->scores, p->scores, cells * sizeof(*b->scores));
    memcpy(b->supplies, p->supplies, p->n_settings * p->n_resources * sizeof(*b->supplies));
    b->p.scores = b->scores;
    b->p.supplies = b->supplies;
    b->l.end_ms = answers->l->end_ms;
    b->dual.is_dense = true;
    memcpy(b->dual.grain, answers->grain, p->n_settings * sizeof(*b->dual.grain));
    memcpy(b->dual.price, prices, b->dual.n * sizeof(*prices));
    memcpy(b->dual.lowest, prices, b->dual.n * sizeof(*prices));
    for (size_t i = 0; i < cells; i++)
        b->n_open += b->scores[i] != SCORE_IMPOSSIBLE;
    b->evaluations = size_min(BRANCH_WORK / (cells + 1) + 1, EVALUATIONS_MAX);
    b->max_depth = MEMORY_MAX / (b->dual.n * sizeof(*prices));
}

/* Searches from the prices of a bound, until the best answer is proven or as much has been looked at as is
 * allowed: improves the answer and lowers *bound (of the sum of gains; INT64_MIN: there is no answer that
 * keeps max_moves). Returns whether it did either. */
static bool branch(struct primal *answers, const double *prices, int64_t *bound)
{
    int64_t had = answers->best.sum, before = *bound;
    struct branch b;

    branch_init(&b, answers, prices);
    branch_exclude_useless(&b);
    *bound = branch_search(&b, *bound);
    if (answers->has_best && answers->best.sum > *bound)
        *bound = answers->best.sum;
    answers->l->stopped |= b.l.stopped;
    layout_done(&b.l);
    return *bound < before || answers->best.sum > had;
}

/* ---- Relaxation ---- */

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

static bool relax_is_optimal(const struct relax *x)
{
    return x->primal.has_best && x->primal.best.sum >= x->dual.bound;
}

static void relax_iterate(struct relax *x)
{
    size_t n = WORK / (x->layout.p->n_workloads * x->layout.p->n_settings + 1);

    /* Prices that are tuned for the only settings there are need few more steps. */
    n = x->is_constructed ? size_min(size_max(n, ITERATIONS_MIN), ITERATIONS_MAX)
                          : size_max(n / TUNED_PART, 1);
    if (n < ITERATIONS_MAX)
        x->dual.factor = FACTOR_OF_FEW;
    for (size_t i = 0; i < n && !relax_is_optimal(x) && dual_evaluate(&x->dual) == 0; i++) {
        if (i % REPAIR_EVERY == 0 || i == n - 1) {
            primal_repair(&x->primal, &x->dual);
            polish(&x->primal.now);
            primal_keep(&x->primal);
        }
        dual_step(&x->dual, x->primal.best.sum);
    }
}

static void relax_search(struct relax *x)
{
    const struct opt_problem *p = x->layout.p;
    uint32_t *setting = layout_alloc(&x->layout, p->n_sites + 1, sizeof(*setting));

    /* Prices are tuned for the answer's settings, and the first where it has none. */
    for (size_t s = 0; s < p->n_sites; s++) {
        setting[s] = x->primal.best.setting[s];
        if (setting[s] == NO_SETTING && p->first_setting[s] < p->first_setting[s + 1])
            setting[s] = p->first_setting[s];
    }
    memcpy(x->dual.grain, x->primal.grain, p->n_settings * sizeof(*x->primal.grain));
    tune_prices(&x->dual, setting, true);
    if (!x->is_constructed)
        primal_construct(&x->primal);
    tune_prices(&x->dual, setting, false);
    relax_iterate(x);
}

static void relax_export(struct relax *x, struct solution *ret)
{
    const struct opt_problem *p = x->layout.p;
    struct placing *answer = x->primal.has_best ? &x->primal.best : &x->primal.now;

    if (x->primal.has_best)
        polish(answer);
    else
        placing_clear(answer);
    placing_export(answer, ret);
    ret->engine = x->has_branched ? "branch and bound" : "relaxation";
    ret->deadline_reached = x->layout.stopped;
    ret->bound =
        x->dual.bound == INT64_MIN ? INT64_MIN : x->dual.bound - p->move_cost * (int64_t)p->n_running;
    if (!x->primal.has_best) {
        ret->is_infeasible = true;
        ret->n_moves = 0;
        ret->objective = 0;
    }
    invariant(ret->is_infeasible || ret->objective <= ret->bound);
    if (ret->is_infeasible ? ret->bound == INT64_MIN : ret->bound <= ret->objective)
        ret->deadline_reached = false;
}

void solve(struct solution *ret, const struct opt_problem *p, int64_t deadline_ms, const atomic_bool *cancel)
{
    struct relax x = {0};

    layout_init(&x.layout, p, deadline_ms, cancel);
    knapsack_init(&x.knapsack, &x.layout.arena, p->n_workloads + 1);
    dual_init(&x.dual, &x.layout, &x.knapsack);
    primal_init(&x.primal, &x.layout, &x.knapsack);
    /* A large problem whose prices can be tuned without an answer starts with the prices: they give a bound
     * and a better answer. */
    x.is_constructed = p->n_settings > p->n_sites || x.layout.stays_needed > 0 ||
                       p->n_workloads * p->n_settings < CONSTRUCTED_CELLS;
    if (x.is_constructed)
        primal_construct(&x.primal);
    else
        primal_start(&x.primal);
    if (x.primal.has_best && !relax_is_optimal(&x))
        relax_search(&x);
    if (!relax_is_optimal(&x) && p->n_settings * p->n_workloads <= CELLS_MAX && !x.layout.stopped)
        x.has_branched = branch(&x.primal, x.dual.lowest, &x.dual.bound);
    relax_export(&x, ret);
    layout_done(&x.layout);
}
