/* The prediction that the model `forecast` is made of: linear autoregression. Pure; any thread. */
#pragma once

#include <stddef.h>

/* Predicts the `horizon` (>= 1) values after the n (> LAGS) values of v, which are finite; v is overwritten.
 * Each value is a linear function of the LAGS before it, fitted by least squares with an intercept, as by
 * scikit-learn's LinearRegression; of several fits that of minimum norm. Values may become infinite. Returns
 * the root mean square error of predicting the last `validation` values from those before them; NAN if that
 * is 0 or leaves fewer than 2 * LAGS values. `out` has room for horizon and for validation values. */
enum { LAGS = 10 };
double autoregression_predict(double *v, size_t n, double *out, size_t horizon, size_t validation);
