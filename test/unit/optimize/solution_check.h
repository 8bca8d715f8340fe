/* Judges solutions, without the solver's ideas, so that it finds its mistakes. */
#pragma once

#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/def.h"

#include <stdlib.h>

static inline const char *check_settings(const struct opt_problem *p, const struct solution *s)
{
    for (size_t i = 0; i < p->n_sites; i++) {
        if (s->setting[i] != NO_SETTING &&
            (s->setting[i] < p->first_setting[i] || s->setting[i] >= p->first_setting[i + 1]))
            return "a site has a setting of another site";
    }
    return NULL;
}

static inline const char *check_pairs(const struct opt_problem *p, const struct solution *s)
{
    uint32_t replicas = 0;

    for (size_t i = 0; i < s->n_placed; i++) {
        const struct problem_pair *x = &s->placed[i];

        if (x->workload >= p->n_workloads || x->site >= p->n_sites)
            return "a replica is placed out of range";
        if (i > 0 &&
            (x->workload < x[-1].workload || (x->workload == x[-1].workload && x->site < x[-1].site)))
            return "the placed replicas do not ascend";
        if (i > 0 && x->workload == x[-1].workload && x->site == x[-1].site)
            return "two replicas of a workload are on one site";
        replicas = i > 0 && x->workload == x[-1].workload ? replicas + 1 : 1;
        if (replicas > p->replicas[x->workload])
            return "more replicas are placed than the workload has";
        if (s->setting[x->site] == NO_SETTING)
            return "a replica is on a site without a setting";
        if (problem_score(p, s->setting[x->site], x->workload) == SCORE_IMPOSSIBLE)
            return "a replica is where it can never go";
    }
    return NULL;
}

static inline const char *check_amounts_used(const struct opt_problem *p, const struct solution *s,
                                             int64_t *left, bool *has_workload)
{
    for (size_t i = 0; i < p->n_sites; i++) {
        for (size_t r = 0; r < p->n_resources; r++)
            left[i * p->n_resources + r] =
                s->setting[i] == NO_SETTING ? 0 : problem_supply(p, s->setting[i])[r];
    }
    for (size_t i = 0; i < s->n_placed; i++) {
        size_t site = s->placed[i].site;

        has_workload[site] = true;
        for (size_t r = 0; r < p->n_resources; r++) {
            int64_t request = problem_request(p, s->placed[i].workload)[r];

            if (request > left[site * p->n_resources + r])
                return "a site has not as much as its workloads request";
            left[site * p->n_resources + r] -= request;
        }
    }
    for (size_t i = 0; i < p->n_sites; i++) {
        if (s->setting[i] != NO_SETTING && !has_workload[i])
            return "a site without a workload has a setting";
    }
    return NULL;
}

static inline bool pair_before(const struct problem_pair *a, const struct problem_pair *b)
{
    return a->workload != b->workload ? a->workload < b->workload : a->site < b->site;
}

static inline const char *check_figures(const struct opt_problem *p, const struct solution *s)
{
    int64_t sum = 0;
    size_t at = 0, moves = 0;

    for (size_t i = 0; i < p->n_running; i++) {
        while (at < s->n_placed && pair_before(&s->placed[at], &p->running[i]))
            at++;
        moves += at == s->n_placed || pair_before(&p->running[i], &s->placed[at]);
    }
    for (size_t i = 0; i < s->n_placed; i++)
        sum += problem_score(p, s->setting[s->placed[i].site], s->placed[i].workload);
    if (s->n_moves != moves)
        return "the number of moves is wrong";
    if (moves > p->max_moves)
        return "there are more moves than allowed";
    if (s->objective != sum - p->move_cost * (int64_t)moves)
        return "the objective is wrong";
    if (s->bound < s->objective)
        return "the bound is below the objective";
    return NULL;
}

static inline const char *check_infeasible(const struct opt_problem *p, const struct solution *s)
{
    for (size_t i = 0; i < p->n_sites; i++) {
        if (s->setting[i] != NO_SETTING)
            return "an infeasible solution has a setting";
    }
    if (s->n_placed > 0 || s->n_moves > 0 || s->objective != 0)
        return "an infeasible solution is not empty";
    if (p->max_moves >= p->n_running)
        return "a problem that any answer solves is called infeasible";
    return NULL;
}

/* NULL if a solution of a well-formed problem keeps every rule, objective and n_moves are right, and the
 * bound is not below the objective; otherwise what is wrong with it, a literal. */
static inline const char *solution_check(const struct opt_problem *p, const struct solution *s)
{
    CLEANUP(cleanup_free) int64_t *left = calloc(p->n_sites * p->n_resources + 1, sizeof(*left));
    CLEANUP(cleanup_free) bool *has_workload = calloc(p->n_sites + 1, sizeof(*has_workload));
    const char *wrong;

    if (!left || !has_workload)
        return "out of memory";
    if (s->is_infeasible)
        return check_infeasible(p, s);
    wrong = check_settings(p, s);
    if (!wrong)
        wrong = check_pairs(p, s);
    if (!wrong)
        wrong = check_amounts_used(p, s, left, has_workload);
    return wrong ? wrong : check_figures(p, s);
}
