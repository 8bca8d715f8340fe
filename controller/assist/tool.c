/* Owns nothing: descriptions are the API's. Tools are described once, at the start, on the loop; answers
 * are printed on the worker, or on the loop. An error of an operation is a result that says so, never an
 * error of the protocol. */
#include "controller/assist/tool.h"

#include "controller/assist/api_request.h"
#include "controller/assist/api_table.h"
#include "controller/assist/mcp_reply.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"

bool tool_only_plans(const struct api_operation *op)
{
    return op->writes && !op->api->o.allow_writes;
}

/* What it does, and what else if it may write, or may not. */
static json_t *tool_describe(const struct api_operation *op)
{
    const char *plans_only = kube_str(op->api->schemas, "mcp", "plansOnly", NULL);
    BUF_AUTO(text, API_MAX_ANSWER);

    buf_puts(&text, cstr(kube_str(op->described, "description", NULL)));
    if (op->api->o.allow_writes)
        buf_puts(&text, cstr(kube_str(op->described, "whenWritable", NULL)));
    if (tool_only_plans(op))
        buf_puts(&text, cstr(plans_only));
    invariant(buf_failed(&text) == 0); /* of the program's own texts */
    return json_stringn(cstr(text.p), text.n);
}

static json_t *tool_annotations(const char *title, bool writes)
{
    json_t *annotations = json_object();

    kube_set_str(annotations, "title", title);
    kube_set_bool(annotations, "readOnlyHint", !writes);
    kube_set_bool(annotations, "destructiveHint", writes);
    kube_set_bool(annotations, "idempotentHint", true);
    kube_set_bool(annotations, "openWorldHint", false);
    return annotations;
}

/* The operation's own, and maxBytes. */
static json_t *tool_make_input(const struct api_operation *op)
{
    json_t *input = json_deep_copy(op->input);
    json_t *max_bytes = kube_get(op->api->schemas, "mcp", "maxBytes", NULL);

    kube_set(kube_map(input, "properties", NULL), "maxBytes", json_incref(max_bytes));
    return input;
}

void tool_build(struct api_operation *op)
{
    const char *title = kube_str(op->described, "title", NULL);
    bool writes = op->writes && op->api->o.allow_writes;
    json_t *tool;

    /* Operations that write are offered if they may, or can do without. */
    if (tool_only_plans(op) && !kube_get(op->input, "properties", "dryRun", NULL))
        return;
    op->tool_input = tool_make_input(op);
    tool = json_object();
    kube_set_str(tool, "name", op->o->name);
    kube_set_str(tool, "title", title);
    kube_set(tool, "description", tool_describe(op));
    kube_set(tool, "inputSchema", json_incref(op->tool_input));
    kube_set(tool, "outputSchema", json_incref(op->output));
    kube_set(tool, "annotations", tool_annotations(title, writes));
    kube_append(op->api->tools, tool);
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

static json_t *tool_content(struct str text)
{
    json_t *content = json_array(), *part = json_object();

    kube_set_str(part, "type", "text");
    kube_set(part, "text", json_stringn(cstr(text.p), text.n));
    kube_append(content, part);
    return content;
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
    kube_set(result, "content", tool_content(buf_str(&text)));
    kube_set_bool(result, "isError", failed);
    if (!failed)
        kube_set(result, "structuredContent", json_loadb(cstr(text.p), text.n, JSON_ALLOW_NUL, NULL));
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
