#include "controller/optimize/cbc/program/search.h"

#include "controller/optimize/cbc/branch.h"
#include "controller/optimize/cbc/dive.h"
#include "controller/optimize/cbc/mip.h"
#include "controller/optimize/cbc/model.h"
#include "controller/optimize/cbc/pattern.h"
#include "controller/optimize/cbc/price.h"
#include "controller/optimize/cbc/program/engine.h"
#include "controller/optimize/cbc/repair.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    SEARCH_WHOLE_DIVES = 5,
    SEARCH_DIVES = 500,
    SEARCH_STEPS = 600,     /* of prices, before each look at what can be dropped */
    SEARCH_PATTERNS = 3000, /* of a program of patterns */
};

struct search {
    const struct wire_problem *w;
    struct price *x;
    int64_t objective; /* of the best solution known; INT64_MIN: none */
    int64_t bound;
    mono_ms end;
    struct wire_choice *choices, *best; /* [n_sites * n_workloads]; the best solution */
    size_t n_best;
    search_send *send;
    void *arg;
};

static mono_ms search_now(void)
{
    return clock_system.mono(&clock_system);
}

/* Whether there is nothing left to be found. */
static bool search_is_done(const struct search *s)
{
    return s->bound <= s->objective;
}

static int64_t search_objective(const struct price *x, const struct wire_choice *choices, size_t n)
{
    int64_t sum = x->constant;

    for (size_t i = 0; i < n; i++) {
        const struct wire_choice *c = &choices[i];

        sum += problem_score(x->p, c->setting, c->workload);
        if (price_stays(x, x->settings[c->setting].site, c->workload))
            sum += x->p->move_cost;
    }
    return sum;
}

/* A bound of what may be better than the best solution known. */
static int search_lower_bound(struct search *s, int64_t bound)
{
    if (s->objective > INT64_MIN && bound < s->objective)
        bound = s->objective;
    if (bound >= s->bound)
        return 0;
    s->bound = bound;
    return s->send(s->arg, &(struct wire_message){.kind = WIRE_BOUND, .value = bound});
}

static int search_compare_choices(const void *a, const void *b)
{
    const struct wire_choice *x = a, *y = b;

    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    return x->setting < y->setting ? -1 : x->setting > y->setting;
}

static int search_send_solution(struct search *s, struct wire_choice *choices, uint32_t n)
{
    int64_t objective = search_objective(s->x, choices, n);

    if (objective <= s->objective)
        return 0;
    s->objective = objective;
    qsort(choices, n, sizeof *choices, search_compare_choices);
    memcpy(s->best, choices, n * sizeof *choices);
    s->n_best = n;
    return s->send(s->arg,
                   &(struct wire_message){
                       .kind = WIRE_SOLUTION, .n_choices = n, .value = objective, .choices = choices});
}

/* ---- Prices ---- */

static int search_look(void *arg, int64_t *objective)
{
    struct search *s = arg;
    uint32_t n;
    int r;

    if (!repair_is_for(s->x))
        return 0;
    r = repair(s->x, s->choices, &n);
    if (r == 0)
        r = search_send_solution(s, s->choices, n);
    *objective = s->objective;
    return r;
}

/* Fixes all but a few sites, chosen at random, as they are in the best solution. */
static void search_free_some(struct search *s, uint64_t *random)
{
    size_t n = s->w->p.n_sites, left = 3 + *random % 5;

    price_set_best(s->x, s->best, s->n_best);
    for (uint32_t i = 0; i < n; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        if ((*random >> 33) % (n - i) < left)
            left--;
        else
            price_fix(s->x, i);
    }
}

/* Solutions from dives: first of all sites, then of a few with the others as in the best solution. In the end
 * prices and best sets are those that were before. */
static int search_dive(struct search *s)
{
    mono_ms until = mono_add(search_now(), s->w->limit_ms / 10);
    int64_t objective = s->objective;
    uint64_t random = 1;
    int r = 0;

    for (uint32_t i = 0; r >= 0 && !search_is_done(s) && i < SEARCH_DIVES && mono_before(search_now(), until);
         i++) {
        if (i >= SEARCH_WHOLE_DIVES)
            search_free_some(s, &random);
        r = dive(s->x, s->objective, i, until);
        if (r == 0)
            r = search_look(s, &objective);
    }
    if (r >= 0)
        r = price_lower(s->x, &objective, 1, s->end, search_look, s);
    return r;
}

