#include "controller/optimize/exact.h"

#include "controller/optimize/exact_run.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <errno.h>
#include <string.h>

enum {
    EXACT_COMBINATIONS_MAX =
        30000,             /* of workloads and settings: beyond, CBC improves little within seconds */
    EXACT_MARGIN_MS = 100, /* before the deadline the program is to end by itself */
    EXACT_GRACE_MS = 100,  /* after it, it is killed */
};

bool exact_is_for(const struct problem *p)
{
    size_t n = p->n_settings * p->n_workloads, possible = 0;

    if (p->n_sites == 0 || p->n_workloads == 0 || n > WIRE_SCORES_MAX)
        return false;
    for (size_t i = 0; i < n && possible <= EXACT_COMBINATIONS_MAX; i++)
        possible += p->scores[i] != SCORE_IMPOSSIBLE;
    return possible > 0 && possible <= EXACT_COMBINATIONS_MAX;
}

struct exact {
    const struct problem *p;
    struct solution *s;
    bool is_changed;
};

/* ---- Answers ---- */

static int exact_compare_pairs(const void *a, const void *b)
{
    const struct problem_pair *x = a, *y = b;

    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static uint32_t exact_site(const struct problem *p, uint32_t setting)
{
    size_t low = 0, high = p->n_sites;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (p->first_setting[middle] <= setting)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* Replicas that run where they are not placed. */
static size_t exact_moves(const struct problem *p, const struct solution *s)
{
    size_t moves = p->n_running;

    for (size_t i = 0, k = 0; i < p->n_running && k < s->n_placed;) {
        int order = exact_compare_pairs(&p->running[i], &s->placed[k]);

        moves -= order == 0;
        i += order <= 0;
        k += order >= 0;
    }
    return moves;
}

/* A site with two settings in force is left to solution_check(): the amounts or the objective will not be
 * right. */
static int exact_fill(struct solution *ret, const struct problem *p, const struct wire_message *m)
{
    ret->setting = malloc((p->n_sites + 1) * sizeof *ret->setting);
    ret->placed = malloc(((size_t)m->n_choices + 1) * sizeof *ret->placed);
    if (!ret->setting || !ret->placed)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_sites; i++)
        ret->setting[i] = NO_SETTING;
    ret->n_placed = m->n_choices;
    for (uint32_t i = 0; i < m->n_choices; i++) {
        const struct wire_choice *c = &m->choices[i];
        uint32_t site = exact_site(p, c->setting);

        ret->setting[site] = c->setting;
        ret->placed[i] = (struct problem_pair){c->workload, site};
        ret->objective += problem_score(p, c->setting, c->workload);
    }
    qsort(ret->placed, ret->n_placed, sizeof *ret->placed, exact_compare_pairs);
    ret->n_moves = exact_moves(p, ret);
    ret->objective -= p->move_cost * (int64_t)ret->n_moves;
    return 0;
}

static int exact_take_solution(struct exact *x, const struct wire_message *m)
{
    struct solution found = {.bound = INT64_MAX, .engine = "CBC"};
    int r = exact_fill(&found, x->p, m);

    if (r == 0 && solution_check(x->p, &found))
        r = -EIO;
    if (r == 0 && (x->s->is_infeasible || found.objective > x->s->objective)) {
        struct solution was = *x->s;

        /* A bound that the answer refutes was wrong, and nothing is proven. */
        found.bound = was.bound < found.objective ? INT64_MAX : was.bound;
        *x->s = found;
        found = was;
        x->is_changed = true;
    }
    solution_done(&found);
    return r;
}

static void exact_take_bound(struct exact *x, int64_t bound)
{
    if (!x->s->is_infeasible && bound < x->s->objective)
        bound = x->s->objective;
    if (bound >= x->s->bound)
        return;
    x->s->bound = bound;
    x->s->engine = "CBC";
    x->is_changed = true;
}

static int exact_take_message(void *arg, const struct wire_message *m)
{
    struct exact *x = arg;

    if (m->kind == WIRE_SOLUTION)
        return exact_take_solution(x, m);
    exact_take_bound(x, m->value);
    return 0;
}

/* ---- The problem ---- */

static int exact_put(struct buf *out, const struct problem *p, const struct solution *s, int64_t limit_ms)
{
    CLEANUP(cleanup_free) struct wire_choice *start = calloc(s->n_placed + 1, sizeof *start);
    struct wire_problem w = {.p = *p,
                             .start = start,
                             .n_start = s->n_placed,
                             .has_start = !s->is_infeasible,
                             .bound = s->bound,
                             .limit_ms = limit_ms};

    if (!start)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_placed; i++)
        start[i] = (struct wire_choice){s->placed[i].workload, s->setting[s->placed[i].site]};
    return wire_put_problem(out, &w);
}

int exact_solve(struct solution *s, const struct problem *p, const struct solve_options *o)
{
    mono_ms now = clock_system.mono(&clock_system);
    BUF_AUTO(input, WIRE_BYTES_MAX);
    struct exact x = {.p = p, .s = s};
    struct exact_run run = {
        .program = o->cbc,
        .p = p,
        .end = mono_add(now, o->deadline_ms + EXACT_GRACE_MS),
        .cancel = o->cancel,
        .take = exact_take_message,
        .arg = &x,
    };
    int r = exact_put(&input, p, s,
                      o->deadline_ms > 2 * EXACT_MARGIN_MS ? o->deadline_ms - EXACT_MARGIN_MS
                                                           : o->deadline_ms / 2);

    if (r < 0)
        return r == -EFBIG ? -EIO : r;
    run.input = buf_str(&input);
    r = exact_run(&run);
    s->deadline_reached = s->is_infeasible ? s->bound > INT64_MIN : s->bound > s->objective;
    if (r == -ETIME || r == -ECANCELED || (r == -EIO && x.is_changed))
        return 0;
    return r;
}
