/* Remote write as a sink of the agent: all endpoints of the configuration. Belongs to the agent's loop. */
#ifndef DS_REMOTEWRITE_SINK_H
#define DS_REMOTEWRITE_SINK_H

#include "exporter/agent/agent.h"
#include "remotewrite/config.h"

struct rw_sink;

/* Adds itself to the agent, and is to be freed before it, once the agent's loop runs no more. -ENOMEM, -ENOSPC. */
MUST_USE int rw_sink_new(struct rw_sink **ret, struct agent *a);
/* Stops every endpoint at once, and waits: stale markers, and what can be sent within flush_ms; the rest stays in the
 * spool. Then frees. Takes NULL, returns NULL. */
struct rw_sink *rw_sink_stop(struct rw_sink *s, int64_t flush_ms);
/* Takes a configuration over: endpoints are known by name; those that have not changed go on, the others stop and start
 * anew with their spool. c may be NULL: none. */
void rw_sink_apply(struct rw_sink *s, const struct rw_config *c, const char *storage_path);
/* Brings the endpoints' metrics up to date. */
void rw_sink_refresh(struct rw_sink *s);
/* The endpoints for the status page; valid until the next call. */
const struct endpoint_status *rw_sink_endpoints(struct rw_sink *s, size_t *ret_n);

#endif
