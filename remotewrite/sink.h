/* Remote write as a sink of the agent: the endpoints of the configuration. Agent's loop only. */
#pragma once

#include "exporter/agent/agent.h"
#include "remotewrite/config.h"

struct rw_sink;

/* Adds itself to the agent; free it before the agent, after the agent's loop has ended. */
struct rw_sink *rw_sink_new(struct agent *a);
/* Stops all endpoints in parallel and frees: each sends stale markers and what it can within flush_ms; the
 * rest stays in the spool. Accepts NULL, returns NULL. */
struct rw_sink *rw_sink_stop(struct rw_sink *s, int64_t flush_ms);
/* Applies a configuration, NULL for no endpoints, without waiting for anything. Endpoints are matched by
 * name: those that are the same place continue, others end in the background; what is new starts after them,
 * with what is current then. */
void rw_sink_apply(struct rw_sink *s, const struct rw_config *c, const char *storage_path);
/* Brings the endpoints' metrics up to date. */
void rw_sink_refresh(struct rw_sink *s);
/* Writes the endpoints as items of a list, for the status page. */
void rw_sink_json(struct rw_sink *s, struct buf *o);
