/* How the agent is doing, for people and for programs. All on the loop. */
#ifndef DS_AGENT_STATUS_H
#define DS_AGENT_STATUS_H

#include "exporter/agent/agent.h"

/* The status page: HTML without script, fit for a phone, nothing from outside. -ENOMEM, -EFBIG. */
MUST_USE int status_html(const struct agent *a, struct buf *into);
/* Content-Security-Policy of that page. */
extern const char status_html_csp[];
/* The same as JSON (for /api/v1/status and --output json). */
MUST_USE int status_json(const struct agent *a, struct buf *into);
/* The same as a table for the terminal. `width` columns, 0 for as wide as it needs. */
MUST_USE int status_table(const struct agent *a, unsigned width, struct buf *into);

#endif
