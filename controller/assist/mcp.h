/* The Model Context Protocol over Streamable HTTP, with plain JSON answers. On the loop; large messages
 * are read on the worker.
 *
 * Two generations: revision 2026-07-28 is stateless, and each request says its version in params._meta and
 * in headers; earlier ones begin with `initialize`, after which nothing has to be remembered here either. */
#pragma once

#include "exporter/base/str.h"

struct api;
struct httpd_reply;
struct httpd_request;

/* A message of the Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28), as
 * it came. */
struct mcp_message {
    struct api *api;
    struct httpd_reply *reply;
    const char *header_version, *header_method, *header_name; /* of the headers; NULL: absent */
    struct str body;
};

/* Answers the message, now or later. Headers and body must be valid until then. */
void mcp_handle(const struct mcp_message *m);

/* A handler of httpd; its argument is the struct api. */
void mcp_serve(void *api, const struct httpd_request *rq, struct httpd_reply *reply);
