/* Owns nothing: descriptions are the API's. Tools are described once, at the start, on the loop; answers
 * are printed on the worker, or on the loop. An error of an operation is a result that says so, never an
 * error of the protocol. */
#include "controller/assist/tool.h"

#include "controller/assist/api.h"
#include "controller/assist/api_request.h"
#include "controller/assist/mcp_reply.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"

bool tool_only_plans(const struct api_operation *op)
{
    return op->writes && !op->api->o.allow_writes;
}

void tool_build(struct api_operation *op)
{
    const char *title = kube_str(op->described, "title", NULL);
    const json_t *mcp = json_object_get(op->api->schemas, "mcp");
    bool writes = op->writes && op->api->o.allow_writes;

    /* Operations that write are offered if they may, or can do without. */
    if (tool_only_plans(op) && !kube_get(op->input, "properties", "dryRun", NULL))
        return;
    op->tool_input = json_deep_copy(op->input);
    (void)json_object_set(kube_map(op->tool_input, "properties", NULL), "maxBytes",
                          json_object_get(mcp, "maxBytes"));
    (void)json_array_append_new(
        op->api->tools,
        json_pack("{s:s,s:s,s:s++,s:O,s:O,s:{s:s,s:b,s:b,s:b,s:b}}", "name", op->o->name, "title", title,
                  "description", kube_str(op->described, "description", NULL),
                  op->api->o.allow_writes ? cstr(kube_str(op->described, "whenWritable", NULL)) : "",
                  tool_only_plans(op) ? cstr(kube_str(mcp, "plansOnly", NULL)) : "", "inputSchema",
                  op->tool_input, "outputSchema", op->output, "annotations", "title", title, "readOnlyHint",
                  !writes, "destructiveHint", writes, "idempotentHint", 1, "openWorldHint", 0));
}

const struct api_operation *tool_find(const struct api *a, const char *name)
{
    for (size_t i = 0; name && i < a->n; i++)
        if (a->operations[i].tool_input && strcmp(a->operations[i].o->name, name) == 0)
            return &a->operations[i];
    return NULL;
}

/* What an assistant reads of an error: the sentence, and all members if they say more and fit. */
static int tool_put_error(const json_t *error, size_t max_bytes, struct buf *into)
{
    size_t usual = 1 + (json_object_get(error, "field") != NULL);

    if (json_object_size(error) > usual && json_dumpb(error, NULL, 0, JSON_COMPACT) <= max_bytes)
        kube_json_print(error, into);
    else
        buf_puts(into, cstr(kube_str(error, "detail", NULL)));
    return buf_failed(into);
}

static int tool_print(const struct api_request *r, struct buf *into)
{
    bool failed = r->call.status != 200;
    json_auto_t *result = json_object();
    BUF_AUTO(text, API_MAX_ANSWER);
    int e =
        failed ? tool_put_error(r->call.answer, r->call.max_bytes, &text) : api_call_print(&r->call, &text);

    if (r->is_stateless)
        mcp_add_stateless(result);
    (void)json_object_update_new(
        result, json_pack("{s:[{s:s,s:s%}],s:b,s:o*}", "content", "type", "text", "text", cstr(text.p),
                          text.n, "isError", failed, "structuredContent",
                          failed ? NULL : json_loadb(cstr(text.p), text.n, JSON_ALLOW_NUL, NULL)));
    mcp_put_head(into, buf_str(&r->id), "result");
    kube_json_print(result, into);
    buf_putc(into, '}');
    return e ?: buf_failed(into);
}

static const json_t *tool_schema(const struct api_operation *op)
{
    return op->tool_input;
}

const struct api_interface tool_interface = {
    .name = "mcp", .arguments = "arguments", .answers_200 = true, .schema = tool_schema, .print = tool_print};
