/* The status of a DynamicScoringConfig: that of the one in use is about the whole fleet. Pure; loop
 * thread. */
#pragma once

#include "controller/hub/follows/condition.h"
#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/config.h"

/* What is wrong with the newest masks or adjustments; "" if both are valid. */
const char *config_error(const struct hub_config *c);
/* Of that error. */
enum hub_reason config_invalid_reason(const struct hub_config *c);
/* Whether there were ever valid ones of both: else it is not known what clusters get. */
bool config_is_known(const struct hub_config *c);
/* The complete status as a merge patch: null for members to remove. A new reference. contest: who undoes
 * our writes of it, or of statuses of scorers. */
json_t *status_of_config(const struct fleet *f, const struct hub_config *c, const struct contest *contest);
