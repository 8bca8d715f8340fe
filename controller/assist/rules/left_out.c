#include "controller/assist/rules/left_out.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <stdio.h>

WORD_TABLE(left_out_reason_word, enum left_out_reason, LEFT_OUT_REASONS,
           {[LEFT_OUT_KIND_DIFFERS] = "KindDiffers",
            [LEFT_OUT_NO_SCORE] = "NoScore",
            [LEFT_OUT_PINNED] = "Pinned",
            [LEFT_OUT_NO_CAPACITY] = "NoCapacity",
            [LEFT_OUT_NEGATIVE_SCORE] = "NegativeScore",
            [LEFT_OUT_SPREAD] = "Spread",
            [LEFT_OUT_MOVE_BUDGET] = "MoveBudget"});

enum { NO_LIMIT = UINT32_MAX };

struct finding {
    const struct model *m;
    const struct solution *s;
    size_t *first;    /* [workload]: of its placements in the solution; one more */
    uint32_t *limit;  /* [workload]: the first full limit of it alone */
    uint32_t *next;   /* [limit]: the next one of the same workload */
    uint32_t *shared; /* full limits of several workloads */
    size_t n_shared;
    bool *blocked, *taken; /* [site]: for the workload that is looked at */
};

static bool has_u32(const uint32_t *list, size_t n, uint32_t v)
{
    return n && bsearch(&v, list, n, sizeof(v), model_u32_compare);
}

static size_t limit_used(const struct finding *f, const struct problem_limit *l)
{
    size_t used = 0;

    for (size_t i = 0; i < l->n_workloads; i++)
        for (size_t j = f->first[l->workloads[i]]; j < f->first[l->workloads[i] + 1]; j++)
            used += has_u32(l->sites, l->n_sites, f->s->placed[j].site);
    return used;
}

static void finding_sort_limits(struct finding *f)
{
    const struct problem *p = &f->m->problem;

    for (size_t w = 0; w < p->n_workloads; w++)
        f->limit[w] = NO_LIMIT;
    for (size_t i = 0; i < p->n_limits; i++) {
        const struct problem_limit *l = &p->limits[i];

        if (limit_used(f, l) < l->max)
            continue;
        if (l->n_workloads > 1) {
            f->shared[f->n_shared++] = (uint32_t)i;
            continue;
        }
        f->next[i] = f->limit[l->workloads[0]];
        f->limit[l->workloads[0]] = (uint32_t)i;
    }
}

static void finding_block(struct finding *f, const struct problem_limit *l)
{
    for (size_t i = 0; i < l->n_sites; i++)
        f->blocked[l->sites[i]] = true;
}

static void finding_look_at(struct finding *f, uint32_t w)
{
    const struct problem *p = &f->m->problem;

    memset(f->blocked, 0, p->n_sites * sizeof(bool));
    memset(f->taken, 0, p->n_sites * sizeof(bool));
    for (size_t j = f->first[w]; j < f->first[w + 1]; j++)
        f->taken[f->s->placed[j].site] = true;
    for (uint32_t i = f->limit[w]; i != NO_LIMIT; i = f->next[i])
        finding_block(f, &p->limits[i]);
    for (size_t i = 0; i < f->n_shared; i++) {
        const struct problem_limit *l = &p->limits[f->shared[i]];

        if (has_u32(l->workloads, l->n_workloads, w))
            finding_block(f, l);
    }
}

static bool fits_alone(const struct problem *p, size_t setting, size_t w)
{
    const int64_t *request = problem_request(p, w), *supply = problem_supply(p, setting);

    for (size_t r = 0; r < p->n_resources; r++)
        if (request[r] > supply[r])
            return false;
    return true;
}

/* How many settings are left of those that a workload might use, as one rule after the other is kept. */
struct places {
    size_t scored, fitting, gaining, free, allowed;
};

static struct places finding_count(const struct finding *f, uint32_t w)
{
    const struct problem *p = &f->m->problem;
    struct places n = {0};

    for (size_t setting = 0; setting < p->n_settings; setting++) {
        int16_t score = problem_score(p, setting, w);
        uint32_t site = f->m->settings[setting].site;

        if (score == SCORE_IMPOSSIBLE)
            continue;
        n.scored++;
        if (!fits_alone(p, setting, w))
            continue;
        n.fitting++;
        if (score <= 0)
            continue;
        n.gaining++;
        if (f->taken[site])
            continue;
        n.free++;
        n.allowed += !f->blocked[site];
    }
    return n;
}

