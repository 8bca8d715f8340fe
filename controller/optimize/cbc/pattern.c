#include "controller/optimize/cbc/pattern.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PATTERN_VISITS = 1000 }; /* of items, for each pattern that may be found */

struct patterns *patterns_free(struct patterns *x)
{
    if (x) {
        free(x->setting);
        free(x->end);
        free(x->workloads);
        free(x);
    }
    return NULL;
}

/* ---- Listing them ---- */

/* The search of one setting: which of the items before the one at hand are in, and what is left. */
struct pattern_search {
    struct patterns *out;
    const struct price_setting *s;
    uint32_t setting;
    const double *table; /* price_table() */
    double least;        /* what a pattern must gain */
    int64_t *left;       /* [depth * n_resources + resource] */
    uint32_t *chosen;    /* workloads */
    size_t n_chosen;
    size_t *visits; /* left: with several resources a search may come to many dead ends */
};

static int pattern_keep(const struct pattern_search *d)
{
    struct patterns *x = d->out;

    if (d->n_chosen == 0)
        return 0;
    if (x->n == x->max)
        return -EFBIG;
    if (x->n_workloads + d->n_chosen > x->cap_workloads) {
        size_t cap = x->cap_workloads * 2 + d->n_chosen + 1024;
        uint32_t *larger = realloc(x->workloads, cap * sizeof *larger);

        if (!larger)
            return -ENOMEM;
        x->workloads = larger;
        x->cap_workloads = cap;
    }
    memcpy(x->workloads + x->n_workloads, d->chosen, d->n_chosen * sizeof *d->chosen);
    x->n_workloads += d->n_chosen;
    x->setting[x->n] = d->setting;
    x->end[x->n++] = x->n_workloads;
    return 0;
}

static bool pattern_take(struct pattern_search *d, const struct price_item *item)
{
    const struct problem *p = d->out->x->p;
    const int64_t *request = problem_request(p, item->workload);
    int64_t *now = d->left + d->n_chosen * p->n_resources, *next = now + p->n_resources;

    for (size_t k = 0; k < p->n_resources; k++) {
        next[k] = now[k] - request[k];
        if (next[k] < 0)
            return false;
    }
    d->chosen[d->n_chosen++] = item->workload;
    return true;
}

/* Tries item i with and without, where the rest can still gain enough. No deeper than there are items. */
static int pattern_visit(struct pattern_search *d, size_t i, int room, double gained)
{
    const struct price_item *item = &d->s->items[i];
    int r = 0;

    if (gained + d->table[i * ((size_t)d->s->capacity + 1) + (size_t)room] < d->least)
        return 0;
    if (i == d->s->n_items)
        return pattern_keep(d);
    if (--*d->visits == 0)
        return -EFBIG;
    if (item->weight <= room && pattern_take(d, item)) {
        r = pattern_visit(d, i + 1, room - item->weight, gained + item->profit);
        d->n_chosen--;
    }
    return r < 0 ? r : pattern_visit(d, i + 1, room, gained);
}

static int pattern_list(struct patterns *out, int64_t objective)
{
    struct price *x = out->x;
    const struct problem *p = x->p;
    CLEANUP(cleanup_free) int64_t *left = calloc((p->n_workloads + 2) * p->n_resources, sizeof *left);
    CLEANUP(cleanup_free) uint32_t *chosen = calloc(p->n_workloads + 1, sizeof *chosen);
    size_t visits = (out->max + 1) * PATTERN_VISITS;
    int r = left && chosen ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < p->n_settings && r == 0; i++) {
        const struct price_setting *s = &x->settings[i];
        struct pattern_search d = {
            .out = out, .s = s, .setting = i, .left = left, .chosen = chosen, .visits = &visits};

        d.least = x->site_value[s->site] - (x->bound - (double)objective) - 1e-6;
        if (s->n_items == 0 || s->value < d.least)
            continue;
        memcpy(left, problem_supply(p, i), p->n_resources * sizeof *left);
        d.table = price_table(x, s);
        r = pattern_visit(&d, 0, s->capacity, 0);
    }
    return r;
}

int patterns_new(struct patterns **ret, struct price *x, int64_t objective, size_t max)
{
    CLEANUP(cleanup_patterns_free) struct patterns *out = calloc(1, sizeof *out);
    int r;

    if (!out)
        return -ENOMEM;
    out->x = x;
    out->max = max;
    out->setting = calloc(max + 1, sizeof *out->setting);
    out->end = calloc(max + 1, sizeof *out->end);
    if (!out->setting || !out->end)
        return -ENOMEM;
    r = pattern_list(out, objective);
    if (r == 0)
        *ret = TAKE_PTR(out);
    return r;
}

/* ---- The program that chooses among them ---- */

/* What a workload gains with a setting. */
static double pattern_gain(const struct price *x, uint32_t setting, uint32_t workload)
{
    bool stays = price_stays(x, x->settings[setting].site, workload);

    return (double)problem_score(x->p, setting, workload) + (stays ? (double)x->p->move_cost : 0);
}

/* A limit's row, and that of moves: how many workloads of the pattern count. */
static int pattern_put_counts(struct mip *m, const struct patterns *x, size_t pattern,
                              const uint32_t *workloads, size_t n)
{
    const struct problem *p = x->x->p;
    uint32_t site = x->x->settings[x->setting[pattern]].site;
    int row = (int)(p->n_workloads + p->n_sites), r = 0;

    for (size_t l = 0; l <= p->n_limits && r == 0; l++, row++) {
        int count = 0;

        for (size_t i = 0; i < n; i++)
            count += l < p->n_limits ? price_limit_has(&p->limits[l], site, workloads[i])
                                     : price_stays(x->x, site, workloads[i]);
        if (count > 0)
            r = mip_put(m, row, (int)pattern, count);
    }
    return r;
}

static int pattern_put(struct mip *m, const struct patterns *x, size_t pattern)
{
    const struct problem *p = x->x->p;
    size_t first = pattern > 0 ? x->end[pattern - 1] : 0, n = x->end[pattern] - first;
    const uint32_t *workloads = x->workloads + first;
    uint32_t setting = x->setting[pattern];
    int r = mip_put(m, (int)(p->n_workloads + x->x->settings[setting].site), (int)pattern, 1);

    for (size_t i = 0; i < n && r == 0; i++) {
        m->cost[pattern] -= pattern_gain(x->x, setting, workloads[i]);
        r = mip_put(m, (int)workloads[i], (int)pattern, 1);
    }
    return r < 0 ? r : pattern_put_counts(m, x, pattern, workloads, n);
}

int patterns_mip(struct mip *ret, const struct patterns *x)
{
    const struct problem *p = x->x->p;
    struct mip m = {0};
    int r = mip_columns(&m, x->n);

    for (size_t i = 0; i < p->n_workloads && r == 0; i++)
        r = mip_row(&m, -INFINITY, p->replicas[i]);
    for (size_t i = 0; i < p->n_sites && r == 0; i++)
        r = mip_row(&m, -INFINITY, 1);
    for (size_t i = 0; i < p->n_limits && r == 0; i++)
        r = mip_row(&m, -INFINITY, p->limits[i].max);
    if (r == 0)
        r = mip_row(&m, price_must_stay(p), INFINITY);
    for (size_t i = 0; i < x->n && r == 0; i++)
        r = pattern_put(&m, x, i);
    if (r == 0)
        r = mip_finish(&m);
    if (r == 0)
        *ret = m;
    else
        mip_done(&m);
    return r;
}
