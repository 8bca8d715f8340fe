/* Label sets while they are made. What is shared is made once: the labels that a resource gives to all of its
 * series, and those that a point gives to all of its. A series adds only its own (the name, `le` or
 * `quantile`) when the text is written. Owned by an ingest; its thread only. */
#pragma once

#include "exporter/base/arena.h"
#include "exporter/otlp/series.h"

enum { SERIES_MAX_LABELS = 128 };

struct labels {
    struct series_label list[SERIES_MAX_LABELS + 1]; /* with room for the first that is too many */
    size_t n;
    bool is_bad;        /* too many, too long, or not UTF-8: no series may have them */
    struct arena arena; /* of the strings */
    struct buf text;    /* being written */
    uint64_t *written;  /* adds up the bytes of all texts that were made: their cost */
};

void labels_init(struct labels *l, uint64_t *written);
void labels_done(struct labels *l);
/* Forgets all labels, and frees their strings. */
void labels_begin(struct labels *l);

/* A copy that lives until labels_begin(). Sets is_bad if the text is too long or not UTF-8. */
struct str labels_copy(struct labels *l, struct str text);
/* The text of an attribute's value, the bytes of an AnyValue; never NULL. */
struct str labels_text(struct labels *l, struct str any_value);
/* "a;b" */
struct str labels_join(struct labels *l, struct str a, char between, struct str b);
/* The value of the label with this name; its p is NULL if the label is new. */
struct str *labels_at(struct labels *l, struct str name);
/* Sets a label for each attribute, which are the fields of the message with this number. Values of attributes
 * whose names become the same are joined by a semicolon, except onto an empty one. `skips` may be NULL. */
void labels_set_attributes(struct labels *l, struct str message, unsigned number, bool (*skips)(struct str));

/* To be called before labels_write(), once all labels are set. */
void labels_sort(struct labels *l);
/* Replaces *into by the labels as a series has them, with `own` instead of those of the same names; `own` is
 * sorted by name. False if a series may not have them; *into is undefined then. */
bool labels_write(const struct labels *l, const struct series_label *own, size_t n_own, struct buf *into);
