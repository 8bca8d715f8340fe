/* The samples of a series as values at even steps, as forecasts need them. */
#ifndef DS_MODELS_SPACING_H
#define DS_MODELS_SPACING_H

#include "exporter/models/model.h"
#include "exporter/models/request.h"

enum { MAX_GAP = 10 }; /* steps without a sample that are interpolated */

struct spacing {
    size_t n;          /* values written */
    double last, step; /* time of the last one; seconds */
};

/* The step is the shortest distance of two samples. Values that are NaN or infinite count as missing.
 * Gaps of at most MAX_GAP steps are filled linearly; of a series with a longer one, only what comes after
 * the last of them is taken. `out` has room for 2 * in->n values. False, with *ret_why, if that gives
 * fewer than min_samples (which is at least 2) or less than half of the values. */
bool space_evenly(const struct input_series *in, size_t min_samples, double *out, struct spacing *ret,
                  enum left_out *ret_why);

#endif
