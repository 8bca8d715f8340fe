/* Private to exporter/metric: the layout of a set of series, for the builder. */
#ifndef DS_METRIC_SERIES_SET_H
#define DS_METRIC_SERIES_SET_H

#include "exporter/base/str.h"

#include <sys/types.h>

struct series_slot {
    uint32_t series; /* index + 1; 0: free */
    uint32_t tag;    /* upper half of the hash: most mismatches end here without comparing names */
};

/* Where a series' record is in the text. A record is the name followed by its labels, each a varint `length
 * in the name << 1 | escaped`; for an escaped value a varint length and the unescaped value follow. */
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

/* The index of the name, or -1. */
ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash);

#endif
