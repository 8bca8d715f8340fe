/* The optimizer's operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp,
 * and described in /openapi.json. All on the loop; answers that do not come at once are printed on a
 * worker. */
#pragma once

#include "controller/assist/call.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The files of controller/assist/schemas as one object: {"<name>": schema, ..., "operations": [...]}. */
extern const char assist_schemas[];

struct api_options {
    struct loop *loop;
    struct metrics *metrics;
    /* A JSON text like assist_schemas. Of its operations: {name, title, description}; `input` and
     * `output`, the names of schemas (see schema.h; objects); `method` ("GET": arguments are query
     * parameters; "POST": a JSON body) and `path`, without which it is a tool only; `writes`, if it
     * replaces or deletes objects on the cluster, which those with an argument `dryRun` can do without;
     * `whenWritable`, the end of the description where assistants may write. Besides: `openapi`, the
     * document without paths; `openapi_responses`, of each operation; `mcp`: {"versions", "instructions",
     * "whenWritable", "whenReadOnly", "plansOnly", "maxBytes"}. */
    const char *schemas;
    const struct operation *operations; /* by name; must outlive the API */
    size_t n_operations;
    void *arg;         /* of operations */
    bool allow_writes; /* assistants may call operations that write */
    bool needs_token;  /* for /openapi.json */
};

struct api_operation {
    struct api *api;
    const struct operation *o;
    const json_t *described;   /* in the schemas */
    const char *method, *path; /* NULL: a tool only */
    json_t *input, *output;    /* the schemas, borrowed */
    bool writes;
    json_t *tool_input; /* the schema with maxBytes; NULL: not offered as a tool */
};

struct api {
    struct api_options o;
    struct worker *worker;
    json_t *schemas;
    json_t *instructions;         /* a string: what assistants read first */
    atomic_size_t argument_bytes; /* of memory for the arguments of requests under way; loop and worker */
    bool is_ending;
    struct buf openapi; /* the document */
    json_t *tools;      /* the array that tools/list answers */
    size_t n;
    struct api_operation operations[];
};

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
