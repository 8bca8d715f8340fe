/* How the agent is doing, for people and for programs. All on the loop. */
#ifndef DS_AGENT_STATUS_H
#define DS_AGENT_STATUS_H

#include "exporter/agent/agent.h"
#include "exporter/ui/list.h"

/* The JSON of /api/v1/status, with the scorers that the query asks for. -ENOMEM, -EFBIG. */
MUST_USE int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into);
/* A table for the terminal, `width` columns wide; 0 for no limit. -ENOMEM, -EFBIG. */
MUST_USE int status_table(const struct agent_state *a, unsigned width, struct buf *into);

#endif
