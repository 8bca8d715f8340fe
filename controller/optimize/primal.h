/* Answers, built from the bound's picks and improved: who is where, and what is left. */
#pragma once

#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"

/* An answer that is being searched. Keeps all rules but max_moves, of which it counts the stays. A slot is
 * one replica; those of workload w are l->slots_first[w] and on, the placed ones first. */
struct placing {
    struct layout *l;
    size_t n_small;     /* of the numbers of 32 bits, which begin with `setting` */
    size_t n_large;     /* of those of 64 bits, which begin with `left` */
    uint32_t *setting;  /* [site], or NO_SETTING */
    uint32_t *head;     /* [site]: the first of its slots, or UINT32_MAX */
    int64_t *left;      /* [site * n_resources + resource] */
    uint32_t *count;    /* [workload]: placed replicas */
    uint32_t *workload; /* [slot] */
    uint32_t *site;     /* [slot] */
    uint32_t *next, *previous;
    int64_t *gain; /* [slot]: the score, and move_cost for a replica that stays */
    int64_t sum;   /* of gains */
    int64_t n_stays;
};

/* Nothing is placed. */
void placing_clear(struct placing *x);

/* What the workload gains there; a possible combination. */
int64_t placing_gain(const struct placing *x, uint32_t workload, uint32_t setting);

bool placing_stays(const struct placing *x, uint32_t workload, uint32_t site);

/* The answer: settings without a workload are dropped. */
void placing_export(const struct placing *x, struct solution *ret);

/* Shifts and swaps; among answers of the same worth, lower indices. Does nothing to problems so large that
 * looking at all pairs takes seconds. */
void polish(struct placing *x);

struct primal {
    struct layout *l;
    struct knapsack *knapsack;
    struct placing now, best; /* best.sum: less than any answer's without one */
    bool has_best;
    struct prices prices;        /* what a workload must gain on another site */
    const int64_t *guide;        /* [workload]: prices to mix in; NULL: none */
    int guided;                  /* their share: 0 .. GUIDE_ALL */
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
