/* Inside of the metric layer: how a set of series is laid out, for the builder that makes it. */
#ifndef DS_METRIC_SERIES_SET_H
#define DS_METRIC_SERIES_SET_H

#include "exporter/metric/series.h"

struct series_slot {
    uint32_t series; /* place + 1; 0: free */
    uint32_t tag;    /* upper half of the hash: most misses end here without a look at the name */
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n;
    char *text; /* the names, back to back */
    size_t *at; /* n + 1 offsets into text */
    struct series_slot *slots;
    size_t mask;
};

/* The same for all sets of this process. Loop thread only. */
uint64_t series_hash(struct str name);
/* An empty set with room for n names of text_bytes in all. -ENOMEM. */
MUST_USE int series_set_new(struct series_set **ret, size_t n, size_t text_bytes);
/* Appends a name that is greater than all before it, within the room asked for. */
void series_set_append(struct series_set *s, struct str name, uint64_t hash);
/* The place of the name, or -1. */
ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash);

#endif
