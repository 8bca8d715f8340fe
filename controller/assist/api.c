/* Owns the table of operations as the schemas describe them, what follows from it, and the worker that
 * reads and prints. On the loop; httpd's threads read the routes. An operation without a description does
 * not start. */
#include "controller/assist/api.h"

#include "controller/assist/api_request.h"
#include "controller/assist/mcp.h"
#include "controller/assist/openapi.h"
#include "controller/assist/rest.h"
#include "controller/assist/tool.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <errno.h>

/* Failures that an operation may answer with are counted from 0, so that the first one is an increase. */
static void api_count_from_zero(const struct api_operation *op)
{
    static const char *const codes[] = {"500", "503", "504"};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        for (int is_tool = !op->path; is_tool < 2; is_tool++)
            metric_add(op->api->o.metrics, METRIC_OPTIMIZER_REQUESTS,
                       LV(codes[i], is_tool ? "mcp" : "rest", op->o->name), 0);
}

static int api_add(struct api *a, const json_t *described)
{
    const char *name = cstr(kube_str(described, "name", NULL));
    struct api_operation *op = &a->operations[a->n++];

    *op = (struct api_operation){
        .api = a,
        .described = described,
        .method = kube_str(described, "method", NULL),
        .path = kube_str(described, "path", NULL),
        .input = json_object_get(a->schemas, cstr(kube_str(described, "input", NULL))),
        .output = json_object_get(a->schemas, cstr(kube_str(described, "output", NULL))),
        .writes = json_is_true(json_object_get(described, "writes")),
    };
    for (size_t i = 0; i < a->o.n_operations; i++)
        if (strcmp(a->o.operations[i].name, name) == 0)
            op->o = &a->o.operations[i];
    if (!op->o || !op->input || !op->output) {
        log_error("invalid description of an operation", L_STR("operation", name));
        return -EINVAL;
    }
    api_count_from_zero(op);
    tool_build(op);
    return 0;
}

/* They name no tool that is not there. */
static json_t *api_instructions(const struct api *a)
{
    const char *end = a->o.allow_writes ? "whenWritable" : "whenReadOnly";

    return json_sprintf("%s%s", cstr(kube_str(a->schemas, "mcp", "instructions", NULL)),
                        cstr(kube_str(a->schemas, "mcp", end, NULL)));
}

int api_new(struct api **ret, const struct api_options *o)
{
    json_t *schemas = json_loads(o->schemas, 0, NULL), *list = kube_list(schemas, "operations", NULL);
    size_t n = json_array_size(list);
    CLEANUP(cleanup_api_free) struct api *a = xcalloc(1, sizeof(*a) + n * sizeof(a->operations[0]));
    int r = worker_new(&a->worker, o->loop);

    a->o = *o;
    a->schemas = schemas;
    a->tools = json_array();
    a->instructions = api_instructions(a);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = api_add(a, json_array_get(list, i));
    if (r < 0)
        return r;
    openapi_build(a);
    *ret = TAKE_PTR(a);
    return 0;
}

void api_end(struct api *a)
{
    if (!a)
        return;
    a->is_ending = true;
    a->worker = worker_free(a->worker);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    api_end(a);
    for (size_t i = 0; i < a->n; i++)
        json_decref(a->operations[i].tool_input);
    json_decref(a->schemas);
    json_decref(a->tools);
    json_decref(a->instructions);
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
