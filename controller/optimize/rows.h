/* A sparse copy of the scores, which the search reads in their place. */
#ifndef DS_OPTIMIZE_ROWS_H
#define DS_OPTIMIZE_ROWS_H

#include "controller/optimize/layout.h"
#include "controller/optimize/prices.h"
#include "exporter/base/def.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The scores that are above, or less than a margin below, what workload and grains cost at some prices: no
 * others matter at prices near these. Rows that do not fit into the memory for it are read from the scores.
 */
struct rows {
    struct row_cell {
        uint32_t workload;
        int16_t score;
    } * cells;
    size_t *first;        /* [setting] into cells, SIZE_MAX: not copied */
    size_t *n;            /* [setting] */
    int64_t *grain;       /* [setting]: the price of a grain */
    int64_t *workload;    /* [workload]: its price */
    float *base, *grains; /* [workload]: what a score must be without grains, and the grains */
    int64_t margin; /* what scores that are not there are below their costs at least, at the present prices */
    bool is_filled;
};

/* Of a setting's row; none if it was not copied. */
static inline size_t rows_length(const struct rows *x, uint32_t setting)
{
    return x->first[setting] == SIZE_MAX ? 0 : x->n[setting];
}

/* -ENOMEM. */
MUST_USE int rows_init(struct rows *x, struct layout *l);
void rows_done(struct rows *x);
/* Copies what is worth more than the prices less `margin`, with grains at x->grain. */
void rows_fill(struct rows *x, const struct prices *prices, int64_t margin);
/* About how many cells that would copy. Nothing is copied then. */
size_t rows_estimate(struct rows *x, const struct prices *prices, int64_t margin);
/* Sets x->margin for the present prices. Returns whether at least half of `margin` is left. */
bool rows_reach(struct rows *x, const struct prices *prices, int64_t margin);

#endif