static void PRINTF_LIKE(3, 4)
    left_out_because(struct left_out *l, enum left_out_reason reason, const char *fmt, ...)
{
    va_list args;

    l->reason = reason;
    va_start(args, fmt);
    (void)vsnprintf(l->message, sizeof(l->message), fmt, args);
    va_end(args);
}

static void finding_explain(struct finding *f, struct left_out *l)
{
    const struct model_workload *w = &f->m->workloads[l->workload];
    const char *kind = f->m->kinds[w->kind_id];
    struct places n;

    finding_look_at(f, l->workload);
    n = finding_count(f, l->workload);
    if (!w->has_kind)
        left_out_because(l, LEFT_OUT_KIND_DIFFERS, "No policy of the request supplies %.60s.", kind);
    else if (!n.scored && w->lost_to_rules)
        left_out_because(l, LEFT_OUT_PINNED, "pin and forbid leave no cluster that has a score for it.");
    else if (!n.scored)
        left_out_because(l, LEFT_OUT_NO_SCORE, "No policy that supplies %.60s has a score for app %.60s.",
                         kind, w->app);
    else if (f->s->is_infeasible)
        left_out_because(l, LEFT_OUT_MOVE_BUDGET, "No answer within moves.max was found.");
    else if (!n.fitting)
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "No policy with a score for it supplies as much as one replica requests.");
    else if (!n.gaining)
        left_out_because(l, LEFT_OUT_NEGATIVE_SCORE, "No score is above 0 where it fits.");
    else if (!n.free)
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "A cluster holds one replica, and no further cluster has room and a score above 0.");
    else if (!n.allowed)
        left_out_because(l, LEFT_OUT_SPREAD, "spread allows no further replica where it fits.");
    else if (f->m->problem.max_moves != SIZE_MAX && f->s->n_moves >= f->m->problem.max_moves)
        left_out_because(l, LEFT_OUT_MOVE_BUDGET,
                         "There is no room without moving others, and moves.max allows no further move.");
    else
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "Where it fits, the room is taken by workloads that gain more.");
}

static int finding_run(struct finding *f, struct left_out *list, size_t n)
{
    const struct problem *p = &f->m->problem;

    f->limit = calloc(p->n_workloads + 1, sizeof(uint32_t));
    f->next = calloc(p->n_limits + 1, sizeof(uint32_t));
    f->shared = calloc(p->n_limits + 1, sizeof(uint32_t));
    f->blocked = calloc(p->n_sites + 1, sizeof(bool));
    f->taken = calloc(p->n_sites + 1, sizeof(bool));
    if (!f->limit || !f->next || !f->shared || !f->blocked || !f->taken)
        return -ENOMEM;
    finding_sort_limits(f);
    for (size_t i = 0; i < n; i++)
        finding_explain(f, &list[i]);
    return 0;
}

static void finding_done(struct finding *f)
{
    free(f->first);
    free(f->limit);
    free(f->next);
    free(f->shared);
    free(f->blocked);
    free(f->taken);
}

int left_out_find(struct left_out **ret, size_t *ret_n, const struct model *m, const struct solution *s)
{
    struct finding f = {.m = m, .s = s, .first = calloc(m->problem.n_workloads + 1, sizeof(size_t))};
    CLEANUP(cleanup_free) struct left_out *list = calloc(m->problem.n_workloads + 1, sizeof(*list));
    size_t n = 0, at = 0;
    int r = f.first && list ? 0 : -ENOMEM;

    for (uint32_t w = 0; r == 0 && w < m->problem.n_workloads; w++) {
        f.first[w] = at;
        while (at < s->n_placed && s->placed[at].workload == w)
            at++;
        f.first[w + 1] = at;
        if (at - f.first[w] < m->problem.replicas[w])
            list[n++] = (struct left_out){w, m->problem.replicas[w] - (uint32_t)(at - f.first[w]), 0, ""};
    }
    r = r ?: finding_run(&f, list, n);
    finding_done(&f);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(list);
    *ret_n = n;
    return 0;
}
