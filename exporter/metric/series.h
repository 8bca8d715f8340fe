/* Sets of series, and the labels that each series has.
 *
 * A set is sorted by exposition name, immutable and shared. As long as a scorer returns the same series, each
 * round only adds values, and a sink can reuse what it derived from the set. Any thread. */
#pragma once

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
#define SCORE_HELP   "Score returned by the scoring API."

/* "ds_app", ... */
extern const struct str ds_label_names[DS_LABELS];
/* The label of a result that each is copied from: "app", ...; empty for ds_cluster and ds_score_name. */
extern const struct str ds_label_sources[DS_LABELS];

struct series_set;

/* Any thread may take and drop references. series_set_unref() accepts NULL and returns NULL. */
struct series_set *series_set_ref(struct series_set *s);
struct series_set *series_set_unref(struct series_set *s);
size_t series_count(const struct series_set *s);
/* How one set became another. */
struct series_diff {
    uint32_t *moved; /* by series of the first: its index in the second, or SERIES_GONE; ascending */
    uint32_t *gone;  /* indices in the first of the series that the second lacks */
    uint32_t *fresh; /* indices in the second of those that the first lacks */
    size_t n_gone, n_fresh;
};

#define SERIES_GONE UINT32_MAX

/* Fast if the second was made from the first, as the sets of one scorer are. */
void series_diff_init(struct series_diff *d, const struct series_set *was, const struct series_set *now);
void series_diff_done(struct series_diff *d);
/* The index of the first series from `from` on whose name is not less. Fast if it is near. */
size_t series_set_find(const struct series_set *s, size_t from, struct str name);
/* `dynamic_score{ds_app="...",...,ds_score_name="..."}` */
struct str series_name(const struct series_set *s, size_t i);
/* Bytes of all names. */
size_t series_names_bytes(const struct series_set *s);
/* Series i is asked for soon, out of order. */
void series_prefetch(const struct series_set *s, size_t i);
/* The label values of series i, unescaped. They point into the set. */
void series_labels(const struct series_set *s, size_t i, struct str ret[DS_LABELS]);
