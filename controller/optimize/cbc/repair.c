#include "controller/optimize/cbc/repair.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <string.h>

enum { REPAIR_SWEEPS = 20 };

struct repair {
    struct price *x;
    bool *set;         /* [site * n_workloads + workload] */
    uint32_t *setting; /* [n_sites]: NO_SETTING */
    uint32_t *taken;   /* [n_workloads] */
    bool *next;        /* [n_workloads] */
};

bool repair_is_for(const struct price *x)
{
    return x->is_whole && x->p->n_limits == 0 && price_must_stay(x->p) <= 0;
}

static int64_t repair_gain(const struct repair *r, uint32_t site, uint32_t workload)
{
    const struct problem *p = r->x->p;

    return problem_score(p, r->setting[site], workload) +
           (price_stays(r->x, site, workload) ? p->move_cost : 0);
}

/* The site where the workload gains least. */
static uint32_t repair_worst(const struct repair *r, uint32_t workload)
{
    const struct problem *p = r->x->p;
    uint32_t worst = NO_SETTING;

    for (uint32_t i = 0; i < p->n_sites; i++) {
        if (r->set[i * p->n_workloads + workload] &&
            (worst == NO_SETTING || repair_gain(r, i, workload) < repair_gain(r, worst, workload)))
            worst = i;
    }
    return worst;
}

static void repair_drop(struct repair *r, uint32_t workload)
{
    while (r->taken[workload] > r->x->p->replicas[workload]) {
        r->set[repair_worst(r, workload) * r->x->p->n_workloads + workload] = false;
        r->taken[workload]--;
    }
}

/* What workloads gain here beyond what they gain where they are taken from. */
static void repair_profits(const struct repair *r, struct price_setting *s)
{
    for (size_t k = 0; k < s->n_items; k++) {
        uint32_t w = s->items[k].workload;
        int64_t lost = 0;

        if (r->taken[w] >= r->x->p->replicas[w])
            lost = repair_gain(r, repair_worst(r, w), w);
        s->items[k].profit = (double)(s->items[k].gain - lost);
    }
}

/* The setting of the site and what runs there, as well as can be, given where all others are. */
static bool repair_site(struct repair *r, uint32_t site)
{
    const struct problem *p = r->x->p;
    bool *own = r->set + site * p->n_workloads, *next = r->next;
    uint32_t best = NO_SETTING;
    double most = 0.5;

    memcpy(next, own, p->n_workloads * sizeof *own);
    for (uint32_t w = 0; w < p->n_workloads; w++) {
        if (own[w]) {
            r->taken[w]--;
            most += (double)repair_gain(r, site, w); /* better only by a whole point */
        }
    }
    memset(own, 0, p->n_workloads * sizeof *own);
    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        struct price_setting *s = &r->x->settings[i];
        double value;

        repair_profits(r, s);
        value = price_knapsack(r->x, s);
        if (value <= most)
            continue;
        most = value;
        best = i;
        memset(next, 0, p->n_workloads * sizeof *next);
        for (size_t k = 0; k < s->n_items; k++)
            next[s->items[k].workload] = r->x->set[k];
    }
    if (best != NO_SETTING)
        r->setting[site] = best;
    memcpy(own, next, p->n_workloads * sizeof *own);
    for (uint32_t w = 0; w < p->n_workloads; w++) {
        if (!own[w])
            continue;
        if (r->taken[w] == p->replicas[w]) {
            own[w] = false;
            r->set[repair_worst(r, w) * p->n_workloads + w] = false;
            own[w] = true;
        } else {
            r->taken[w]++;
        }
    }
    return best != NO_SETTING;
}

static uint32_t repair_choices(const struct repair *r, struct wire_choice *choices)
{
    const struct problem *p = r->x->p;
    uint32_t n = 0;

    for (uint32_t w = 0; w < p->n_workloads; w++) {
        for (uint32_t i = 0; i < p->n_sites; i++) {
            if (r->set[i * p->n_workloads + w])
                choices[n++] = (struct wire_choice){w, r->setting[i]};
        }
    }
    return n;
}

int repair(struct price *x, struct wire_choice *choices, uint32_t *ret_n)
{
    const struct problem *p = x->p;
    size_t n_pairs = p->n_sites * p->n_workloads;
    CLEANUP(cleanup_free) bool *set = malloc((n_pairs + 1) * sizeof *set);
    CLEANUP(cleanup_free) uint32_t *setting = malloc((p->n_sites + 1) * sizeof *setting);
    CLEANUP(cleanup_free) uint32_t *taken = malloc((p->n_workloads + 1) * sizeof *taken);
    CLEANUP(cleanup_free) bool *next = malloc((p->n_workloads + 1) * sizeof *next);
    struct repair r = {x, set, setting, taken, next};
    bool is_better = true;

    if (!set || !setting || !taken || !next)
        return -ENOMEM;
    memcpy(set, x->best_set, n_pairs * sizeof *set);
    memcpy(setting, x->best, p->n_sites * sizeof *setting);
    for (uint32_t w = 0; w < p->n_workloads; w++) {
        taken[w] = 0;
        for (size_t i = 0; i < p->n_sites; i++)
            taken[w] += set[i * p->n_workloads + w];
        repair_drop(&r, w);
    }
    for (int sweep = 0; sweep < REPAIR_SWEEPS && is_better; sweep++) {
        is_better = false;
        for (uint32_t i = 0; i < p->n_sites; i++)
            is_better |= repair_site(&r, i);
    }
    *ret_n = repair_choices(&r, choices);
    return 0;
}
