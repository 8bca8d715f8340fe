/* The table of the optimizer's operations: what each is called, takes and answers, by every way that it
 * can be called. Made at the start, on the loop; of it only `argument_bytes` and `is_ending` change after
 * that. */
#pragma once

#include "controller/assist/call.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

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
