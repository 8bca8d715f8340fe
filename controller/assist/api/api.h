/* Serves operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp, and
 * described in /openapi.json. All on the loop; answers that do not come at once are printed on a worker. */
#ifndef DS_ASSIST_API_API_H
#define DS_ASSIST_API_API_H

#include "controller/assist/api/operation.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

struct api;

/* The files of controller/assist/schemas as one object: {"<name>": schema, ..., "operations": [...]}. */
extern const char assist_schemas[];

struct api_options {
    struct loop *loop;
    struct metrics *metrics;
    /* A JSON text like assist_schemas. Of its operations: {name, title, description}; `input` and `output`,
     * the names of schemas (JSON Schema 2020-12, objects); `method` ("GET": arguments are query parameters;
     * "POST": a JSON body) and `path`, without which it is a tool only; `writes`, if it replaces or deletes
     * objects on the cluster, which those with an argument `dryRun` can do without. */
    const char *schemas;
    const struct operation *operations; /* by name; must outlive the API */
    size_t n_operations;
    void *arg;                /* of operations */
    const char *instructions; /* for assistants: how the tools go together; a literal */
    bool allow_writes;        /* assistants may call operations that write */
    bool needs_token;         /* for /openapi.json */
};

/* -EAGAIN; -EINVAL for schemas that are no JSON, or an operation that is missing (the log says which). */
MUST_USE int api_new(struct api **ret, const struct api_options *o);
/* After the operations' owner was freed, before the server is stopped: answers that are being printed are
 * finished. Takes NULL, returns NULL. */
struct api *api_free(struct api *a);
DEFINE_CLEANUP(struct api, api_free)

/* Routes of the API besides one for each operation. */
enum { API_OWN_ROUTES = 2 };

/* Sets the routes, at most those of the operations and API_OWN_ROUTES; returns their number. */
size_t api_routes(struct api *a, struct httpd_route *to);

/* Sends the answer, which is taken, later: it is printed on the worker. */
void api_answer(const struct api *a, struct httpd_reply *reply, json_t *answer);

#endif
