/* Inside of the Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28): its tools,
 * over Streamable HTTP with plain JSON answers. Two generations: revision 2026-07-28 is stateless, and each
 * request says its version in params._meta and in headers; earlier ones begin with `initialize`, after which
 * nothing has to be remembered here either. */
#ifndef DS_ASSIST_API_MCP_H
#define DS_ASSIST_API_MCP_H

#include "controller/assist/api/api_internal.h"

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_STATELESS "2026-07-28" /* the first revision without initialize */
#define MCP_STATEFUL  "2025-11-25" /* the last one with it */
#define MCP_META      "io.modelcontextprotocol/"

enum { MCP_TTL_MS = 300 * 1000 }; /* how long clients may keep the list of tools */

/* One message and what came with it. All but `reply` is borrowed by those who handle it. */
struct mcp_message {
    struct api *api;
    struct httpd_reply *reply;
    const char *header_version, *header_method, *header_name; /* of the headers; NULL: absent */
    const char *method;
    const json_t *params; /* an object, or NULL without any */
    json_t *id;           /* NULL: a notification, or unknown */
    bool is_stateless;
};

/* Handles one body. */
void mcp_handle(struct mcp_message *m, struct str body);

/* Replies with a result, taken; NULL: out of memory. */
void mcp_reply_result(const struct mcp_message *m, json_t *result);
/* Replies with an error; data (taken) may be NULL. */
void mcp_reply_error(const struct mcp_message *m, enum mcp_code code, json_t *data, const char *text);
/* Adds what each stateless result has, to the result, borrowed. -1 when out of memory. */
int mcp_add_stateless(json_t *result);
json_t *mcp_server_info(void);

/* The revisions, newest first. NULL when out of memory. */
json_t *mcp_versions(void);
/* Whether the revision begins with initialize. */
bool mcp_is_stateful(const char *version);
/* Decides which generation the message is of and checks what that asks of it; false after the reply. */
bool mcp_check_version(struct mcp_message *m);

void mcp_list_tools(const struct mcp_message *m);
void mcp_call_tool(const struct mcp_message *m);

#endif
