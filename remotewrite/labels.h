/* From exposition names to the label bytes of remote write 1.0.
 *
 * The labels of a series are parsed, joined by the endpoint's external labels, relabelled, sorted, rid of empty values and
 * packed once, when its set is new. */
#ifndef DS_REMOTEWRITE_LABELS_H
#define DS_REMOTEWRITE_LABELS_H

#include "exporter/metric/series.h"
#include "remotewrite/config.h"

/* The packed labels of many series, back to back: each the fields 1 of a TimeSeries. */
struct label_bytes {
    size_t n;
    char *bytes;
    size_t bytes_n;
    size_t *at;       /* n + 1 offsets into bytes */
    uint32_t *series; /* of each, its place in the set that it came from */
    size_t left_out;  /* series that relabelling dropped */
    size_t invalid;   /* series left out for repeated, missing or ill-formed labels */
};

static inline struct str label_bytes_at(const struct label_bytes *l, size_t i)
{
    return (struct str){l->bytes + l->at[i], l->at[i + 1] - l->at[i]};
}

struct label_bytes *label_bytes_free(struct label_bytes *l);
DEFINE_CLEANUP(struct label_bytes, label_bytes_free)
/* Of a whole set. -ENOMEM, -EFBIG. */
MUST_USE int label_bytes_new(struct label_bytes **ret, const struct series_set *set,
                             const struct rw_endpoint_config *c);
/* Room for the labels of one series after the other. -ENOMEM. */
MUST_USE int label_list_init(struct label_list *l);
void label_list_done(struct label_list *l);
/* Of one name: 1 when packed labels were appended to `into`, 0 when the series is left out by a rule, -EINVAL when its
 * labels are not valid, -ENOMEM, -EFBIG. */
MUST_USE int labels_pack(struct label_list *l, struct str name, const struct rw_endpoint_config *c,
                         struct buf *into);
/* An index of those in `in` that are not in `not_in` (which may be NULL: all). *ret from malloc. -ENOMEM. */
MUST_USE int label_bytes_missing(const struct label_bytes *in, const struct label_bytes *not_in,
                                 uint32_t **ret, size_t *ret_n);

#endif