static int search_price(struct search *s)
{
    int64_t objective = s->objective;
    int r = 0;

    for (int i = 0; i < 2 && r == 0 && !search_is_done(s); i++) {
        mono_ms until = mono_add(search_now(), s->w->limit_ms / 8);

        s->x->length = 1;
        r = price_lower(s->x, &objective, SEARCH_STEPS, until, search_look, s);
        if (r == 0)
            r = search_lower_bound(s, price_bound(s->x));
        if (r == 0 && i == 0 && !search_is_done(s) && repair_is_for(s->x))
            r = search_dive(s);
        if (r == 0 && s->objective > INT64_MIN)
            (void)price_drop(s->x, s->objective + 1);
    }
    return r;
}

/* ---- Running CBC ---- */

/* Whether CBC found all that there is at or above `least`; its solution, if any, is in *ret. */
static int search_engine(struct search *s, struct engine_answer *ret, const struct mip *mip, int64_t least,
                         double share, bool has_patterns)
{
    double left = (double)mono_diff(search_now(), s->end) / 1000;
    struct engine_task task = {
        .mip = mip,
        .cutoff = least > INT64_MIN ? (double)s->x->constant - (double)least + 0.5 : 1e30,
        .seconds = fmax(left * share, 0.05),
        .has_patterns = has_patterns,
    };

    return engine_run(ret, &task);
}

/* What CBC's bound, a cost, says of objectives: they are whole numbers, and a hundredth is more than the
 * tolerances of its sums. */
static int64_t search_bound_of(const struct search *s, double cost)
{
    double bound = floor((double)s->x->constant - cost + 0.01);

    return fabs(bound) < 1e15 ? (int64_t)bound : s->bound;
}

/* ---- Patterns ---- */

/* The patterns of the lowest objective that has at most `max`, above the best known. *ret is NULL if even
 * those of the bound are more. */
static int search_list(struct search *s, struct patterns **ret, int64_t *ret_least, int64_t bound, size_t max)
{
    int64_t high = bound + 1; /* too high, or known to work */
    int64_t low =
        s->objective > INT64_MIN ? s->objective + 1 : bound - (int64_t)fabs((double)bound) / 4 - 100;
    int64_t least = low; /* try all first */

    *ret = NULL;
    while (low < high) {
        struct patterns *found = NULL;
        int r = patterns_new(&found, s->x, least, max);

        if (r < 0 && r != -EFBIG)
            return r;
        if (found) {
            (void)patterns_free(*ret);
            *ret = found;
            *ret_least = high = least;
        } else {
            low = least + 1;
        }
        least = low + (high - low) / 2;
    }
    return 0;
}

static uint32_t search_pattern_choices(const struct patterns *x, const double *solution,
                                       struct wire_choice *choices)
{
    uint32_t n = 0;

    for (size_t i = 0; i < x->n; i++) {
        size_t first = i > 0 ? x->end[i - 1] : 0;

        for (size_t k = first; k < x->end[i] && solution[i] > 0.5; k++)
            choices[n++] = (struct wire_choice){x->workloads[k], x->setting[i]};
    }
    return n;
}

/* Lowers a bound of what is open by what CBC found, not below `least`. */
static void search_lower_open(const struct search *s, int64_t *bound, const struct engine_answer *a,
                              int64_t least)
{
    int64_t open = a->is_complete ? s->objective : search_bound_of(s, a->bound);

    open = open > least ? open : least;
    *bound = open < *bound ? open : *bound;
}

/* Lowers a bound of what is open by the patterns that are near it, if these are few. CBC looks for any
 * solution that is better than the best known. */
static int search_patterns(struct search *s, int64_t *bound, double share)
{
    CLEANUP(cleanup_patterns_free) struct patterns *x = NULL;
    CLEANUP(cleanup_free) struct wire_choice *choices = NULL;
    struct engine_answer a = {0};
    struct mip mip = {0};
    int64_t least = *bound;
    int r = search_list(s, &x, &least, *bound, SEARCH_PATTERNS);

    if (r < 0 || !x || !mono_before(search_now(), s->end))
        return r;
    choices = calloc(x->n_workloads + 1, sizeof *choices);
    r = choices ? patterns_mip(&mip, x) : -ENOMEM;
    if (r == 0)
        r = search_engine(s, &a, &mip, s->objective > INT64_MIN ? s->objective + 1 : least, share, true);
    if (r == 0 && a.solution)
        r = search_send_solution(s, choices, search_pattern_choices(x, a.solution, choices));
    if (r == 0)
        search_lower_open(s, bound, &a, least - 1);
    free(a.solution);
    mip_done(&mip);
    return r;
}

/* ---- Combinations ---- */

