/* The status of a DynamicScoringConfig: that of the one in use is about the whole fleet. Pure; loop
 * thread. */
#pragma once

#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/config.h"

/* Why the newest masks or adjustments are not in force. */
enum hub_reason config_invalid_reason(const struct hub_config *c);
/* The complete status as a merge patch: null for members to remove. A new reference. contest: who undoes
 * our writes of it, or of statuses of scorers. */
json_t *status_of_config(const struct fleet *f, const struct hub_config *c, const struct contest *contest);
