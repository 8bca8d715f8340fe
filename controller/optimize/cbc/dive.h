/* Dives to a solution: fixes one site after the other at its best set, while the prices follow. */
#ifndef DS_OPTIMIZE_CBC_DIVE_H
#define DS_OPTIMIZE_CBC_DIVE_H

#include "controller/optimize/cbc/price.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <stdint.h>

/* Fixes the sites that are not fixed yet, and leaves the best sets of all sites, for repair(). 1 if the bound
 * fell to `objective` before all were fixed. `seed` varies the prices that it starts from. Afterwards they
 * are as before, and no site is fixed. For problems of repair_is_for(). -ENOMEM. */
MUST_USE int dive(struct price *x, int64_t objective, uint32_t seed, mono_ms until);

#endif
