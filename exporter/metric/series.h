/* Series and batches: what a round produces and what sinks consume.
 *
 * A series is known by its exposition name, `dynamic_score{ds_app="...",...,ds_score_name="..."}`, escaped as the text formats
 * want it. A set of series is sorted by name, immutable and shared: while a scorer answers for the same series
 * from round to round, each round only brings new values, and sinks that keep something for each
 * series (rendered text, encoded labels) may keep it for as long as they see the same set. */
#ifndef DS_METRIC_SERIES_H
#define DS_METRIC_SERIES_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* The labels, in the order in which they stand in a name (which is byte order). */
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
/* The label of a result's metric that each comes from: "app", ...; empty for ds_cluster and ds_score_name. */
extern const struct str ds_label_sources[DS_LABELS];

struct series_set;

/* References may be taken and dropped by any thread. series_set_unref() takes NULL and returns NULL. */
struct series_set *series_set_ref(struct series_set *s);
struct series_set *series_set_unref(struct series_set *s);
DEFINE_CLEANUP(struct series_set, series_set_unref)
size_t series_count(const struct series_set *s);
/* The exposition name of series i. */
struct str series_name(const struct series_set *s, size_t i);
/* All names, one after the other without anything between. */
struct str series_names(const struct series_set *s);
/* The label values of a name as they stand in it: still escaped. */
void series_name_labels(struct str name, struct str ret[DS_LABELS]);
/* Replaces \\ \" \n in an escaped value; out has room for escaped.n bytes. Returns the length. */
size_t series_unescape(struct str escaped, char *out);
/* The place of the series with this name, or -1. */
ssize_t series_find(const struct series_set *s, struct str name);

/* One round's whole result. Immutable once sealed. */
struct batch {
    unsigned refs; /* atomic */
    char *score_name;
    struct series_set *set;
    double *values;  /* of set's series, in its order */
    uint32_t *order; /* of each series: which result of the answer, counted from 0, gave its value */
    unix_ms at;      /* one timestamp for all */
};

struct batch *batch_ref(struct batch *b);
struct batch *batch_unref(struct batch *b);
DEFINE_CLEANUP(struct batch, batch_unref)

/* Makes batches for one scorer, round after round. Belongs to the loop. */
struct batch_builder;

struct batch_options {
    const char *cluster_name; /* valid UTF-8 */
    const char *score_name;   /* valid UTF-8 */
    size_t max_series;
};

/* A result's labels: values for all but DS_CLUSTER and DS_SCORE_NAME, which are the builder's own. Each is well-formed
 * UTF-8 without NUL; `escapes` has bit 1<<i set where value i may hold a backslash, a quote or a line end. */
struct batch_labels {
    struct str value[DS_LABELS];
    unsigned escapes;
    struct str
        spelling; /* the bytes of the answer that all this was read from, for batch_spelled(); may be empty */
};

/* The strings are copied. -ENOMEM. */
MUST_USE int batch_builder_new(struct batch_builder **ret, const struct batch_options *o);
struct batch_builder *batch_builder_free(struct batch_builder *b);
DEFINE_CLEANUP(struct batch_builder, batch_builder_free)
void batch_builder_set_max(struct batch_builder *b, size_t max_series);
/* Starts a batch, dropping one that was begun. -ENOMEM. */
MUST_USE int batch_begin(struct batch_builder *b);
/* Adds a result; one with the same labels as an earlier one replaces its value and is counted.
 * -ENOSPC past max_series, -ENOMEM; the batch is then lost. */
MUST_USE int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value);
/* Answers mostly spell the same labels in the same order as the last one. Where text begins with the bytes that spelled the
 * result which should come next, returns their number: batch_add_spelled() then adds to that series, and the labels need not
 * be read again. Otherwise 0. */
size_t batch_spelled(const struct batch_builder *b, struct str text);
/* After batch_spelled() found something. Otherwise as batch_add(). */
MUST_USE int batch_add_spelled(struct batch_builder *b, double value);
/* What longer label values are cut to, by who reads them: spellings that were read under another limit are forgotten. */
void batch_builder_set_label_max(struct batch_builder *b, size_t label_max);
/* Ends the batch. *ret_duplicates (may be NULL) says how many results replaced an earlier one. -ENOMEM. */
MUST_USE int batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates);
/* Gives up a batch that was begun; the next one is unaffected. */
void batch_abandon(struct batch_builder *b);

#endif
