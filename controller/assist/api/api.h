/* Serves a table of operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp,
 * and described in /openapi.json. All on the loop; large answers are printed on a worker. */
#ifndef DS_ASSIST_API_API_H
#define DS_ASSIST_API_API_H

#include "controller/assist/api/operation.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

struct api;

struct api_options {
    struct loop *loop;
    struct metrics *metrics;
    struct operations operations; /* must outlive the API */
    const char *instructions;     /* for assistants: how the tools go together; a literal */
    bool allow_writes;            /* assistants may call operations with an effect */
    bool needs_token;             /* for /openapi.json */
};

/* -EAGAIN; -EINVAL for an operation whose schemas are no JSON (the log names it). */
MUST_USE int api_new(struct api **ret, const struct api_options *o);
/* After the operations' owner was freed, before the server is stopped: answers that are being printed are
 * finished. Takes NULL, returns NULL. */
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api, api_free)

/* Routes of the API besides one for each operation. */
enum { API_OWN_ROUTES = 2 };

/* Sets the routes, at most those of the operations and API_OWN_ROUTES; returns their number. */
size_t api_routes(struct api *a, struct httpd_route *to);

/* Sends the answer, which is taken, as those of operations are sent: a large one is printed on the worker. */
void api_answer(const struct api *a, struct httpd_reply *reply, json_t *answer);

#endif
