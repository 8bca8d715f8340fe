/* Why a Placement gives a scorer no cluster. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/follows/reason.h"
#include "controller/hub/observed/scorer.h"

/* The first of its Placements that gives it no cluster, with a condition's reason, and `why`: what
 * Placement itself says, where it does; or NULL. */
const char *scorer_bad_placement(const struct fleet *f, const struct hub_scorer *s, enum hub_reason *reason,
                                 char why[256]);
