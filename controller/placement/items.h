/* A batch as the items of an AddOnPlacementScore: named, aggregated, scaled or clamped, and small enough for the store. */
#ifndef DS_PLACEMENT_ITEMS_H
#define DS_PLACEMENT_ITEMS_H

#include "exporter/metric/series.h"
#include "exporter/score/summary.h"

enum {
    ITEM_MIN = -100,
    ITEM_MAX = 100,
    /* What items may take in the store, which refuses objects past 1.5 MiB: the rest is for the object's other parts. */
    ITEMS_MAX_BYTES = 1400000,
};

struct items {
    struct buf json;  /* [{"name":"...","value":5},...], sorted by name */
    size_t n;         /* in json */
    size_t clamped;   /* values that were outside of -100..100 */
    size_t left_out;  /* results that are NaN or infinite */
    size_t unnamed;   /* results whose name is empty */
    size_t merged;    /* results beyond the first under one name */
    size_t truncated; /* items that found no room */
};

/* Makes all items of a batch; the last ones by name are those that find no room. -ENOMEM. */
MUST_USE int items_make(struct items *ret, const struct batch *b, const struct summary *s);
/* The same names, each with this value; names are those of the items in `like`, a JSON array as above. -ENOMEM, -EINVAL. */
MUST_USE int items_refill(struct items *ret, struct str like, int value);
/* One item, for a scorer that never had results and whose format names no label of theirs; none for another. -ENOMEM. */
MUST_USE int items_single(struct items *ret, const struct summary *s, const char *cluster_name, int value);
void items_done(struct items *i);

#endif
