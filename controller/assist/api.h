/* Serves operations over HTTP: as REST requests, as tools of the Model Context Protocol at /mcp, and
 * described in /openapi.json. All on the loop; answers that do not come at once are printed on a worker. */
#ifndef DS_ASSIST_API_API_H
#define DS_ASSIST_API_API_H

#include "controller/assist/api/operation.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
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
     * objects on the cluster, which those with an argument `dryRun` can do without. Besides: `openapi`, the
     * document without paths; `openapi_responses`, of each operation; `mcp`: {"instructions", "maxBytes"}. */
    const char *schemas;
    const struct operation *operations; /* by name; must outlive the API */
    size_t n_operations;
    void *arg;         /* of operations */
    bool allow_writes; /* assistants may call operations that write */
    bool needs_token;  /* for /openapi.json */
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

/* ---- Requests, for REST and assistants alike ---- */

enum {
    CALL_RETRY_AFTER_S = 5, /* what errors of 503 and 504 advise */
    API_MAX_BODY = 16 << 20,
    API_MAX_ANSWER = 512 << 20,
};

struct api_operation {
    struct api *api;
    const struct operation *o;
    const char *method, *path; /* NULL: a tool only */
    const char *title, *description;
    const json_t *input, *output; /* the schemas */
    bool writes, has_dry_run;
    json_t *tool_input; /* the schema with maxBytes */
};

struct api {
    struct metrics *metrics;
    struct worker *worker;
    json_t *schemas;
    void *arg; /* of the operations */
    bool allow_writes;
    struct buf openapi; /* the document */
    json_t *tools;      /* the array that tools/list answers */
    size_t n;
    struct api_operation operations[];
};

/* A call that came by HTTP. */
struct api_request {
    struct call call;
    struct job job;
    const struct api_operation *operation; /* NULL for api_answer() */
    const char *interface;
    struct httpd_reply *reply;
    bool is_starting, has_ended, is_deferred;
    struct worker *worker;
    int (*print)(struct api_request *r, struct buf *into);
    unsigned http_status; /* 0: that of the call */
    struct buf body;
    int r; /* of print() */
    /* mcp.c: */
    json_t *id;
    bool is_stateless; /* protocol of 2026-07-28 and later */
};

/* interface: "rest", "mcp", for the metric. `print` writes the body for the call's status and answer, on the
 * worker unless it comes at once. */
struct api_request *api_request_new(struct httpd_reply *reply, const char *interface,
                                    int (*print)(struct api_request *r, struct buf *into));
/* Starts the call, unless the input, which is taken, does not keep the schema. The request is answered and
 * freed when it has ended. */
void api_request_start(const struct api_operation *op, struct api_request *r, json_t *input,
                       const json_t *schema);
/* Prints the call's answer as it is. */
int api_request_print(struct api_request *r, struct buf *into);

/* Whether the media type is this one, whatever its parameters. */
bool api_media_type_is(const char *content_type, const char *type);
/* Replies with JSON, which is taken. */
void api_reply_json(struct httpd_reply *reply, unsigned status, json_t *o);

/* ---- The Model Context Protocol (https://modelcontextprotocol.io/specification/2026-07-28) ---- */

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

void mcp_handle(struct mcp_message *m, struct str body);
/* The route; `arg` is the API. */
void mcp_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply);
/* Describes the tools. */
void mcp_build_tools(struct api *a);

#endif
