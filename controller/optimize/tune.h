/* Good prices to begin with: those at which about as much is requested from each site as it supplies. */
#ifndef DS_OPTIMIZE_TUNE_H
#define DS_OPTIMIZE_TUNE_H

#include "controller/optimize/dual.h"
#include "exporter/base/def.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets the dual's prices of workloads and grains, for sites that are set so; settings may be NO_SETTING.
 * Begins with dual->grain: first by a sample of the workloads, then by the rows. -ENOMEM. */
MUST_USE int tune_prices(struct dual *x, const uint32_t *setting, bool by_sample);

#endif
