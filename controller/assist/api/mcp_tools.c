/* Operations as tools. */
#include "controller/assist/api/mcp.h"
#include "controller/assist/api/operation.h"
#include "controller/assist/api/schema.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    TOOLS_MAX_BYTES = 1 << 20,
    ANSWER_BYTES = 4 << 10, /* of a tool, unless maxBytes asks for more */
    ANSWER_MIN_BYTES = 1 << 10,
    ANSWER_MAX_BYTES = 64 << 10,
    NOTE_BYTES = 160, /* at least those of the note that nothing was applied */
};

#define PLANS_ONLY                                                                                           \
    " This server does not let assistants write: dryRun is always true here, and nothing is applied unless " \
    "it "                                                                                                    \
    "is started with --mcp.allow-writes."

/* ---- The list ---- */

static bool tool_writes(const struct api_operation *op)
{
    return op->o->effect != OPERATION_READS && op->api->allow_writes;
}

/* Operations with an effect are offered if they may have it, or can do without it. */
static bool tool_is_offered(const struct api_operation *op)
{
    return op->o->is_tool &&
           (op->o->effect == OPERATION_READS || op->api->allow_writes || op->o->has_dry_run);
}

static json_t *tool_max_bytes(void)
{
    return json_pack(
        "{s:s,s:s,s:i,s:i,s:i}", "type", "integer", "description",
        "How long the answer may be in bytes; what does not fit is counted, and the answer says how "
        "to ask for it.",
        "minimum", ANSWER_MIN_BYTES, "maximum", ANSWER_MAX_BYTES, "default", ANSWER_BYTES);
}

/* The operation's schema and maxBytes. NULL when out of memory. */
static json_t *tool_input(const struct api_operation *op)
{
    json_t *schema = json_deep_copy(op->input), *properties = json_object_get(schema, "properties");

    if (json_object_set_new(properties, "maxBytes", tool_max_bytes()) < 0) {
        json_decref(schema);
        return NULL;
    }
    return schema;
}

static json_t *tool_describe(const struct api_operation *op)
{
    bool writes = tool_writes(op), forced = op->o->effect != OPERATION_READS && !writes;
    BUF_AUTO(description, TOOLS_MAX_BYTES);

    if (buf_printf(&description, "%s%s", op->o->description, forced ? PLANS_ONLY : "") < 0)
        return NULL;
    return json_pack("{s:s,s:s,s:s%,s:o,s:O,s:{s:s,s:b,s:b,s:b,s:b}}", "name", op->o->name, "title",
                     op->o->title, "description", description.p, description.n, "inputSchema", tool_input(op),
                     "outputSchema", op->output, "annotations", "title", op->o->title, "readOnlyHint",
                     !writes, "destructiveHint", writes && op->o->effect == OPERATION_DESTROYS,
                     "idempotentHint", !writes || op->o->effect == OPERATION_DESTROYS, "openWorldHint", 0);
}

int mcp_build_tools(struct api *a)
{
    a->tools = json_array();
    if (!a->tools)
        return -ENOMEM;
    for (size_t i = 0; i < a->n; i++)
        if (tool_is_offered(&a->operations[i]) &&
            json_array_append_new(a->tools, tool_describe(&a->operations[i])) < 0)
            return -ENOMEM;
    return 0;
}

void mcp_list_tools(const struct mcp_message *m)
{
    if (json_object_get(m->params, "cursor"))
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "unknown cursor: the list has one page");
    else if (m->is_stateless)
        mcp_reply_result(m, json_pack("{s:O,s:i,s:s}", "tools", m->api->tools, "ttlMs", MCP_TTL_MS,
                                      "cacheScope", "public"));
    else
        mcp_reply_result(m, json_pack("{s:O}", "tools", m->api->tools));
}

/* ---- Calls ---- */

static const struct api_operation *tool_find(const struct api *a, const char *name)
{
    for (size_t i = 0; name && i < a->n; i++)
        if (tool_is_offered(&a->operations[i]) && strcmp(a->operations[i].o->name, name) == 0)
            return &a->operations[i];
    return NULL;
}

/* What an assistant reads of an error: the sentence, and all members if there are more that fit. */
static int tool_put_error(const json_t *error, size_t max_bytes, struct buf *into)
{
    const char *detail = json_string_value(json_object_get(error, "detail"));
    int r = 0;

    if (!error || !detail)
        return buf_puts(into, "out of memory");
    if (json_object_size(error) > 1)
        r = kube_json_print(error, into);
    if (r == 0 && (into->n == 0 || into->n > max_bytes)) {
        buf_truncate(into, 0);
        r = buf_puts(into, detail);
    }
    return r;
}

