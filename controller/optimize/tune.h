/* Good prices to begin with: those at which about as much is requested from each site as it supplies. */
#ifndef DS_OPTIMIZE_TUNE_H
#define DS_OPTIMIZE_TUNE_H

#include "controller/optimize/dual.h"
#include "exporter/base/def.h"

#include <stdint.h>

/* Sets the dual's prices of workloads and grains, for sites that are set so; settings may be NO_SETTING.
 * Begins with dual->grain. -ENOMEM. */
MUST_USE int tune_prices(struct dual *x, const uint32_t *setting);

#endif
