#include "controller/assist/api/api.h"

#include "controller/assist/api/request.h"
#include "controller/assist/api/schema.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"
#include "exporter/base/str.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- REST: query parameters or a JSON body in, JSON out ---- */

static void rest_refuse(struct httpd_reply *reply, unsigned status, const char *detail, const char *field)
{
    api_reply_json(reply, status,
                   *field ? json_pack("{s:s,s:s}", "detail", detail, "field", field)
                          : json_pack("{s:s}", "detail", detail));
}

/* A parameter that may be repeated is a list. */
static int rest_add_parameter(json_t *into, const json_t *properties, const char *name, const char *value)
{
    const json_t *schema = json_object_get(properties, name);
    json_t *list = json_object_get(into, name);

    if (!schema_has_type(schema, "array"))
        return json_object_set_new(into, name, schema_read_text(schema, value));
    if (!list)
        (void)json_object_set_new(into, name, list = json_array());
    return json_array_append_new(list, schema_read_text(json_object_get(schema, "items"), value));
}

/* The arguments of a GET. NULL for text that is not UTF-8. */
static json_t *rest_read_query(const struct api_operation *op, const struct httpd_request *rq)
{
    const json_t *properties = json_object_get(op->input, "properties");
    const char *end = rq->arguments.p + rq->arguments.n, *value;
    json_t *o = json_object();

    for (const char *name = rq->arguments.p; rq->arguments.n && name < end;
         name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        if (rest_add_parameter(o, properties, name, value) < 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

/* The arguments of a POST; NULL after a refusal. Nothing at all reads as {}. */
static json_t *rest_read_body(const struct httpd_request *rq, struct httpd_reply *reply)
{
    char why[256] = "";
    json_t *o = NULL;

    if (rq->body.n == 0 && !*rq->content_type)
        return json_object();
    if (!api_media_type_is(rq->content_type, "application/json") || *rq->content_encoding) {
        rest_refuse(reply, 415, "the body must be application/json, not compressed", "");
        return NULL;
    }
    if (api_parse(&o, rq->body, why) < 0)
        rest_refuse(reply, 400, why, "");
    return o;
}

static void rest_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api_operation *op = arg;
    bool is_get = strcmp(op->o->method, "GET") == 0;
    json_t *input = is_get ? rest_read_query(op, rq) : rest_read_body(rq, reply);
    struct schema_problem problem;
    struct api_request *r;

    if (!input && is_get)
        rest_refuse(reply, 400, "the query parameters are not UTF-8", "");
    if (!input)
        return;
    if (!schema_accepts(op->input, input, &problem)) {
        char detail[sizeof(problem.field) + sizeof(problem.text) + 4];

        (void)snprintf(detail, sizeof(detail), "%s: %s", *problem.field ? problem.field : "body",
                       problem.text);
        rest_refuse(reply, 422, detail, problem.field);
        json_decref(input);
        return;
    }
    r = api_request_new(reply);
    r->interface = "rest";
    r->print = api_request_print;
    api_request_start(op, r, input);
}

/* ---- The document of the REST requests (https://spec.openapis.org/oas/v3.1.1) ---- */

enum { MAX_BYTES = 1 << 20 };

#define ERROR_REF "#/components/schemas/Error"

static json_t *openapi_body(json_t *schema)
{
    return json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema", schema);
}

/* Errors of the HTTP server itself, such as a wrong token, are text. */
static json_t *openapi_error(const char *description)
{
    return json_pack("{s:s,s:{s:{s:{s:s}},s:{s:{s:s}}}}", "description", description, "content",
                     "application/json", "schema", "$ref", ERROR_REF, "text/plain", "schema", "type",
                     "string");
}

static json_t *openapi_responses(const struct api_operation *op)
{
    json_t *ok = openapi_body(json_incref(op->output));

    (void)json_object_set_new(ok, "description", json_string("The answer."));
    return json_pack("{s:o,s:o,s:o,s:o}", "200", ok, "400", openapi_error("The request cannot be read."),
                     "422", openapi_error("An argument is invalid: \"field\" says which."), "default",
                     openapi_error("Another error."));
}

static json_t *openapi_parameters(const json_t *input)
{
    json_t *all = json_array(), *schema;
    const char *name;

    json_object_foreach(json_object_get(input, "properties"), name, schema)
    {
        const char *description = json_string_value(json_object_get(schema, "description"));

        (void)json_array_append_new(all, json_pack("{s:s,s:s,s:b,s:s,s:O}", "name", name, "in", "query",
                                                   "required",
                                                   kube_list_has(json_object_get(input, "required"), name),
                                                   "description", cstr(description), "schema", schema));
    }
    return all;
}

static json_t *openapi_operation(const struct api_operation *op)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:o}", "operationId", op->o->name, "summary", op->o->title,
                          "description", op->o->description, "responses", openapi_responses(op)),
           *body;

    if (strcmp(op->o->method, "GET") == 0) {
        (void)json_object_set_new(o, "parameters", openapi_parameters(op->input));
        return o;
    }
    body = openapi_body(json_incref(op->input));
    (void)json_object_set_new(body, "required",
                              json_boolean(json_array_size(json_object_get(op->input, "required")) > 0));
    (void)json_object_set_new(o, "requestBody", body);
    return o;
}

