/* Autoregression: each value is a linear function of the LAGS values before it, fitted by ordinary least
 * squares with an intercept. Coefficients are those of scikit-learn's LinearRegression on lag features. If
 * the data does not determine them, as with a ramp or fewer rows than lags, they are those of minimum norm.
 * */
#ifndef DS_MODELS_AUTOREGRESSION_H
#define DS_MODELS_AUTOREGRESSION_H

#include <stddef.h>

enum { LAGS = 10 };

/* Predicts the `horizon` (>= 1) values after the n (> LAGS) values of v, which are finite; v is overwritten.
 * A fit that grows without bound may give values that are not finite. Returns the backtest's error: the root
 * mean square, in units of the series, of predicting the last `validation` values from those before them. NAN
 * without a backtest: if `validation` is 0 or leaves fewer than 2 * LAGS values. `out` has room for horizon
 * and for validation values. */
double autoregression_predict(double *v, size_t n, double *out, size_t horizon, size_t validation);

#endif
