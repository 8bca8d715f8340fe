/* Finds how often a series repeats itself. */
#ifndef DS_MODELS_PERIOD_H
#define DS_MODELS_PERIOD_H

#include <stddef.h>

enum {
    PERIOD_MAX = 360,  /* steps; bounds the cost for long series */
    PERIODS_NEEDED = 3 /* that the series must hold */
};

/* The period in steps, or 0 if none is significant: the shortest of the strongest peaks of the series'
 * autocorrelation. `deviations` are n values minus their mean. */
size_t find_period(const double *deviations, size_t n);

#endif