static json_t *openapi_paths(const struct api *a)
{
    json_t *paths = json_object();

    for (size_t i = 0; i < a->n; i++) {
        const struct operation *o = a->operations[i].o;

        json_t *path = o->method ? json_object_get(paths, o->path) : NULL;

        if (!o->method)
            continue;
        if (!path)
            (void)json_object_set_new(paths, o->path, path = json_object());
        (void)json_object_set_new(path, strcmp(o->method, "GET") == 0 ? "get" : "post",
                                  openapi_operation(&a->operations[i]));
    }
    return paths;
}

static void openapi_build(struct api *a, bool needs_token)
{
    json_auto_t *o = json_pack(
        "{s:s,s:{s:s,s:s,s:s},s:o,s:{s:{s:{s:s,s:[s],s:{s:{s:s,s:s},s:{s:s,s:s}}}}}}", "openapi", "3.1.0",
        "info", "title", "Dynamic Scoring optimizer", "version", ds_version, "description",
        "Chooses clusters for workloads and settings for clusters by AddOnPlacementScores. Assistants use "
        "the "
        "same operations as tools of the Model Context Protocol at /mcp.",
        "paths", openapi_paths(a), "components", "schemas", "Error", "type", "object", "required", "detail",
        "properties", "detail", "type", "string", "description", "What is wrong, a sentence.", "field",
        "type", "string", "description", "The argument that it is about, such as clusters[1].name.");

    if (needs_token) {
        (void)json_object_set_new(json_object_get(o, "components"), "securitySchemes",
                                  json_pack("{s:{s:s,s:s}}", "token", "type", "http", "scheme", "bearer"));
        (void)json_object_set_new(o, "security", json_pack("[{s:[]}]", "token"));
    }
    a->openapi.max = MAX_BYTES;
    (void)!kube_json_print(o, &a->openapi);
}

static void openapi_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api *a = arg;

    (void)rq;
    httpd_reply_copy(reply, buf_str(&a->openapi));
    reply->content_type = "application/json";
}

/* ---- The API ---- */

static int api_read_schema(json_t **ret, const struct operation *o, const char *text)
{
    json_error_t e;

    *ret = json_loads(text, 0, &e);
    if (*ret)
        return 0;
    log_error("invalid schema of an operation", L_STR("operation", o->name), L_STR("err", e.text));
    return -EINVAL;
}

/* Failures that an operation may answer with are counted from 0, so that the first one is an increase. */
static void api_count_from_zero(const struct api *a, const struct operation *o)
{
    static const char *const codes[] = {"500", "503", "504"};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (o->method)
            metric_add(a->metrics, METRIC_OPTIMIZER_REQUESTS, LV(codes[i], "rest", o->name), 0);
        if (o->is_tool)
            metric_add(a->metrics, METRIC_OPTIMIZER_REQUESTS, LV(codes[i], "mcp", o->name), 0);
    }
}

int api_new(struct api **ret, const struct api_options *o)
{
    size_t n = o->operations.n;
    CLEANUP(cleanup_api_free) struct api *a = xcalloc(1, sizeof(*a) + n * sizeof(a->operations[0]));
    int r = worker_new(&a->worker, o->loop);

    if (r < 0)
        return r;
    a->loop = o->loop;
    a->metrics = o->metrics;
    a->arg = o->operations.arg;
    a->instructions = o->instructions;
    a->allow_writes = o->allow_writes;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct api_operation *op = &a->operations[a->n++];

        *op = (struct api_operation){.api = a, .o = o->operations.table[i]};
        api_count_from_zero(a, op->o);
        r = api_read_schema(&op->input, op->o, op->o->input);
        if (r == 0)
            r = api_read_schema(&op->output, op->o, op->o->output);
    }
    if (r < 0)
        return r;
    openapi_build(a, o->needs_token);
    mcp_build_tools(a);
    *ret = TAKE_PTR(a);
    return 0;
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    a->worker = worker_free(a->worker);
    for (size_t i = 0; i < a->n; i++) {
        json_decref(a->operations[i].input);
        json_decref(a->operations[i].output);
        json_decref(a->operations[i].tool_input);
    }
    buf_done(&a->openapi);
    json_decref(a->tools);
    free(a);
    return NULL;
}

size_t api_routes(struct api *a, struct httpd_route *to)
{
    struct httpd_route *from = to;

    for (size_t i = 0; i < a->n; i++)
        if (a->operations[i].o->method)
            *to++ = (struct httpd_route){.method = a->operations[i].o->method,
                                         .path = a->operations[i].o->path,
                                         .fn = rest_serve,
                                         .arg = &a->operations[i],
                                         .max_body = API_MAX_BODY};
    *to++ = (struct httpd_route){.method = "GET", .path = "/openapi.json", .fn = openapi_serve, .arg = a};
    *to++ = (struct httpd_route){.method = "POST",
                                 .path = "/mcp",
                                 .fn = mcp_serve,
                                 .arg = a,
                                 .max_body = API_MAX_BODY,
                                 .local_origins = true};
    return (size_t)(to - from);
}
