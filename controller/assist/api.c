#include "controller/assist/api/api.h"

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

static void rest_refuse(struct httpd_reply *reply, unsigned status, const char *detail)
{
    api_reply_json(reply, status, json_pack("{s:s}", "detail", detail));
}

/* The value of a query parameter: an integer if the schema asks for one and the text is one, else a string.
 * NULL if it is not well-formed UTF-8. */
static json_t *rest_read_text(const json_t *schema, const char *text)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    char *end;
    long long integer;

    errno = 0;
    integer = strtoll(text, &end, 10);
    if (strcmp(cstr(type), "integer") == 0 && !*end && end > text && errno == 0 && *text != ' ')
        return json_integer(integer);
    return json_string(text);
}

/* The arguments of a GET; NULL after a refusal. */
static json_t *rest_read_query(const struct api_operation *op, const struct httpd_request *rq,
                               struct httpd_reply *reply)
{
    const json_t *properties = json_object_get(op->input, "properties");
    const char *end = rq->arguments.p + rq->arguments.n, *value;
    json_t *o = json_object();

    for (const char *name = rq->arguments.p; rq->arguments.n && name < end;
         name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        if (json_object_set_new(o, name, rest_read_text(json_object_get(properties, name), value)) < 0) {
            rest_refuse(reply, 400, "the query parameters are not UTF-8");
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
    if (!api_media_type_is(rq->content_type, "application/json") || *rq->content_encoding)
        rest_refuse(reply, 415, "the body must be application/json, not compressed");
    else if (kube_json_parse(&o, rq->body, why) < 0)
        rest_refuse(reply, 400, why);
    return o;
}

static void rest_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api_operation *op = arg;
    json_t *input =
        strcmp(op->method, "GET") == 0 ? rest_read_query(op, rq, reply) : rest_read_body(rq, reply);

    if (input)
        api_request_start(op, api_request_new(reply, "rest", api_request_print), input, op->input);
}

/* ---- The document of the REST requests (https://spec.openapis.org/oas/v3.1.1) ---- */

enum { MAX_BYTES = 1 << 20 };

static json_t *openapi_responses(const struct api_operation *op)
{
    json_t *all = json_deep_copy(json_object_get(op->api->schemas, "openapi_responses"));

    (void)json_object_set(kube_map(all, "200", "content", "application/json", NULL), "schema",
                          (json_t *)(uintptr_t)op->output);
    return all;
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
    json_t *o = json_pack("{s:s,s:s,s:s,s:o}", "operationId", op->o->name, "summary", op->title,
                          "description", op->description, "responses", openapi_responses(op));

    if (strcmp(op->method, "GET") == 0)
        (void)json_object_set_new(o, "parameters", openapi_parameters(op->input));
    else
        (void)json_object_set_new(
            o, "requestBody",
            json_pack("{s:{s:{s:O}},s:b}", "content", "application/json", "schema", op->input, "required",
                      (int)(json_array_size(json_object_get(op->input, "required")) > 0)));
    return o;
}

static json_t *openapi_paths(const struct api *a)
{
    json_t *paths = json_object();

    for (size_t i = 0; i < a->n; i++) {
        const struct api_operation *op = &a->operations[i];
        json_t *path = op->path ? json_object_get(paths, op->path) : NULL;

        if (op->path && !path)
            (void)json_object_set_new(paths, op->path, path = json_object());
        if (path)
            (void)json_object_set_new(path, strcmp(op->method, "GET") == 0 ? "get" : "post",
                                      openapi_operation(op));
    }
    return paths;
}

static void openapi_build(struct api *a, bool needs_token)
{
    json_auto_t *o = json_deep_copy(json_object_get(a->schemas, "openapi"));

    (void)json_object_set_new(kube_map(o, "info", NULL), "version", json_string(ds_version));
    (void)json_object_set_new(o, "paths", openapi_paths(a));
    if (!needs_token) {
        (void)json_object_del(kube_map(o, "components", NULL), "securitySchemes");
        (void)json_object_del(o, "security");
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

/* Failures that an operation may answer with are counted from 0, so that the first one is an increase. */
static void api_count_from_zero(const struct api_operation *op)
{
    static const char *const codes[] = {"500", "503", "504"};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (op->path)
            metric_add(op->api->metrics, METRIC_OPTIMIZER_REQUESTS, LV(codes[i], "rest", op->o->name), 0);
        metric_add(op->api->metrics, METRIC_OPTIMIZER_REQUESTS, LV(codes[i], "mcp", op->o->name), 0);
    }
}

static int api_add(struct api *a, const struct api_options *o, const json_t *described)
{
    const char *name = cstr(kube_str(described, "name", NULL));
    struct api_operation *op = &a->operations[a->n++];

    *op = (struct api_operation){
        .api = a,
        .method = kube_str(described, "method", NULL),
        .path = kube_str(described, "path", NULL),
        .title = kube_str(described, "title", NULL),
        .description = kube_str(described, "description", NULL),
        .input = json_object_get(a->schemas, cstr(kube_str(described, "input", NULL))),
        .output = json_object_get(a->schemas, cstr(kube_str(described, "output", NULL))),
        .writes = json_is_true(json_object_get(described, "writes")),
    };
    op->has_dry_run = kube_get(op->input, "properties", "dryRun", NULL);
    for (size_t i = 0; i < o->n_operations; i++)
        if (strcmp(o->operations[i].name, name) == 0)
            op->o = &o->operations[i];
    if (!op->o || !op->title || !op->description || !op->input || !op->output) {
        log_error("invalid description of an operation", L_STR("operation", name));
        return -EINVAL;
    }
    api_count_from_zero(op);
    return 0;
}

int api_new(struct api **ret, const struct api_options *o)
{
    json_error_t e;
    json_t *schemas = json_loads(o->schemas, 0, &e), *list = kube_list(schemas, "operations", NULL);
    size_t n = json_array_size(list);
    CLEANUP(cleanup_api_free) struct api *a = xcalloc(1, sizeof(*a) + n * sizeof(a->operations[0]));
    int r = worker_new(&a->worker, o->loop);

    a->schemas = schemas;
    a->metrics = o->metrics;
    a->arg = o->arg;
    a->allow_writes = o->allow_writes;
    if (!schemas) {
        log_error("invalid schemas of operations", L_STR("err", e.text));
        return -EINVAL;
    }
    for (size_t i = 0; r == 0 && i < n; i++)
        r = api_add(a, o, json_array_get(list, i));
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
    for (size_t i = 0; i < a->n; i++)
        json_decref(a->operations[i].tool_input);
    json_decref(a->schemas);
    json_decref(a->tools);
    buf_done(&a->openapi);
    free(a);
    return NULL;
}

size_t api_routes(struct api *a, struct httpd_route *to)
{
    struct httpd_route *from = to;

    for (size_t i = 0; i < a->n; i++)
        if (a->operations[i].path)
            *to++ = (struct httpd_route){.method = a->operations[i].method,
                                         .path = a->operations[i].path,
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
