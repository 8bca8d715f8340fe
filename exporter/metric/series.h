/* Series and batches: what a round produces and what sinks consume.
 *
 * A set of series is sorted by exposition name, immutable and shared. As long as a scorer returns the same
 * series, each round only adds values, and a sink can reuse what it derived from the set. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/str.h"

#include <sys/types.h>

/* The labels, in the order of a name, which is byte order. */
enum ds_label {
    DS_APP,
    DS_CLUSTER,
    DS_CONTAINER,
    DS_DEVICE,
    DS_META,
    DS_NAMESPACE,
    DS_NODE,
    DS_POD,
    DS_SCORE_NAME,
    DS_LABELS
};

#define SCORE_METRIC "dynamic_score"
#define SCORE_HELP   "Score that a scoring API gave."

/* "ds_app", ... */
extern const struct str ds_label_names[DS_LABELS];
/* The label of a result that each is copied from: "app", ...; empty for ds_cluster and ds_score_name. */
extern const struct str ds_label_sources[DS_LABELS];

struct series_set;

/* Any thread may take and drop references. series_set_unref() accepts NULL and returns NULL. */
struct series_set *series_set_ref(struct series_set *s);
struct series_set *series_set_unref(struct series_set *s);
size_t series_count(const struct series_set *s);
/* Indices of the series of s that `other` (NULL: no set) lacks, and their number. *ret from malloc. */
size_t series_set_missing(const struct series_set *s, const struct series_set *other, uint32_t **ret);
/* The index of the first series from `from` on whose name is not less. Fast if it is near. */
size_t series_set_find(const struct series_set *s, size_t from, struct str name);
/* `dynamic_score{ds_app="...",...,ds_score_name="..."}` */
struct str series_name(const struct series_set *s, size_t i);
/* Bytes of all names. */
size_t series_names_bytes(const struct series_set *s);
/* The label values of series i, unescaped. They point into the set. */
void series_labels(const struct series_set *s, size_t i, struct str ret[DS_LABELS]);

/* A series with truncated label values, and 32 bits of a hash, never 0, of what each of them was. */
struct cut_labels {
    uint32_t series;
    uint32_t uncut[DS_LABELS];
};

/* The result of one round. Immutable once sealed: any thread may read it, and take and drop references. */
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

/* Builds the batches of one scorer, round after round. One thread at a time: the loop, or the worker while it
 * reads a large response. */
struct batch_builder;

/* The labels of a result. DS_CLUSTER and DS_SCORE_NAME are ignored: the builder sets them. */
struct batch_labels {
    struct str value[DS_LABELS]; /* well-formed UTF-8 without NUL */
    unsigned escapes;            /* bit 1 << i: value i may contain a backslash, a quote or a line feed */
    const uint32_t *uncut;       /* as in cut_labels; NULL if no value was truncated */
    struct str spelling; /* the bytes of the answer that spell them, for batch_spelled(); may be empty */
};

/* The names are valid UTF-8 and are copied. */
struct batch_builder *batch_builder_new(const char *cluster_name, const char *score_name, size_t max_series);
struct batch_builder *batch_builder_free(struct batch_builder *b);
DEFINE_CLEANUP(struct batch_builder, batch_builder_free)
void batch_builder_set_max(struct batch_builder *b, size_t max_series);
/* Starts a batch; an unfinished one is discarded. label_max: the length that the caller truncates label
 * values to. answer_bytes: the length of the answer whose results come next, to make room for series. */
void batch_begin(struct batch_builder *b, size_t label_max, size_t answer_bytes);
/* Adds a result. A result whose labels equal those of an earlier one replaces its value and is counted.
 * -ENOSPC past max_series, -ENOMEM past 4 GiB; the batch is lost then. */
MUST_USE int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value);
/* Most answers spell the same labels in the same order as the previous one. The length of the spelling
 * expected next, if text starts with it: batch_add_spelled() then spares reading the labels. Else 0. */
size_t batch_spelled(const struct batch_builder *b, struct str text);
/* Only after a match of batch_spelled(). Otherwise like batch_add(). */
MUST_USE int batch_add_spelled(struct batch_builder *b, double value);
/* Ends the batch. *ret_duplicates (may be NULL): results that replaced an earlier one. */
void batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates);
/* Discards an unfinished batch; the next one is not affected. */
void batch_abandon(struct batch_builder *b);
