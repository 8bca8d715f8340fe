/* Operations as REST requests: query parameters or a JSON body in, JSON out. */
#include "controller/assist/api/api_internal.h"
#include "controller/assist/api/schema.h"
#include "controller/kube/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void rest_refuse(struct httpd_reply *reply, unsigned status, const char *detail, const char *field)
{
    api_reply_json(reply, status,
                   *field ? json_pack("{s:s,s:s}", "detail", detail, "field", field)
                          : json_pack("{s:s}", "detail", detail));
}

/* ---- Arguments ---- */

/* A parameter that may be repeated is a list. */
static int rest_add_parameter(json_t *into, const json_t *properties, const char *name, const char *value)
{
    const json_t *schema = json_object_get(properties, name);
    json_t *list = json_object_get(into, name);

    if (!schema_has_type(schema, "array"))
        return json_object_set_new(into, name, schema_read_text(schema, value));
    if (!list && json_object_set_new(into, name, list = json_array()) < 0)
        return -1;
    return json_array_append_new(list, schema_read_text(json_object_get(schema, "items"), value));
}

/* The arguments of a GET. NULL when out of memory, or for text that is not UTF-8. */
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
    int r;

    if (rq->body.n == 0 && !*rq->content_type)
        return json_object();
    if (!api_media_type_is(rq->content_type, "application/json") || *rq->content_encoding) {
        rest_refuse(reply, 415, "the body must be application/json, not compressed", "");
        return NULL;
    }
    r = api_parse(&o, rq->body, why);
    if (r < 0)
        rest_refuse(reply, r == -EINVAL ? 400 : 500, r == -EINVAL ? why : "out of memory", "");
    return o;
}

void rest_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
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
    } else if ((r = api_request_new(reply))) {
        r->interface = "rest";
        r->print = api_request_print;
        api_request_start(op, r, input);
        return;
    }
    json_decref(input);
}
