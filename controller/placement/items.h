/* A batch as the items of an AddOnPlacementScore: named, aggregated, scaled or clamped, and small enough
 * for the store. */
#ifndef DS_PLACEMENT_ITEMS_H
#define DS_PLACEMENT_ITEMS_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"
#include "exporter/score/summary.h"

/* ---- The name of a scorer's AddOnPlacementScore ---- */

enum { OBJECT_NAME_MAX = 253 };

/* An RFC 1123 subdomain of at most 253 bytes: lower case, any byte but a-z 0-9 . - becomes '-', runs of
 * '-' fold, a run with a dot becomes one dot, both are trimmed at the ends; "score" if nothing is left.
 * Returns the length; out is terminated. */
size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1]);

/* ---- Names of items: a text in which a series' labels replace ${node}, ${namespace} and so on ---- */

/* A format split into literal texts and placeholders. */
struct dimension_format {
    struct dimension_part {
        struct str text; /* a slice of the format; empty: a placeholder for */
        enum ds_label label;
    } * parts;
    size_t n;
    bool per_series; /* a placeholder differs from series to series */
    unsigned labels; /* bit 1 << i: there is a placeholder for label i */
};

/* Knows ${cluster} ${node} ${device} ${namespace} ${app} ${pod} ${container} ${meta} ${scoreName}; any
 * other placeholder stays as it is, as does an unterminated one. `format` must outlive *ret. -ENOMEM. */
void dimension_format_parse(struct dimension_format *ret, struct str format);
void dimension_format_done(struct dimension_format *f);
/* Appends the item name of a series with these label values, which are not expanded again. -ENOMEM,
 * -EFBIG. */
MUST_USE int dimension_format_render(const struct dimension_format *f, const struct str labels[DS_LABELS],
                                     struct buf *into);

/* ---- Items ---- */

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
