/* Small placement problems with all that a problem may have, from a seed, and their best objective by trying
 * all answers. */
#pragma once

#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SMALL_SITES = 3, SMALL_WORKLOADS = 4, SMALL_SETTINGS = 6, SMALL_RESOURCES = 2 };

struct small_problem {
    struct opt_problem problem; /* borrows from the rest */
    uint64_t random;
    int64_t requests[SMALL_WORKLOADS * SMALL_RESOURCES], supplies[SMALL_SETTINGS * SMALL_RESOURCES];
    uint32_t replicas[SMALL_WORKLOADS], first_setting[SMALL_SITES + 1];
    int16_t scores[SMALL_SETTINGS * SMALL_WORKLOADS];
    struct problem_pair running[SMALL_SITES * SMALL_WORKLOADS];
};

/* 0 .. below - 1. */
static inline uint32_t small_below(struct small_problem *s, uint32_t below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)((s->random >> 20) % below);
}

static inline void small_fill_running(struct small_problem *s)
{
    struct opt_problem *p = &s->problem;

    if (small_below(s, 2))
        return;
    for (uint32_t w = 0; w < p->n_workloads; w++) {
        for (uint32_t k = 0; k < p->n_sites; k++) {
            if (small_below(s, 4) == 0)
                s->running[p->n_running++] = (struct problem_pair){w, k};
        }
    }
    p->move_cost = small_below(s, 2) ? small_below(s, 8) : 0;
    p->max_moves = small_below(s, 2) ? small_below(s, 3) : SIZE_MAX;
}

static inline void small_problem_make(struct small_problem *s, uint64_t seed)
{
    struct opt_problem *p = &s->problem;
    int64_t unit;

    memset(s, 0, sizeof(*s));
    s->random = (seed + 1) * 0x9e3779b97f4a7c15;
    *p = (struct opt_problem){.requests = s->requests,
                              .replicas = s->replicas,
                              .first_setting = s->first_setting,
                              .supplies = s->supplies,
                              .scores = s->scores,
                              .running = s->running,
                              .max_moves = SIZE_MAX};
    p->n_workloads = small_below(s, SMALL_WORKLOADS + 1);
    p->n_sites = small_below(s, SMALL_SITES + 1);
    p->n_resources = 1 + (small_below(s, 4) == 0);
    unit = small_below(s, 4) == 0 ? 1234567 : 1000; /* the former: too many cells for a knapsack */
    for (size_t i = 0; i < p->n_sites; i++)
        s->first_setting[i + 1] = s->first_setting[i] + small_below(s, 3);
    p->n_settings = s->first_setting[p->n_sites];
    for (size_t w = 0; w < p->n_workloads; w++)
        s->replicas[w] = 1 + (small_below(s, 4) == 0) * small_below(s, 4);
    for (size_t i = 0; i < p->n_workloads * p->n_resources; i++)
        s->requests[i] = small_below(s, 5) * unit + (unit > 1000 ? small_below(s, 999) : 0);
    for (size_t i = 0; i < p->n_settings * p->n_resources; i++)
        s->supplies[i] = small_below(s, 9) * unit;
    for (size_t i = 0; i < p->n_settings * p->n_workloads; i++)
        s->scores[i] = (int16_t)(small_below(s, 8) == 0 ? SCORE_IMPOSSIBLE : (int)small_below(s, 25) - 4);
    small_fill_running(s);
}

struct small_try {
    const struct opt_problem *p;
    uint32_t setting[SMALL_SITES];
    uint32_t placed[SMALL_WORKLOADS]; /* a bit for each site */
    bool is_feasible;
    int64_t best;
};

static inline bool small_fits(const struct small_try *t, uint32_t n_workloads)
{
    for (uint32_t s = 0; s < t->p->n_sites; s++) {
        for (size_t r = 0; r < t->p->n_resources; r++) {
            int64_t left = t->setting[s] == NO_SETTING ? 0 : problem_supply(t->p, t->setting[s])[r];

            for (uint32_t w = 0; w < n_workloads; w++)
                left -= t->placed[w] >> s & 1 ? problem_request(t->p, w)[r] : 0;
            if (left < 0)
                return false;
        }
    }
    return true;
}

static inline void small_judge(struct small_try *t)
{
    const struct opt_problem *p = t->p;
    size_t moves = 0;
    int64_t sum = 0;

    for (size_t i = 0; i < p->n_running; i++)
        moves += !(t->placed[p->running[i].workload] >> p->running[i].site & 1);
    for (uint32_t w = 0; w < p->n_workloads; w++) {
        for (uint32_t s = 0; s < p->n_sites; s++)
            sum += t->placed[w] >> s & 1 ? problem_score(p, t->setting[s], w) : 0;
    }
    sum -= (int64_t)moves * p->move_cost;
    if (moves > p->max_moves || (t->is_feasible && sum <= t->best))
        return;
    t->is_feasible = true;
    t->best = sum;
}

static inline void small_try_workload(struct small_try *t, uint32_t workload)
{
    const struct opt_problem *p = t->p;

    if (workload == p->n_workloads) {
        small_judge(t);
        return;
    }
    for (uint32_t sites = 0; sites < 1U << p->n_sites; sites++) {
        bool possible = (uint32_t)__builtin_popcount(sites) <= p->replicas[workload];

        for (uint32_t s = 0; s < p->n_sites && possible; s++) {
            if (sites >> s & 1)
                possible = t->setting[s] != NO_SETTING &&
                           problem_score(p, t->setting[s], workload) != SCORE_IMPOSSIBLE;
        }
        t->placed[workload] = sites;
        if (possible && small_fits(t, workload + 1))
            small_try_workload(t, workload + 1);
    }
}

static inline void small_try_site(struct small_try *t, uint32_t site)
{
    if (site == SMALL_SITES || site == t->p->n_sites) {
        small_try_workload(t, 0);
        return;
    }
    t->setting[site] = NO_SETTING;
    if (t->p->first_setting[site] == t->p->first_setting[site + 1])
        small_try_site(t, site + 1);
    for (uint32_t k = t->p->first_setting[site]; k < t->p->first_setting[site + 1]; k++) {
        t->setting[site] = k;
        small_try_site(t, site + 1);
    }
}

/* Returns whether there is an answer, and its objective. */
static inline bool small_problem_best(const struct opt_problem *p, int64_t *best)
{
    struct small_try t = {.p = p};

    small_try_site(&t, 0);
    *best = t.best;
    return t.is_feasible;
}
