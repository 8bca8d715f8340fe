/* Replies of the Model Context Protocol: messages of JSON-RPC 2.0. Pure. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/ui/member.h"

#include <jansson.h>

#define MCP_META "io.modelcontextprotocol/"

/* Who answers: a new reference. */
json_t *mcp_server_info(void);
/* Adds what each result of a stateless revision has. */
void mcp_add_stateless(json_t *result);
/* Appends what is before the value of the result or the error; a `}` ends the message. id: as it came;
 * empty: unknown. */
void mcp_put_head(struct buf *into, struct str id, const char *member);
