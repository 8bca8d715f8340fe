/* Prices to begin with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dual;

/* Sets the dual's prices of workloads and grains, for sites that are set so; settings may be NO_SETTING.
 * Begins with dual->grain: first by a sample of the workloads, then by the rows. */
void tune_prices(struct dual *x, const uint32_t *setting, bool by_sample);
