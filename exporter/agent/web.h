/* The agent's HTTP endpoints. */
#ifndef DS_AGENT_WEB_H
#define DS_AGENT_WEB_H

#include "exporter/ui/site.h"

#include <stdbool.h>

struct agent;

/* Serves on the configuration's listen addresses; sets `loop`, `metrics` and the role's part of *o.
 * `lifecycle`: also POST /-/reload. On failure *ret_why (from malloc) says what is wrong; the log has the
 * problems of the web configuration file. */
MUST_USE int web_start(struct site **ret, struct agent *a, struct site_options *o, bool lifecycle,
                       char **ret_why);

#endif
