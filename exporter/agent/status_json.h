/* How the agent is doing, for programs and for the status page. Loop thread. */
#pragma once

#include "exporter/agent/agent.h"
#include "exporter/ui/list.h"
#include "exporter/ui/site.h"

/* The JSON of /api/v1/status, with the scorers that the query asks for. -EFBIG. */
MUST_USE int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into);
