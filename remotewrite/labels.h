/* Label sets as remote write 1.0 encodes them. When a set of series is new, each series' labels get the
 * endpoint's external labels, are relabelled, sorted, rid of empty values and encoded, once. */
#pragma once

#include "exporter/base/doc.h"
#include "exporter/base/strset.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"

struct rw_endpoint_config;

struct relabel_rules {
    struct relabel_rule *list;
    size_t n;
};

struct label {
    struct str name, value;
};

/* ---- Type and help of metrics, by name after relabelling ---- */

/* More names than this are the work of a rule that makes a name for each series. */
enum { FAMILIES_MAX = 1000, FAMILY_NAME_MAX = 255 };

struct family {
    enum metric_type type;
    const char *help; /* static */
    size_t stem_n;    /* bytes of the name without a histogram's suffix */
    char name[];
};

struct families {
    struct strset names;
    struct family *list[FAMILIES_MAX]; /* by their places */
    int64_t started_ms;                /* when the counters began; 0: unknown */
};

void families_done(struct families *f);
/* Adds or updates the metadata of a name; `suffix` is a histogram's, "" for none. */
void families_note(struct families *f, struct str name, const char *suffix, enum metric_type type,
                   const char *help);
/* NULL if unknown. */
const struct family *families_find(const struct families *f, struct str name);

/* ---- Labels ---- */

enum { LABELS_MAX = 128, LABEL_BAD_NAME_BYTES = 64, LABEL_BYTES_MAX = 1 << 30 };

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
/* The labels of the series pick[0..n) of a set, or of n from `first` on if pick is NULL; notes the metrics'
 * names in `families`, unless that is NULL. */
struct label_bytes *label_bytes_new(const struct series_set *set, const uint32_t *pick, size_t first,
                                    size_t n, const struct rw_endpoint_config *c, struct families *families);
/* Keeps the first of series with the same labels, and none whose labels `not_in` (may be NULL) has. */
void label_bytes_distil(struct label_bytes *l, const struct label_bytes *not_in);

/* Whether Prometheus takes it as the name of a label, or of a metric. */
bool label_is_name(struct str s, bool metric);

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

/* Reads a list of rules into the arena; problems go to p. Call relabel_done() in any case. */
void relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p, struct arena *a);
void relabel_done(struct relabel_rules *r);
