/* Builds the batches of one scorer, round after round. One thread at a time: the loop, or the worker while
 * it reads a large response. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"

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
