/* A series of the result while it passes through the plan: its labels, and a value at each point. */
#ifndef DS_PROMQL_ROW_H
#define DS_PROMQL_ROW_H

#include "exporter/base/buf.h"
#include "exporter/tsdb/tsdb.h"

struct row {
    const struct tsdb_label *labels; /* sorted by name */
    size_t n_labels;
    const double *values; /* value_absent() where there is none */
};

/* The points of the result, and how each begins in JSON. */
struct row_points {
    size_t n;
    int64_t start_ms, step_ms;
    struct buf text;   /* `[1435781451.781,"` of all */
    uint32_t *offsets; /* of each in the text, and the end; n + 1 */
};

/* -ENOMEM. */
MUST_USE int row_points_init(struct row_points *p, size_t n, int64_t start_ms, int64_t step_ms);
void row_points_done(struct row_points *p);

static inline int64_t row_point(const struct row_points *p, size_t i)
{
    return p->start_ms + (int64_t)i * p->step_ms;
}

/* Compares labels as Prometheus sorts series. */
int labels_compare(const struct tsdb_label *a, size_t n_a, const struct tsdb_label *b, size_t n_b);

/* Appends a row as JSON, after a comma if *out is not empty. Appends nothing for a row without values, and
 * returns 0 then, 1 otherwise. -EFBIG, -ENOMEM. */
MUST_USE int row_write(const struct row *row, const struct row_points *p, struct buf *out);

/* Writes a value as Prometheus does in JSON, without quotes; returns the length, at most ROW_VALUE_MAX. */
enum { ROW_VALUE_MAX = 32 };
size_t row_value(double v, char to[ROW_VALUE_MAX]);

#endif