/* Says in the answer why nothing was written; in a copy, since the answer may be another's, too. */
static int tool_add_note(struct api_request *r)
{
    json_t *answer = json_copy(r->call.answer), *notes = json_copy(json_object_get(answer, "notes"));

    notes = notes ? notes : json_array();
    json_decref(r->call.answer);
    r->call.answer = answer;
    if (json_array_append_new(notes, json_string("nothing was applied: this server was started without "
                                                 "--mcp.allow-writes, so dryRun was set")) < 0) {
        json_decref(notes);
        return -ENOMEM;
    }
    return json_object_set_new(answer, "notes", notes) < 0 ? -ENOMEM : 0;
}

static int tool_print_members(const struct api_request *r, struct buf *into)
{
    bool failed = r->call.status != 200 || !r->call.answer;
    BUF_AUTO(text, API_MAX_ANSWER);
    int e = failed ? tool_put_error(r->call.answer, r->call.max_bytes, &text)
                   : kube_json_print(r->call.answer, &text);

    e = e ?: buf_puts(into, "\"content\":[{\"type\":\"text\",\"text\":");
    e = e ?: buf_put_json(into, buf_str(&text));
    e = e ?: buf_printf(into, "}],\"isError\":%s", failed ? "true" : "false,\"structuredContent\":");
    return e ?: failed ? 0 : buf_put_str(into, buf_str(&text));
}

static int tool_print(struct api_request *r, struct buf *into)
{
    json_auto_t *more = json_object();
    int e = more && r->is_stateless && mcp_add_stateless(more) < 0 ? -ENOMEM : 0;
    BUF_AUTO(tail, TOOLS_MAX_BYTES);

    if (e == 0 && r->forced_dry_run && r->call.status == 200)
        e = tool_add_note(r);
    e = e ?: more ? kube_json_print(more, &tail) : -ENOMEM;
    e = e ?: buf_puts(into, "{\"jsonrpc\":\"2.0\",\"id\":");
    e = e ?: kube_json_print(r->id, into);
    e = e ?: buf_puts(into, ",\"result\":{");
    e = e ?: tool_print_members(r, into);
    /* `more` without its first brace. */
    return e ?: buf_printf(into, "%s%.*s}", r->is_stateless ? "," : "", (int)tail.n - 1, tail.p + 1);
}

/* Takes maxBytes out of the arguments; false if it is none. */
static bool tool_take_max_bytes(json_t *input, size_t *ret)
{
    const json_t *v = json_object_get(input, "maxBytes");
    json_int_t n = json_integer_value(v);

    *ret = v ? (size_t)n : ANSWER_BYTES;
    if (v && (!json_is_integer(v) || n < ANSWER_MIN_BYTES || n > ANSWER_MAX_BYTES))
        return false;
    (void)json_object_del(input, "maxBytes");
    return true;
}

/* A call that does not begin: it is for the assistant to mend, and so no error of the protocol. */
static void tool_refuse(const struct mcp_message *m, const struct api_operation *op, const char *text)
{
    metric_add(op->api->metrics, METRIC_OPTIMIZER_REQUESTS, LV("422", "mcp", op->o->name), 1);
    mcp_reply_result(m,
                     json_pack("{s:[{s:s,s:s}],s:b}", "content", "type", "text", "text", text, "isError", 1));
}

static void tool_start(const struct mcp_message *m, const struct api_operation *op, json_t *input,
                       size_t max_bytes)
{
    struct api_request *r = api_request_new(m->reply);

    if (!r) {
        json_decref(input);
        return;
    }
    r->interface = "mcp";
    r->print = tool_print;
    r->http_status = 200;
    r->id = json_incref(m->id);
    r->is_stateless = m->is_stateless;
    r->forced_dry_run = op->o->effect != OPERATION_READS && !op->api->allow_writes;
    r->call.max_bytes = max_bytes - (r->forced_dry_run ? NOTE_BYTES : 0);
    if (r->forced_dry_run)
        (void)json_object_set_new(input, "dryRun", json_true());
    api_request_start(op, r, input);
}

void mcp_call_tool(const struct mcp_message *m)
{
    const struct api_operation *op = tool_find(m->api, json_string_value(json_object_get(m->params, "name")));
    const json_t *arguments = json_object_get(m->params, "arguments");
    struct schema_problem problem;
    json_t *input;
    size_t max_bytes = 0;

    if (!op) {
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "unknown tool: tools/list names those that there are");
        return;
    }
    input = arguments ? json_copy((json_t *)(uintptr_t)arguments) : json_object();
    if (!input) {
        mcp_reply_error(m, MCP_INTERNAL_ERROR, NULL, "out of memory");
        return;
    }
    if (!tool_take_max_bytes(input, &max_bytes)) {
        tool_refuse(m, op, "maxBytes: must be an integer from 1024 to 65536");
    } else if (!schema_accepts(op->input, input, &problem)) {
        char text[sizeof(problem.field) + sizeof(problem.text) + 4];

        (void)snprintf(text, sizeof(text), "%s: %s", *problem.field ? problem.field : "arguments",
                       problem.text);
        tool_refuse(m, op, text);
    } else {
        tool_start(m, op, input, max_bytes);
        return;
    }
    json_decref(input);
}
