/* How the agent is doing, for people and for programs. All on the loop. */
#ifndef DS_AGENT_STATUS_H
#define DS_AGENT_STATUS_H

#include "exporter/agent/agent.h"
#include "exporter/ui/list.h"

/* The JSON of /api/v1/status, with the scorers that the query asks for. -EFBIG. */
MUST_USE int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into);
/* A table for people; with colours on a terminal, unless $NO_COLOR is set. -EFBIG. */
MUST_USE int status_table(const struct agent_state *a, bool on_terminal, struct buf *into);

#endif
