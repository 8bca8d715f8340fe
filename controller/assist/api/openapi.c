/* The document of the REST requests (https://spec.openapis.org/oas/v3.1.1), built once. */
#include "controller/assist/api/api_internal.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/str.h"
#include "exporter/metric/version.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

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

/* NULL when out of memory, as all functions here. */
static json_t *openapi_parameters(const json_t *input)
{
    json_t *all = json_array(), *schema;
    const char *name;

    json_object_foreach(json_object_get(input, "properties"), name, schema)
    {
        const char *description = json_string_value(json_object_get(schema, "description"));
        json_t *p = json_pack("{s:s,s:s,s:b,s:s,s:O}", "name", name, "in", "query", "required",
                              kube_list_has(json_object_get(input, "required"), name), "description",
                              cstr(description), "schema", schema);

        if (json_array_append_new(all, p) < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *openapi_operation(const struct api_operation *op)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:o}", "operationId", op->o->name, "summary", op->o->title,
                          "description", op->o->description, "responses", openapi_responses(op));
    json_t *body = NULL;
    int r;

    if (strcmp(op->o->method, "GET") == 0) {
        r = json_object_set_new(o, "parameters", openapi_parameters(op->input));
    } else {
        body = openapi_body(json_incref(op->input));
        r = json_object_set_new(body, "required",
                                json_boolean(json_array_size(json_object_get(op->input, "required")) > 0));
        r = json_object_set_new(o, "requestBody", body) < 0 ? -1 : r;
    }
    if (r < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *openapi_paths(const struct api *a)
{
    json_t *paths = json_object();

    for (size_t i = 0; paths && i < a->n; i++) {
        const struct operation *o = a->operations[i].o;
        json_t *path = o->method ? json_object_get(paths, o->path) : NULL;
        char method[8] = "";

        if (!o->method)
            continue;
        for (size_t k = 0; o->method[k] && k + 1 < sizeof(method); k++)
            method[k] = (char)tolower((unsigned char)o->method[k]);
        if (!path && json_object_set_new(paths, o->path, path = json_object()) < 0)
            path = NULL;
        if (json_object_set_new(path, method, openapi_operation(&a->operations[i])) < 0) {
            json_decref(paths);
            return NULL;
        }
    }
    return paths;
}

static json_t *openapi_components(bool needs_token)
{
    json_t *c = json_pack("{s:{s:{s:s,s:[s],s:{s:{s:s,s:s},s:{s:s,s:s}}}}}", "schemas", "Error", "type",
                          "object", "required", "detail", "properties", "detail", "type", "string",
                          "description", "What is wrong, a sentence.", "field", "type", "string",
                          "description", "The argument that it is about, such as clusters[1].name.");

    if (needs_token &&
        json_object_set_new(c, "securitySchemes",
                            json_pack("{s:{s:s,s:s}}", "token", "type", "http", "scheme", "bearer")) < 0) {
        json_decref(c);
        return NULL;
    }
    return c;
}

int openapi_build(struct api *a, bool needs_token)
{
    json_auto_t *o = json_pack("{s:s,s:{s:s,s:s,s:s},s:o,s:o}", "openapi", "3.1.0", "info", "title",
                               "Dynamic Scoring optimizer", "version", ds_version, "description",
                               "Chooses clusters for workloads and settings for clusters by "
                               "AddOnPlacementScores. Assistants use the "
                               "same operations as tools of the Model Context Protocol at /mcp.",
                               "paths", openapi_paths(a), "components", openapi_components(needs_token));

    a->openapi.max = MAX_BYTES;
    if (!o || (needs_token && json_object_set_new(o, "security", json_pack("[{s:[]}]", "token")) < 0))
        return -ENOMEM;
    return kube_json_print(o, &a->openapi);
}

void openapi_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api *a = arg;

    (void)rq;
    httpd_reply_copy(reply, buf_str(&a->openapi));
    reply->content_type = "application/json";
}
