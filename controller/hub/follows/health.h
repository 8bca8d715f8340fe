/* Whether a scorer's API is healthy, and where that lets the scorer go. Pure; loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/probe/probe.h"

/* By probes or agents' reports. Unknown if it is not checked, and on a standby unless the hub probes it. */
enum probe_health scorer_health(const struct fleet *f, const struct hub_scorer *s);
/* Whether it is still to be seen if /config can be read: until then its own fields go to no new cluster. */
bool scorer_awaits_config(const struct hub_scorer *s);
/* What its health allows. One that agents check is always in the summaries: nobody else reports on it. */
enum hub_place scorer_place(const struct hub_options *o, const struct hub_scorer *s);
/* Whether the first plan need not wait for its probe. */
bool scorer_is_probed(const struct hub_scorer *s);
