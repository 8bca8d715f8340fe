/* Answers: who is where, what is left, and what it is worth. Built from the bound's picks, and improved. */
#ifndef DS_OPTIMIZE_PRIMAL_H
#define DS_OPTIMIZE_PRIMAL_H

#include "controller/optimize/dual.h"
#include "controller/optimize/knapsack.h"
#include "controller/optimize/layout.h"
#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NO_SITE = UINT32_MAX, NO_SLOT = UINT32_MAX };

/* An answer that is being searched. Keeps all rules but max_moves, of which it counts the stays. A slot is
 * one replica of a workload; those of workload w are l->slots_first[w] and on, the placed ones
 * first. */
struct placing {
    struct layout *l;
    uint32_t *setting;  /* [site], or NO_SETTING */
    uint32_t *head;     /* [site]: the first of its slots, or NO_SLOT */
    int64_t *left;      /* [site * n_resources + resource] */
    uint32_t *count;    /* [workload]: placed replicas */
    uint32_t *workload; /* [slot] */
    uint32_t *site;     /* [slot] */
    uint32_t *next, *previous;
    int64_t *gain;  /* [slot]: the score, and move_cost for a replica that stays */
    uint32_t *used; /* [limit] */
    int64_t sum;    /* of gains */
    int64_t n_stays;
};

/* Nothing is placed. */
void placing_clear(struct placing *x);

/* What the workload gains there; a possible combination. */
int64_t placing_gain(const struct placing *x, uint32_t workload, uint32_t setting);
bool placing_stays(const struct placing *x, uint32_t workload, uint32_t site);
/* The answer: settings without a workload are dropped. */
void placing_export(const struct placing *x, struct solution *ret);

/* Small changes: shifts and swaps. Among answers of the same worth, lower indices. Ends where
 * none of them helps, or the search must end; does nothing to problems so large that looking at all pairs
 * takes seconds. */
void polish(struct placing *x);

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

#endif
