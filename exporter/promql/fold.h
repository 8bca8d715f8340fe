/* Sums and means as Prometheus computes them: with Kahan's summation, improved by Neumaier. */
#ifndef DS_PROMQL_FOLD_H
#define DS_PROMQL_FOLD_H

#include <stdbool.h>

/* A sum with the rounding error that it lacks. */
struct fold {
    double value, error;
};

void fold_add(struct fold *sum, double v);
/* The sum, corrected. */
double fold_total(const struct fold *sum);

/* A sum over a count; once the sum would exceed a double, the mean itself, updated by each value. */
struct mean {
    struct fold sum;
    double count; /* negative: the sum is the mean */
};

void mean_add(struct mean *m, double v);
double mean_value(const struct mean *m);

#endif
