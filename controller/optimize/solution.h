/* What a solver makes of a placement problem. */
#pragma once

#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NO_SETTING = UINT32_MAX };

struct solution {
    uint32_t *setting;           /* [n_sites]: NO_SETTING for a site without a workload */
    struct problem_pair *placed; /* ascending by workload, then site */
    size_t n_placed;
    size_t n_moves;
    int64_t objective;  /* scores - move_cost * n_moves */
    int64_t bound;      /* proven: no answer is better. INT64_MIN: proven that max_moves cannot be kept */
    bool is_infeasible; /* no answer that keeps max_moves was found: nothing placed, objective and moves 0 */
    bool deadline_reached; /* given more time, the answer or the bound might be better */
    const char *engine;    /* which found it: "relaxation", "branch and bound"; a literal */
};

void solution_done(struct solution *s);
/* How many replicas of the workload are placed from this one on. */
size_t solution_count_replicas(const struct solution *s, size_t first, uint32_t workload);
/* How far the objective is from the bound, relative to the larger of the objective's size and 1: 0 is proven
 * optimal, or proven infeasible. */
double solution_gap(const struct solution *s);
