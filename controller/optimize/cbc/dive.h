/* Dives to a solution: fixes one site after the other at its best set, while the prices follow. */
#ifndef DS_OPTIMIZE_CBC_DIVE_H
#define DS_OPTIMIZE_CBC_DIVE_H

#include "controller/optimize/cbc/price.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <stdint.h>

/* Leaves the best sets of all sites, for repair(); also where the bound fell to `objective` before all were
 * fixed. `seed` varies the prices that it starts from; they are as before afterwards. For problems of
 * repair_is_for(). -ENOMEM. */
MUST_USE int dive(struct price *x, int64_t objective, uint32_t seed, mono_ms until);

#endif
