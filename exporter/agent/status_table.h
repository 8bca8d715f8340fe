/* The table of `agent --once`, for people who write a scoring API: what each scorer did, and its scores. */
#pragma once

#include "exporter/agent/agent.h"

/* With colours on a terminal, unless $NO_COLOR is set. -EFBIG. */
MUST_USE int status_table(const struct agent_state *a, bool on_terminal, struct buf *into);
