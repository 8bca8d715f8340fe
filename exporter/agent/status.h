/* How the agent is doing, for people and for programs, and its HTTP server. All on the loop. */
#ifndef DS_AGENT_STATUS_H
#define DS_AGENT_STATUS_H

#include "exporter/agent/agent.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"

/* The JSON of /api/v1/status, with the scorers that the query asks for. -EFBIG. */
MUST_USE int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into);
/* A table for people; with colours on a terminal, unless $NO_COLOR is set. -EFBIG. */
MUST_USE int status_table(const struct agent_state *a, bool on_terminal, struct buf *into);

/* Serves on the configuration's listen addresses; sets `loop`, `metrics` and the role's part of *o.
 * `lifecycle`: also POST /-/reload. On failure *ret_why (from malloc) says what is wrong; the log has the
 * problems of the web configuration file. */
MUST_USE int web_start(struct site **ret, struct agent *a, struct site_options *o, bool lifecycle,
                       char **ret_why);

#endif