static int search_model(struct search *s, int64_t *bound, double share)
{
    CLEANUP(cleanup_model_free) struct model *m = NULL;
    CLEANUP(cleanup_free) struct wire_choice *choices = NULL;
    struct engine_answer a = {0};
    int64_t least = s->objective > INT64_MIN ? s->objective + 1 : INT64_MIN;
    int r = model_new(&m, s->x);

    if (r == 0) {
        choices = calloc((size_t)m->mip.n_cols + 1, sizeof *choices);
        r = choices ? search_engine(s, &a, &m->mip, least, share, false) : -ENOMEM;
    }
    if (r == 0 && a.solution)
        r = search_send_solution(s, choices, model_choices(m, a.solution, choices));
    if (r == 0)
        search_lower_open(s, bound, &a, INT64_MIN);
    free(a.solution);
    return r;
}

/* Lowers a bound of what is open by all its combinations that may be part of a better solution. */
static int search_combinations(struct search *s, int64_t *bound, double share)
{
    const struct price_setting *last = &s->x->settings[s->w->p.n_settings - 1];
    size_t n_items = (size_t)(last->items - s->x->all_items) + last->n_items;
    CLEANUP(cleanup_free) struct price_item *items = malloc((n_items + 1) * sizeof *items);
    CLEANUP(cleanup_free) size_t *counts = malloc((s->w->p.n_settings + 1) * sizeof *counts);
    int r;

    if (!items || !counts)
        return -ENOMEM;
    memcpy(items, s->x->all_items, n_items * sizeof *items);
    for (size_t i = 0; i < s->w->p.n_settings; i++)
        counts[i] = s->x->settings[i].n_items;
    (void)price_drop(s->x, s->objective > INT64_MIN ? s->objective + 1 : INT64_MIN);
    r = search_model(s, bound, share);
    memcpy(s->x->all_items, items, n_items * sizeof *items);
    for (size_t i = 0; i < s->w->p.n_settings; i++)
        s->x->settings[i].n_items = counts[i];
    return r;
}

/* ---- Branches ---- */

static int search_leaf(void *arg, int64_t *objective, int64_t *bound, uint32_t n_tries)
{
    static const double shares[BRANCH_TRIES] = {0.05, 0.1, 0.3};
    struct search *s = arg;
    int r =
        n_tries == 0 ? search_patterns(s, bound, shares[0]) : search_combinations(s, bound, shares[n_tries]);

    *objective = s->objective;
    return r;
}

static int search_take_bound(void *arg, int64_t bound)
{
    return search_lower_bound(arg, bound);
}

static int search_branch(struct search *s)
{
    const struct branch_hooks hooks = {search_look, search_leaf, search_take_bound, s};
    int64_t objective = s->objective;

    return branch(s->x, &objective, s->end, &hooks);
}

static int search_all(struct search *s)
{
    int r = search_price(s);
    int64_t bound = s->bound;

    if (r == 0 && !search_is_done(s)) {
        if (s->objective > INT64_MIN && repair_is_for(s->x))
            r = search_branch(s);
        else
            r = search_patterns(s, &bound, 0.25);
    }
    if (r == 0)
        r = search_lower_bound(s, bound);
    if (r < 0 || search_is_done(s) || !mono_before(search_now(), s->end))
        return r;
    bound = s->bound;
    r = search_combinations(s, &bound, 1);
    return r < 0 ? r : search_lower_bound(s, bound);
}

int search_run(const struct wire_problem *w, search_send *send, void *arg)
{
    struct search s = {.w = w, .objective = INT64_MIN, .bound = w->bound, .send = send, .arg = arg};
    CLEANUP(cleanup_price_free) struct price *x = NULL;
    CLEANUP(cleanup_free) struct wire_choice *choices = NULL;
    size_t n_pairs;
    int r;

    s.end = mono_add(search_now(), w->limit_ms);
    r = price_new(&x, &w->p);
    if (r < 0)
        return r;
    s.x = x;
    n_pairs = w->p.n_sites * w->p.n_workloads + 1;
    choices = calloc(2 * n_pairs, sizeof *choices);
    if (!choices)
        return -ENOMEM;
    s.choices = choices;
    s.best = choices + n_pairs;
    if (w->has_start && w->n_start < n_pairs) {
        s.objective = search_objective(x, w->start, w->n_start);
        memcpy(s.best, w->start, w->n_start * sizeof *s.best);
        s.n_best = w->n_start;
    }
    r = search_all(&s);
    if (r == 0)
        r = send(arg, &(struct wire_message){.kind = WIRE_END, .value = search_is_done(&s)});
    return r;
}
