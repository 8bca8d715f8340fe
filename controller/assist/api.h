/* The optimizer's operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp,
 * and described in /openapi.json. All on the loop; answers that do not come at once are printed on a
 * worker. */
#pragma once

#include "controller/assist/api_table.h"
#include "exporter/http/httpd.h"

/* The files of controller/assist/schemas as one object: {"<name>": schema, ..., "operations": [...]}. */
extern const char assist_schemas[];

/* -EAGAIN without a thread; -EINVAL for an operation that is missing (the log says which). */
MUST_USE int api_new(struct api **ret, const struct api_options *o);
/* After the operations under way have ended, before the server is stopped: answers that are being printed
 * are finished. Takes NULL. */
void api_end(struct api *a);
/* After the server was stopped, whose threads read the routes until then. Takes NULL, returns NULL. */
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api, api_free)

/* Routes of the API besides one for each operation. */
enum { API_OWN_ROUTES = 2 };

/* Sets the routes, at most those of the operations and API_OWN_ROUTES; returns their number. */
size_t api_routes(struct api *a, struct httpd_route *to);
