/* The Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28): its tools, over
 * Streamable HTTP with plain JSON answers. Two generations: revision 2026-07-28 is stateless, and each
 * request says its version in params._meta and in headers; earlier ones begin with `initialize`, after which
 * nothing has to be remembered here either. */
#ifndef DS_ASSIST_API_MCP_H
#define DS_ASSIST_API_MCP_H

#include "controller/assist/api/request.h"
#include "exporter/base/httpd.h"

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

/* The route; `arg` is the API. */
void mcp_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply);
/* Describes the tools. */
void mcp_build_tools(struct api *a);

#endif
