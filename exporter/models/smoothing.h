/* Exponential smoothing with a damped trend and, where the series repeats itself, an additive season
 * (Holt-Winters). Several sets of parameters run side by side; the one that would have predicted the next
 * values best is used. */
#ifndef DS_MODELS_SMOOTHING_H
#define DS_MODELS_SMOOTHING_H

#include "exporter/models/period.h"

#include <stdbool.h>
#include <stddef.h>

enum { SMOOTHING_LANES = 8 };

/* One family of parameter sets, in lockstep. */
struct smoothing_family {
    const struct smoothing_parameters *parameters;
    size_t period; /* 0: no season */
    double level[SMOOTHING_LANES], trend[SMOOTHING_LANES], squared_error[SMOOTHING_LANES];
    double season[PERIOD_MAX][SMOOTHING_LANES];
};

struct smoothing {
    const double *values;
    size_t n, scored_from; /* values taken in; the first one whose error counts */
    bool seasonal;
    struct smoothing_family plain, season;
};

enum { SMOOTHING_MIN = 5 }; /* values that are needed without a season */

/* `values` stay the caller's, who adds to them; there are SMOOTHING_MIN and PERIODS_NEEDED periods at
 * first. A period of 0: no season. */
void smoothing_start(struct smoothing *s, const double *values, size_t period);
/* Takes in the values up to index n. */
void smoothing_advance(struct smoothing *s, size_t n);
void smoothing_forecast(const struct smoothing *s, double *out, size_t horizon);

#endif
