/* Label sets as remote write 1.0 encodes them. When a set of series is new, each series' labels get the
 * endpoint's external labels, are relabelled, sorted, rid of empty values and encoded, once. */
#pragma once

#include "exporter/base/doc.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "remotewrite/families.h"
#include "remotewrite/relabel.h"

struct rw_endpoint_config;

enum { LABEL_BAD_NAME_BYTES = 64, LABEL_BYTES_MAX = 1 << 30 };

/* The encoded labels of many series, back to back: the `labels` fields of a TimeSeries. */
struct label_bytes {
    size_t n;
    struct buf bytes;
    size_t *at;        /* n + 1 offsets into bytes; NULL while empty */
    uint32_t *series;  /* index of each in the set it comes from; NULL: the same index */
    size_t invalid;    /* series with invalid names, or with repeated, missing or too many labels */
    size_t merged;     /* series whose labels became those of an earlier one, such as by labeldrop */
    size_t over_limit; /* series for which an expression exceeded its limits */
    char bad_name[LABEL_BAD_NAME_BYTES]; /* the first invalid one, maybe truncated */
};

/* Series that are not sent, for any of these reasons. */
static inline size_t label_bytes_left_out(const struct label_bytes *l)
{
    return l->invalid + l->merged + l->over_limit;
}

static inline struct str label_bytes_at(const struct label_bytes *l, size_t i)
{
    return (struct str){l->bytes.p + l->at[i], l->at[i + 1] - l->at[i]};
}

struct label_bytes *label_bytes_free(struct label_bytes *l);
DEFINE_CLEANUP(struct label_bytes, label_bytes_free)
/* The labels of n series of a set, from `first` on; notes the metrics' names in `families`, unless that is
 * NULL. */
struct label_bytes *label_bytes_new(const struct series_set *set, size_t first, size_t n,
                                    const struct rw_endpoint_config *c, struct families *families);
/* The labels of the series pick[0..n) of a set. */
struct label_bytes *label_bytes_pick(const struct series_set *set, const uint32_t *pick, size_t n,
                                     const struct rw_endpoint_config *c);
/* Keeps the first of series with the same labels, and none whose labels `not_in` (may be NULL) has. */
void label_bytes_distil(struct label_bytes *l, const struct label_bytes *not_in);

/* The labels of single series of a set. */
struct label_source;
struct label_source *label_source_new(const struct series_set *set, const struct rw_endpoint_config *c);
struct label_source *label_source_free(struct label_source *s);
DEFINE_CLEANUP(struct label_source, label_source_free)
/* Valid until the next call. Empty if they are invalid, or a rule drops the series. */
struct str label_source_at(struct label_source *s, size_t series);
/* Whether the series is sent, and would have the same labels if it were another scorer's. */
bool label_source_is_same_for(struct label_source *s, size_t series, struct str other_score_name);

/* Makes label bytes, one series after the other. */
struct label_maker;
struct label_maker *label_maker_new(const struct rw_endpoint_config *c);
struct label_maker *label_maker_free(struct label_maker *m);
DEFINE_CLEANUP(struct label_maker, label_maker_free)
/* Adds a series with this index. False if a rule drops it, or if it is counted as invalid or over_limit. */
bool label_maker_add(struct label_maker *m, const struct label *labels, size_t n, uint32_t series);
/* The metric name of the series added last. */
struct str label_maker_name(struct label_maker *m);
/* Takes what was made out of the maker, which is then only to be freed. */
struct label_bytes *label_maker_end(struct label_maker *m);
