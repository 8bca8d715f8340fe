/* Autoregression: each value is a linear function of the LAGS values before it, fitted by ordinary least
 * squares with an intercept. Coefficients equal those of scikit-learn's LinearRegression on lag features,
 * also for data that does not determine them (a constant series, a ramp, fewer rows than lags): then
 * those of minimum norm. */
#ifndef DS_MODELS_AUTOREGRESSION_H
#define DS_MODELS_AUTOREGRESSION_H

#include "exporter/models/least_squares.h"

#include <stddef.h>

enum { LAGS = LS_UNKNOWNS };

struct autoregression {
    double coefficients[LAGS]; /* of the oldest value first */
    double intercept;
};

/* n > LAGS finite values with magnitudes of at most 1e100, so that no sum of products overflows. */
void autoregression_fit(struct autoregression *a, const double *v, size_t n);
/* Predicts the `horizon` values after v[n - 1], each from predictions where it reaches beyond the series.
 * A fit that grows without bound may give values that are not finite. n >= LAGS. */
void autoregression_forecast(const struct autoregression *a, const double *v, size_t n, double *out,
                             size_t horizon);

#endif
