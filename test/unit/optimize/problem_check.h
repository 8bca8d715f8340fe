/* What problem.h asks of a problem. */
#pragma once

#include "controller/optimize/problem.h"

static inline const char *check_sizes(const struct opt_problem *p)
{
    if (p->n_resources == 0)
        return "no resource";
    if (p->n_workloads >= UINT32_MAX || p->n_sites >= UINT32_MAX || p->n_settings >= UINT32_MAX)
        return "too many workloads, sites or settings";
    if (p->n_sites > 0 && (p->first_setting[0] != 0 || p->first_setting[p->n_sites] != p->n_settings))
        return "the sites' settings are not all settings";
    for (size_t i = 0; i < p->n_sites; i++) {
        if (p->first_setting[i] > p->first_setting[i + 1])
            return "the sites' settings do not ascend";
    }
    return NULL;
}

static inline const char *check_amounts(const struct opt_problem *p)
{
    for (size_t i = 0; i < p->n_workloads; i++) {
        if (p->replicas[i] == 0)
            return "a workload without replicas";
    }
    for (size_t i = 0; i < p->n_workloads * p->n_resources; i++) {
        if (p->requests[i] < 0)
            return "a negative request";
    }
    for (size_t i = 0; i < p->n_settings * p->n_resources; i++) {
        if (p->supplies[i] < 0)
            return "a negative supply";
    }
    return NULL;
}

static inline const char *check_running(const struct opt_problem *p)
{
    if (p->move_cost < 0 || p->move_cost > MOVE_COST_MAX)
        return "a cost of moves that is out of range";
    for (size_t i = 0; i < p->n_running; i++) {
        const struct problem_pair *r = &p->running[i];

        if (r->workload >= p->n_workloads || r->site >= p->n_sites)
            return "a running replica that is out of range";
        if (i > 0 && problem_pair_compare(r, r - 1) <= 0)
            return "running replicas do not ascend";
    }
    return NULL;
}

static inline const char *problem_check(const struct opt_problem *p)
{
    return check_sizes(p) ?: check_amounts(p) ?: check_running(p);
}
