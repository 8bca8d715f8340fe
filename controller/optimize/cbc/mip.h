/* An integer program in columns, all of them 0 or 1, to be minimised; built from entries in any order. */
#ifndef DS_OPTIMIZE_CBC_MIP_H
#define DS_OPTIMIZE_CBC_MIP_H

#include "exporter/base/def.h"

#include <stddef.h>

struct mip_entry {
    int row, col;
    double value;
};

struct mip {
    int n_cols, n_rows;
    double *cost; /* [n_cols] */
    double *row_lower, *row_upper;
    struct mip_entry *entries; /* until mip_finish() */
    size_t n_entries, cap_entries, cap_rows;
    int *start, *row; /* column c has entries start[c] .. start[c + 1] - 1 */
    double *value;
};

void mip_done(struct mip *m);
/* Makes room for the columns, all without cost. -ENOMEM. */
MUST_USE int mip_columns(struct mip *m, size_t n);
/* Adds a row; entries of it are put into row m->n_rows - 1 or any before it. -ENOMEM. */
MUST_USE int mip_row(struct mip *m, double lower, double upper);
/* -EFBIG for too many, -ENOMEM. */
MUST_USE int mip_put(struct mip *m, int row, int col, double value);
/* Sorts the entries into columns. -ENOMEM. */
MUST_USE int mip_finish(struct mip *m);

#endif
