/* A set of series, as its builder makes it. */
#ifndef DS_METRIC_SET_H
#define DS_METRIC_SET_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

/* The tag is the lower half of the name's hash. It says where the slot belongs and ends most mismatches
 * before names are compared, so a table is made from another one without reading a name. */
struct series_slot {
    uint32_t series; /* index + 1; 0: free */
    uint32_t tag;
};

/* Where a series' record is in the text. A record is the name followed by its labels, each a varint `length
 * in the name << 1 | escaped`; for an escaped value a varint length and the unescaped value follow. */
struct series_place {
    uint32_t name, labels;
};

/* The new index of a series that is not taken over. */
#define SERIES_GONE UINT32_MAX

struct series_set {
    unsigned refs; /* atomic */
    size_t n, cap, names_bytes;
    struct buf text;            /* the records, back to back */
    struct series_place *place; /* n + 1 of them: the last one's name is the end of the text */
    struct series_slot *slots;
    size_t mask;
};

/* An empty set with room for n series. */
struct series_set *series_set_new(size_t n);
/* Makes room for n series in all. */
void series_set_reserve(struct series_set *s, size_t n);
/* The slot of the name, or the free one where it belongs. */
struct series_slot *series_set_slot(const struct series_set *s, struct str name, uint32_t tag);
/* Appends a series whose name of name_n bytes was just written behind the text; `escapes` as in struct
 * batch_labels. -EFBIG, -ENOMEM. */
int series_set_append(struct series_set *s, struct series_slot *slot, uint32_t tag, size_t name_n,
                      const struct str values[DS_LABELS], unsigned escapes);
/* Appends the series `from` up to `end` of another set, but for their slots, within the room reserved. */
void series_set_take(struct series_set *s, const struct series_set *other, size_t from, size_t end);
/* Takes over the slots of another set, whose series become moved[series], or SERIES_GONE. NULL: all stay. */
void series_set_take_slots(struct series_set *s, const struct series_set *other, const uint32_t *moved);

/* The indices of the series by name; from malloc. */
uint32_t *series_set_sort(const struct series_set *s);
/* In a sorted set, the first of the series from `from` on whose name is not less. */
size_t series_set_find(const struct series_set *s, size_t from, struct str name);

#endif
