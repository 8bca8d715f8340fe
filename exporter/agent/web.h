/* The agent's HTTP server. /metrics is answered on the server's threads, all else on the loop, so that a
 * probe of /-/healthy finds a loop that hangs. */
#pragma once

#include "exporter/agent/agent.h"
#include "exporter/ui/site.h"

/* Serves on the configuration's listen addresses; sets `loop`, `metrics` and the role's part of *o.
 * `lifecycle`: also POST /-/reload. On failure *ret_why (from malloc) says why, and the log has more. */
MUST_USE int web_start(struct site **ret, struct agent *a, struct site_options *o, bool lifecycle,
                       char **ret_why);
