/* Predicts the next values of a series by the method that would have predicted its last values best. */
#ifndef DS_MODELS_PREDICT_H
#define DS_MODELS_PREDICT_H

#include <stdbool.h>
#include <stddef.h>

enum predict_method { PREDICT_AUTOREGRESSION, PREDICT_SMOOTHING, PREDICT_METHODS };
const char *predict_method_word(enum predict_method method);

struct prediction {
    enum predict_method method;
    bool tested;                    /* there were enough values for a backtest */
    double errors[PREDICT_METHODS]; /* of the backtest: root mean square, in units of the series */
    size_t period;                  /* steps after which the series repeats itself; 0: none was found */
};

/* Predicts the `horizon` (>= 1) values after the n (> LAGS) values of v, which are finite; v is
 * overwritten. In the backtest, each method predicts the last `validation` values from those before them.
 * If those are fewer than 2 * LAGS, there is none, and autoregression is used. `out` has room for horizon
 * and for validation values. A prediction that overflows is infinite; none is NaN. */
void predict(double *v, size_t n, size_t horizon, size_t validation, double *out, struct prediction *ret);

#endif
