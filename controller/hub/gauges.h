/* Gauges of scorers, clusters and watches, from a view of the fleet. Loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"

/* Only the active controller has those of scorers and clusters: a standby would report them twice. */
void gauges_set(const struct fleet *f, bool is_active);
