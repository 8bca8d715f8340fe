/* Owns nothing: the document is the API's, made once from the table of operations and never changed. */
#include "controller/assist/openapi.h"

#include "controller/assist/api.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

enum { MAX_OPENAPI = 1 << 20 };

static json_t *openapi_parameters(const json_t *input)
{
    const json_t *required = json_object_get(input, "required");
    json_t *all = json_array(), *schema;
    const char *name;

    json_object_foreach(json_object_get(input, "properties"), name, schema)
    {
        (void)json_array_append_new(all,
                                    json_pack("{s:s,s:s,s:b,s:s,s:O}", "name", name, "in", "query",
                                              "required", kube_list_has(required, name), "description",
                                              cstr(kube_str(schema, "description", NULL)), "schema", schema));
    }
    return all;
}

static json_t *openapi_operation(const struct api_operation *op)
{
    bool is_required = json_array_size(json_object_get(op->input, "required")) > 0;
    json_t *responses = json_deep_copy(json_object_get(op->api->schemas, "openapi_responses"));
    json_t *o = json_pack("{s:s,s:O,s:s+,s:o}", "operationId", op->o->name, "summary",
                          json_object_get(op->described, "title"), "description",
                          kube_str(op->described, "description", NULL),
                          cstr(kube_str(op->described, "whenWritable", NULL)), "responses", responses);

    (void)json_object_set(kube_map(responses, "200", "content", "application/json", NULL), "schema",
                          (json_t *)(uintptr_t)op->output);
    if (strcmp(op->method, "GET") == 0)
        (void)json_object_set_new(o, "parameters", openapi_parameters(op->input));
    else
        (void)json_object_set_new(o, "requestBody",
                                  json_pack("{s:{s:{s:O}},s:b}", "content", "application/json", "schema",
                                            op->input, "required", is_required));
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
