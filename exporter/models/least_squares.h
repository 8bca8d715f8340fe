/* Linear least squares for data of any rank: the solution of minimum norm, by a QR decomposition and a
 * singular value decomposition of its triangle. Accurate also where normal equations are not, and about
 * ten times as expensive. */
#ifndef DS_MODELS_LEAST_SQUARES_H
#define DS_MODELS_LEAST_SQUARES_H

#include <stddef.h>

enum { LS_UNKNOWNS = 10, LS_COLUMNS = LS_UNKNOWNS + 1 };

/* The sum of a[i] * b[i]. */
double dot_product(const double *a, const double *b, size_t n);
/* Row i is the LS_COLUMNS values from v[i]: the last one is to be explained by those before it. `means`
 * are those of the columns, which are subtracted. Directions whose singular value is below max(rows,
 * LS_UNKNOWNS) * DBL_EPSILON of the largest count as zero, as in scikit-learn. rows >= 1. */
void least_squares(const double *v, size_t rows, const double means[LS_COLUMNS],
                   double solution[LS_UNKNOWNS]);

#endif
