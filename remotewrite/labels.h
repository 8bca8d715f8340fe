/* Label sets as remote write 1.0 encodes them.
 *
 * When a set of series is new, each series' labels get the endpoint's external labels, are relabelled,
 * sorted, rid of empty values and encoded, once. */
#ifndef DS_REMOTEWRITE_LABELS_H
#define DS_REMOTEWRITE_LABELS_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "remotewrite/config.h"
#include "remotewrite/relabel.h"

enum { LABEL_BAD_NAMES = 4, LABEL_BAD_NAME_BYTES = 64 };

/* The encoded labels of many series, back to back: the `labels` fields of a TimeSeries. */
struct label_bytes {
    size_t n;
    char *bytes;
    size_t bytes_n;
    size_t *at;        /* n + 1 offsets into bytes */
    uint32_t *series;  /* index of each in the set it comes from; NULL: the same index */
    size_t left_out;   /* series dropped by relabelling */
    size_t invalid;    /* series with invalid names, or with repeated, missing or too many labels */
    size_t over_limit; /* series for which an expression exceeded its limits */
    /* The first few invalid names, maybe truncated. */
    char bad_names[LABEL_BAD_NAMES][LABEL_BAD_NAME_BYTES];
    size_t n_bad_names;
};

static inline struct str label_bytes_at(const struct label_bytes *l, size_t i)
{
    return (struct str){l->bytes + l->at[i], l->at[i + 1] - l->at[i]};
}

struct label_bytes *label_bytes_free(struct label_bytes *l);
DEFINE_CLEANUP(struct label_bytes, label_bytes_free)
/* The labels of a whole set. -ENOMEM. */
MUST_USE int label_bytes_new(struct label_bytes **ret, const struct series_set *set,
                             const struct rw_endpoint_config *c);
/* The metric name of series i. */
struct str label_bytes_name(const struct label_bytes *l, size_t i);
/* Counts a series with invalid labels, and notes the invalid name of the list that labels_pack() rejected. */
void label_bytes_reject(struct label_bytes *l, const struct label_list *list);
/* -ENOMEM; label_list_done() in any case. The list serves one series after another, each after
 * label_list_reset(). */
MUST_USE int label_list_init(struct label_list *l);
void label_list_done(struct label_list *l);
void label_list_reset(struct label_list *l);
/* Name and value must outlive the list's use. -EFBIG. */
MUST_USE int label_list_add(struct label_list *l, struct str name, struct str value);
/* Both strings as one, stored in the list; empty if there is no room. */
struct str label_list_join(struct label_list *l, struct str a, struct str b);
/* Relabels, checks and sorts the list and appends the encoded labels to `into`: 1, or 0 if a rule drops
 * the series. -EINVAL for invalid labels, -ELOOP if an expression exceeds its limits, -ENOMEM, -EFBIG. */
MUST_USE int labels_pack(struct label_list *l, const struct rw_endpoint_config *c, struct buf *into);
/* Indices of the series of `in` that `not_in` lacks; `not_in` may be NULL. *ret from malloc. -ENOMEM. */
MUST_USE int label_bytes_missing(const struct label_bytes *in, const struct label_bytes *not_in,
                                 uint32_t **ret, size_t *ret_n);

#endif
