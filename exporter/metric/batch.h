/* A batch: what a round produces and what sinks consume. One set of series with a value for each, and one
 * timestamp. Immutable once sealed: any thread may read it, and take and drop references. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/metric/series.h"

/* A series with truncated label values, and 32 bits of a hash, never 0, of what each of them was. */
struct cut_labels {
    uint32_t series;
    uint32_t uncut[DS_LABELS];
};

struct batch {
    unsigned refs; /* atomic */
    char *score_name;
    struct series_set *set;
    bool new_set;            /* it is not that of the batch before */
    double *values;          /* by series */
    uint32_t *order;         /* by series: index of the result in the answer that the value comes from */
    unix_ms at;              /* timestamp of every value */
    struct cut_labels *cuts; /* sorted by series */
    size_t n_cuts;
    size_t merged_by_cut; /* duplicates whose labels differed before they were truncated */
};

struct batch *batch_ref(struct batch *b);
struct batch *batch_unref(struct batch *b);
DEFINE_CLEANUP(struct batch, batch_unref)
