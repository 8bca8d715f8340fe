/* Private to batch_*.c: the state of a batch under construction. */
#ifndef DS_METRIC_BATCH_BUILDER_H
#define DS_METRIC_BATCH_BUILDER_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/metric/series_set.h"
#include "exporter/metric/spellings.h"

enum { PIECES = DS_LABELS - 2 }; /* labels whose values come from results */

/* A series that the last set does not have. */
struct fresh {
    uint64_t hash;
    size_t at, n, name_n; /* its record in fresh_text */
    double value;
    uint32_t result;
    uint32_t id;  /* order of arrival: its place until the batch is sealed is last_count + id */
    uint32_t cut; /* 1-based index in cuts; 0: no label was truncated */
};

struct batch_builder {
    char *cluster_name, *score_name;
    size_t max_series;
    struct buf constants;
    /* The text before the i-th value of a result and, last, after all of them: slices of constants. */
    struct str piece[PIECES + 1];
    enum ds_label label[PIECES];

    struct series_set *last;    /* of the previous batch */
    struct spellings spellings; /* of last's series */
    size_t label_max;

    /* While a batch is being built. */
    struct buf name;
    double *values;    /* by series of last */
    uint32_t *results; /* index of the result that gave each value */
    uint8_t *seen;
    size_t n_seen, n_results, duplicates;
    struct buf fresh_text;
    struct fresh *fresh;
    size_t n_fresh, fresh_cap;
    uint32_t *fresh_slots;
    size_t fresh_mask;
    struct cut_labels *cuts; /* their series is a place */
    size_t n_cuts, cuts_cap, merged_by_cut;
    uint32_t *known_cut; /* like fresh.cut, by series of last; NULL before the first */
};

/* The series of the previous batch. */
static inline size_t batch_last_count(const struct batch_builder *b)
{
    return b->last ? series_count(b->last) : 0;
}

#endif
