/* How a set of series is made, for those who make one; what it is for all others is series.h. A set is
 * filled by one thread, and immutable once others have it. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

/* A series' record is its name followed by its labels, each a varint `length in the name << 1 | escaped`;
 * for an escaped value a varint length and the unescaped value follow. */
struct series_place {
    const char *record;
    uint32_t name_n, n; /* bytes of the name, and of all */
};

/* Records, back to back. Sets share texts: when few series come and go, only the new ones are written. */
struct series_text {
    unsigned refs;      /* atomic */
    struct buf records; /* never grows: places point into it */
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n, cap, names_bytes;
    struct series_place *place;
    struct series_text **texts;  /* where the records are */
    size_t n_texts, texts_bytes; /* texts_bytes: allocated for all of them */
};

/* An empty set with room for n series. */
struct series_set *series_set_new(size_t n);
/* What `other` has its records in stays as long as s. */
void series_set_share_texts(struct series_set *s, const struct series_set *other);
/* Room for a record of at most n bytes in the last text, or in a new one of at least `next` bytes. */
char *series_set_room(struct series_set *s, size_t n, size_t next);
/* Appends a series whose name was just written to the room for its record; `escapes` as in struct
 * batch_labels. */
void series_set_append(struct series_set *s, struct str name, const struct str values[DS_LABELS],
                       unsigned escapes);
/* Rewrites all records in order if much of the texts is unused, or if so many records are not next to their
 * neighbours that reading them in order would wait for memory. */
void series_set_pack(struct series_set *s);
