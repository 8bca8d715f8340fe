/* Private to exporter/metric: the layout of a set of series, for the builder. */
#ifndef DS_METRIC_SERIES_SET_H
#define DS_METRIC_SERIES_SET_H

#include "exporter/metric/series.h"

struct series_slot {
    uint32_t series; /* index + 1; 0: free */
    uint32_t tag;    /* upper half of the hash: most mismatches end here without comparing names */
};

/* Where a series' record is in the text. A record is the name followed by its labels, each a varint
 * `length in the name << 1 | escaped`; for an escaped value a varint length and the unescaped value
 * follow. */
struct series_place {
    uint32_t name, labels;
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n, names_bytes;
    char *text;                 /* the records, back to back */
    struct series_place *place; /* n + 1 of them: the last one's name is the end of the text */
    struct series_slot *slots;
    size_t mask;
};

/* An empty set with room for n records of text_bytes in total. -ENOMEM, also for a text of 4 GiB or more. */
MUST_USE int series_set_new(struct series_set **ret, size_t n, size_t text_bytes);
/* Appends a record whose name is greater than all names before it, within the room reserved. */
void series_set_append(struct series_set *s, struct str record, size_t name_n, uint64_t hash);
/* The record of series i. */
struct str series_record(const struct series_set *s, size_t i);
/* The index of the name, or -1. */
ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash);

/* An upper bound for the bytes of series_put_labels(). */
size_t series_labels_room(const struct str values[DS_LABELS]);
/* Writes the labels part of a record; `escapes` as in struct batch_labels. Returns its end. */
char *series_put_labels(char *to, const struct str values[DS_LABELS], unsigned escapes);

#endif
