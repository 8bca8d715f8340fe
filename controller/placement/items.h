/* A batch as the items of an AddOnPlacementScore: named, aggregated, scaled or clamped, small enough for the
 * store; and the name of that object. */
#pragma once

#include "controller/placement/adjust.h"
#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/series.h"
#include "exporter/score/summary.h"

#include <jansson.h>

enum {
    OBJECT_NAME_MAX = 253,
    ITEM_MIN = -100,
    ITEM_MAX = 100,
    /* The store refuses objects over 1.5 MiB; the rest is for the object's other parts. */
    ITEMS_MAX_BYTES = 1400000,
};

/* The name of a scorer's AddOnPlacementScore, an RFC 1123 subdomain: lower case, any byte but a-z 0-9 . -
 * becomes '-', runs of '-' fold, a run with a dot becomes one dot, both are trimmed at the ends; "score" if
 * nothing is left. Returns the length; out is terminated. */
size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1]);

/* What one of the summary's formats gives. */
struct format_items {
    size_t n, results; /* items, those omitted included, and the results in them */
    struct rounding rounding;
};

struct items {
    struct buf json;      /* [{"name":"...","value":5},...], sorted by name unless it is a fallback */
    size_t n;             /* in json */
    size_t clamped;       /* values outside -100..100, before they were adjusted */
    size_t left_out;      /* results that are NaN or infinite */
    size_t unnamed;       /* results whose name is empty, for each format */
    size_t merged;        /* results beyond the first under one name of a format */
    size_t merged_by_cut; /* of these, those whose names differed before labels were truncated */
    size_t truncated;     /* items omitted for their size: the last ones by name */
    size_t room;          /* bytes left in the store */
    /* With a scoreTolerance: what is compared with the items of another round. */
    struct buf values; /* of the items in json, a signed char each, in their order */
    uint64_t names;    /* hash of their names */
    struct format_items formats[SUMMARY_MAX_ITEMS];
    /* Results left out because an earlier format has items of their names: the first to have one keeps it. */
    struct item_overlap {
        size_t results;
        size_t earlier, later; /* of the first such result: the formats, and the name, cut */
        char name[80];
    } overlap;
};

/* Appends the name of a series' item: the format with the series' labels in place of ${cluster}, ${node} and
 * so on, which are not expanded again; any other placeholder stays as it is. -EFBIG. */
void item_name_put(struct str format, const struct str labels[DS_LABELS], struct buf *into);

/* The items of a batch: scaled, adjusted, clamped. */
struct items items_make(const struct batch *b, const struct summary *s, const struct adjuster *by);
/* Items with the value of fallbackScore, adjusted: those of the last batch; or else those found on the
 * hub, an array of {name, value}; or else the one of each format that names no labels of results. Either
 * may be NULL. */
struct items items_fallback(const struct batch *last, const json_t *found, const struct summary *s,
                            const char *cluster_name, const struct adjuster *by);
/* Those found on the hub, an array of {name, value}: adjusted, clamped. */
struct items items_found(const json_t *found, const struct summary *s, const struct adjuster *by);
/* Whether both have the same names, and no value differs by more than `tolerance`. Both were made with
 * one. */
bool items_are_near(const struct items *a, const struct items *b, int tolerance);
void items_done(struct items *i);
