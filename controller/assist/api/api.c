#include "controller/assist/api/api.h"

#include "controller/assist/api/api_internal.h"
#include "controller/assist/api/schema.h"
#include "exporter/base/log.h"
#include "exporter/metric/metrics.h"

#include <errno.h>

/* A schema of the table, parsed and checked. */
static int api_read_schema(json_t **ret, const struct operation *o, const char *text)
{
    json_error_t e;
    json_t *schema = json_loads(text, 0, &e);
    const char *unknown = schema_unknown_keyword(schema);

    *ret = schema;
    if (schema && !unknown)
        return 0;
    if (!schema && json_error_code(&e) == json_error_out_of_memory)
        return -ENOMEM;
    log_error("invalid schema of an operation", L_STR("operation", o->name),
              L_STR("err", schema ? "unknown keyword" : e.text), L_STR("keyword", unknown ? unknown : ""));
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
    CLEANUP(cleanup_api_free) struct api *a = calloc(1, sizeof(*a) + n * sizeof(a->operations[0]));
    int r = a ? worker_new(&a->worker, o->loop) : -ENOMEM;

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
    if (r == 0)
        r = openapi_build(a, o->needs_token);
    if (r == 0)
        r = mcp_build_tools(a);
    if (r == 0)
        *ret = TAKE_PTR(a);
    return r;
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    a->worker = worker_free(a->worker);
    for (size_t i = 0; i < a->n; i++) {
        json_decref(a->operations[i].input);
        json_decref(a->operations[i].output);
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
