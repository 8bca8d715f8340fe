/* Owns nothing: the document is the API's, made once from the table of operations and never changed. */
#include "controller/assist/openapi.h"

#include "controller/assist/api_table.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

enum { MAX_OPENAPI = 1 << 20 };

static json_t *openapi_parameter(const char *name, json_t *schema, bool is_required)
{
    json_t *parameter = json_object();

    kube_set_str(parameter, "name", name);
    kube_set_str(parameter, "in", "query");
    kube_set_bool(parameter, "required", is_required);
    kube_set_str(parameter, "description", cstr(kube_str(schema, "description", NULL)));
    kube_set(parameter, "schema", json_incref(schema));
    return parameter;
}

static json_t *openapi_parameters(const json_t *input)
{
    const json_t *required = json_object_get(input, "required");
    json_t *all = json_array(), *schema;
    const char *name;

    json_object_foreach(json_object_get(input, "properties"), name, schema)
    {
        kube_append(all, openapi_parameter(name, schema, kube_list_has(required, name)));
    }
    return all;
}

static json_t *openapi_body(json_t *schema)
{
    bool is_required = json_array_size(json_object_get(schema, "required")) > 0;
    json_t *body = json_object(), *content = kube_set_object(body, "content");

    kube_set(kube_set_object(content, "application/json"), "schema", json_incref(schema));
    kube_set_bool(body, "required", is_required);
    return body;
}

static json_t *openapi_responses(const struct api_operation *op)
{
    json_t *responses = json_deep_copy(json_object_get(op->api->schemas, "openapi_responses"));
    json_t *ok = kube_map(responses, "200", "content", "application/json", NULL);

    kube_set(ok, "schema", json_incref(op->output));
    return responses;
}

static json_t *openapi_operation(const struct api_operation *op)
{
    const char *when_writable = cstr(kube_str(op->described, "whenWritable", NULL));
    json_t *o = json_object();

    kube_set_str(o, "operationId", op->o->name);
    kube_set(o, "summary", json_incref(json_object_get(op->described, "title")));
    kube_set(o, "description",
             json_sprintf("%s%s", kube_str(op->described, "description", NULL), when_writable));
    kube_set(o, "responses", openapi_responses(op));
    if (strcmp(op->method, "GET") == 0)
        kube_set(o, "parameters", openapi_parameters(op->input));
    else
        kube_set(o, "requestBody", openapi_body(op->input));
    return o;
}

static json_t *openapi_paths(const struct api *a)
{
    json_t *paths = json_object();

    for (size_t i = 0; i < a->n; i++) {
        const struct api_operation *op = &a->operations[i];
        json_auto_t *path =
            op->path ? json_pack("{s:{s:o}}", op->path, strcmp(op->method, "GET") == 0 ? "get" : "post",
                                 openapi_operation(op))
                     : NULL;

        (void)json_object_update_recursive(paths, path); /* one may have both methods */
    }
    return paths;
}

void openapi_build(struct api *a)
{
    json_auto_t *o = json_deep_copy(json_object_get(a->schemas, "openapi"));

    (void)json_object_set_new(kube_map(o, "info", NULL), "version", json_string(ds_version));
    (void)json_object_set_new(o, "paths", openapi_paths(a));
    if (!a->o.needs_token) {
        (void)json_object_del(kube_map(o, "components", NULL), "securitySchemes");
        (void)json_object_del(o, "security");
    }
    a->openapi.max = MAX_OPENAPI;
    kube_json_print(o, &a->openapi);
    invariant(buf_failed(&a->openapi) == 0);
}

void openapi_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api *a = arg;

    (void)rq;
    httpd_reply_copy(reply, buf_str(&a->openapi));
    reply->content_type = "application/json";
}
