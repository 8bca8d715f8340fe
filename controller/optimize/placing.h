/* An answer that is being searched: who is where, what is left, and what it is worth. Keeps all rules but
 * max_moves, of which it counts the stays. */
#ifndef DS_OPTIMIZE_PLACING_H
#define DS_OPTIMIZE_PLACING_H

#include "controller/optimize/layout.h"
#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { NO_SITE = UINT32_MAX, NO_SLOT = UINT32_MAX };

/* A slot is one replica of a workload; those of workload w are l->slots_first[w] and on, the placed ones
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

void placing_init(struct placing *x, struct layout *l);
/* Nothing is placed. */
void placing_clear(struct placing *x);
void placing_copy(struct placing *to, const struct placing *from);

/* What the workload gains there; a possible combination. */
int64_t placing_gain(const struct placing *x, uint32_t workload, uint32_t setting);
bool placing_stays(const struct placing *x, uint32_t workload, uint32_t site);
/* The placed slot that gains least, or NO_SLOT for a workload with replicas to place. */
uint32_t placing_least(const struct placing *x, uint32_t workload);
/* Whether the workload, which is not there, fits on the site with the setting in force, and no limit is in
 * its way. It may have no replica left to place. */
bool placing_fits(const struct placing *x, uint32_t workload, uint32_t site);
/* The site has no workload. */
void placing_set(struct placing *x, uint32_t site, uint32_t setting);
/* placing_fits(), and a replica is left to place. */
void placing_add(struct placing *x, uint32_t workload, uint32_t site);
/* Slots of the same workload may change. */
void placing_remove(struct placing *x, uint32_t slot);
/* The answer: settings without a workload are dropped. */
void placing_export(const struct placing *x, struct solution *ret);

/* Small changes: shifts, swaps, other settings. Among answers of the same worth, lower indices. Ends where
 * none of them helps, or the search must end; does nothing to problems so large that looking at all pairs
 * takes seconds. */
void polish(struct placing *x);

#endif
