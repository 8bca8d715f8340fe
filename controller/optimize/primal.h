/* Answers: built from the bound's picks, and improved. */
#ifndef DS_OPTIMIZE_PRIMAL_H
#define DS_OPTIMIZE_PRIMAL_H

#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/placing.h"
#include "controller/optimize/prices.h"
#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct primal {
    struct layout *l;
    struct knapsack *knapsack;
    struct placing now, best;
    bool has_best;
    struct prices prices;        /* what a workload must gain on another site */
    const int64_t *guide;        /* [workload]: prices to mix in; NULL: none */
    int guided;                  /* their share: 0 .. GUIDE_ALL */
    bool is_free;                /* see improve() */
    int64_t *grain;              /* [setting]: what a grain of its supply was worth */
    struct problem_pair *undone; /* where replicas were before a change */
    size_t n_undone;
};

void primal_init(struct primal *x, struct layout *l, struct knapsack *k);
/* Begins with what runs, as far as there is room for it in each site's first setting: a search that is cut
 * early moves nothing for nothing. */
void primal_start(struct primal *x);
/* Builds an answer from nothing. If max_moves asks for stays, has_best tells whether it found enough. */
void primal_construct(struct primal *x);
/* Builds an answer from picks, and improves it. */
void primal_repair(struct primal *x, const struct dual *d);
/* Adds picks to the present answer, as far as all rules allow; a replica that gains more takes another's
 * place. */
void primal_place(struct primal *x, const struct dual_pick *picks, size_t n);
/* Keeps the present answer if it is the best. */
void primal_keep(struct primal *x);
/* A number of stays that no answer exceeds. */
int64_t primal_most_stays(struct primal *x);

#endif
