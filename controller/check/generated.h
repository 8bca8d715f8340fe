/* The series that a check sends to a scoring API, and the answer that has all their labels. Pure; any
 * thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/score/summary.h"

/* What to generate, from the query: the labels that its results have, and the points of its range. */
struct series_plan {
    struct str labels[16]; /* slices of the query, or literals */
    size_t n_labels;
    size_t points;
    int64_t from_s, step_s;
};

enum series_kind {
    SERIES_PLAIN,
    SERIES_OF_ONE_POINT, /* the first of them; the others are plain */
    SERIES_WITHOUT_POINTS,
    SERIES_WITH_NAN,
    SERIES_WITH_ODD_LABELS,
    SERIES_TWICE,
};

/* ret has slices of the summary's query, which must outlive it. */
void series_plan_make(struct series_plan *ret, const struct summary *s, int64_t now_s);
/* Appends a request with n series; nothing if there is no room for it. */
void series_put_request(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n);
/* Likewise the answer that keeps all their labels. */
void series_put_answer(struct buf *into, const struct series_plan *p, enum series_kind kind, size_t n);
