/* The status of a DynamicScorer, which follows from the fleet. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/scorer.h"

/* The complete status as a merge patch: null for members to remove. A new reference. contest: who undoes
 * our writes of it. */
json_t *status_of_scorer(const struct fleet *f, const struct hub_scorer *s, const struct contest *contest);
/* Whether condition Ready is true. */
bool scorer_is_ready(const struct fleet *f, const struct hub_scorer *s);
/* Whether it shares the AddOnPlacementScore, but not the score name, with its older or younger one. */
bool scorer_shares_object(const struct hub_scorer *s);
