/* A batch as the items of an AddOnPlacementScore: named, aggregated, scaled or clamped, and small enough
 * for the store. */
#ifndef DS_PLACEMENT_ITEMS_H
#define DS_PLACEMENT_ITEMS_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/summary.h"

enum {
    ITEM_MIN = -100,
    ITEM_MAX = 100,
    /* The store refuses objects over 1.5 MiB; the rest is for the object's other parts. */
    ITEMS_MAX_BYTES = 1400000,
};

struct items {
    struct buf json;      /* [{"name":"...","value":5},...], sorted by name */
    size_t n;             /* in json */
    size_t clamped;       /* values outside -100..100 */
    size_t left_out;      /* results that are NaN or infinite */
    size_t unnamed;       /* results whose name is empty */
    size_t merged;        /* results beyond the first under one name */
    size_t merged_by_cut; /* of these, those whose names differed before labels were truncated */
    size_t truncated;     /* items omitted for their size */
};

/* Makes the items of a batch; when they exceed ITEMS_MAX_BYTES, the last ones by name are omitted.
 * -ENOMEM. */
MUST_USE int items_make(struct items *ret, const struct batch *b, const struct summary *s);
/* Gives each item in `like`, a JSON array as above, the same value. -ENOMEM, -EINVAL. */
MUST_USE int items_refill(struct items *ret, struct str like, int value);
/* One item for a scorer without results so far; none if its format names labels of results. -ENOMEM. */
MUST_USE int items_single(struct items *ret, const struct summary *s, const char *cluster_name, int value);
void items_done(struct items *i);

#endif
