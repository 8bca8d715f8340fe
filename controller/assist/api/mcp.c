/* The tools of the Model Context Protocol, over Streamable HTTP with plain JSON answers. Two generations:
 * revision 2026-07-28 is stateless, and each request says its version in params._meta and in headers; earlier
 * ones begin with `initialize`, after which nothing has to be remembered here either. */
#include "controller/assist/api/api.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/json.h"
#include "exporter/base/str.h"
#include "exporter/metric/version.h"

#include <stdio.h>
#include <string.h>

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_STATELESS "2026-07-28" /* the first revision without initialize */
#define MCP_STATEFUL  "2025-11-25" /* the last one with it */
#define MCP_META      "io.modelcontextprotocol/"

enum {
    MCP_TTL_MS = 300 * 1000, /* how long clients may keep the list of tools */
    ANSWER_BYTES = 4 << 10,  /* of a tool, unless maxBytes asks for more */
};

/* ---- Replies ---- */

static json_t *mcp_server_info(void)
{
    return json_pack("{s:s,s:s,s:s}", "name", "dynamic-scoring-framework-mcp", "title",
                     "Dynamic Scoring optimizer", "version", ds_version);
}

/* Adds what each stateless result has. */
static void mcp_add_stateless(json_t *result)
{
    (void)json_object_set_new(result, "resultType", json_string("complete"));
    (void)json_object_set_new(result, "_meta", json_pack("{s:o}", MCP_META "serverInfo", mcp_server_info()));
}

/* Revisions before 2026-07-28 leave the HTTP status to the transport: an answer is an answer. */
static unsigned mcp_status(const struct mcp_message *m, enum mcp_code code)
{
    if (code == MCP_METHOD_NOT_FOUND)
        return m->is_stateless ? 404 : 200;
    return m->is_stateless || code != MCP_INVALID_PARAMS ? 400 : 200;
}

/* data (taken) may be NULL. */
static void mcp_reply_error(const struct mcp_message *m, enum mcp_code code, json_t *data, const char *text)
{
    json_t *error = json_pack("{s:i,s:s,s:o*}", "code", (int)code, "message", text, "data", data);
    json_t *id = m->id ? json_incref(m->id) : json_null();

    api_reply_json(m->reply, mcp_status(m, code),
                   json_pack("{s:s,s:o,s:o}", "jsonrpc", "2.0", "id", id, "error", error));
}

/* The result is taken. */
static void mcp_reply_result(const struct mcp_message *m, json_t *result)
{
    if (m->is_stateless)
        mcp_add_stateless(result);
    api_reply_json(m->reply, 200,
                   json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", m->id, "result", result));
}

/* ---- Which revision a message is of, and what that asks for ---- */

static const char *const mcp_known[] = {MCP_STATELESS, MCP_STATEFUL, "2025-06-18", "2025-03-26",
                                        "2024-11-05"};

/* Newest first. */
static json_t *mcp_versions(void)
{
    json_t *all = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(mcp_known); i++)
        (void)json_array_append_new(all, json_string(mcp_known[i]));
    return all;
}

/* Whether the revision begins with initialize. */
static bool mcp_is_stateful(const char *version)
{
    for (size_t i = 1; i < ARRAY_SIZE(mcp_known); i++)
        if (strcmp(mcp_known[i], version) == 0)
            return true;
    return false;
}

static void version_refuse(const struct mcp_message *m, const char *version)
{
    mcp_reply_error(m, MCP_UNSUPPORTED_VERSION,
                    json_pack("{s:o,s:s}", "supported", mcp_versions(), "requested", version),
                    "unsupported protocol version");
}

/* libmicrohttpd leaves the white space around a value. */
static bool version_header_is(const char *header, const char *value)
{
    return header && str_eq(str_trim(str_of(header)), str_of(value));
}

/* The header that does not say what the body says; NULL if all do. */
static const char *version_wrong_header(const struct mcp_message *m, const char *version)
{
    bool calls = strcmp(m->method, "tools/call") == 0;
    const char *name = calls ? json_string_value(json_object_get(m->params, "name")) : NULL;

    if (!version_header_is(m->header_version, version))
        return "MCP-Protocol-Version differs from params._meta";
    if (!version_header_is(m->header_method, m->method))
        return "Mcp-Method differs from method";
    if (name && !version_header_is(m->header_name, name))
        return "Mcp-Name differs from params";
    return NULL;
}

static bool version_check_stateless(const struct mcp_message *m)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *version = json_string_value(json_object_get(meta, MCP_META "protocolVersion"));
    const char *wrong = version ? version_wrong_header(m, version) : NULL;

    if (!m->id) /* a notification says nothing about itself */
        return true;
    if (!version)
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "params._meta: " MCP_META "protocolVersion is missing");
    else if (!json_is_object(json_object_get(meta, MCP_META "clientCapabilities")))
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL,
                        "params._meta: " MCP_META "clientCapabilities is missing");
    else if (wrong)
        mcp_reply_error(m, MCP_HEADER_MISMATCH, NULL, wrong);
    else if (strcmp(version, MCP_STATELESS) != 0)
        version_refuse(m, version);
    else
        return true;
    return false;
}

/* Decides which generation the message is of and checks what that asks of it; false after the reply. */
static bool mcp_check_version(struct mcp_message *m)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *header = m->header_version;

    m->is_stateless =
        json_object_get(meta, MCP_META "protocolVersion") || version_header_is(header, MCP_STATELESS);
    if (!m->method)
        return true;
    if (m->is_stateless)
        return version_check_stateless(m);
    /* Without the header it is 2025-03-26. */
    if (!header || mcp_is_stateful(header))
        return true;
    m->is_stateless = true; /* of a revision to come */
    version_refuse(m, header);
    return false;
}

/* ---- Operations as tools ---- */

/* Operations that write are offered if they may, or can do without. */
static bool tool_is_offered(const struct api_operation *op)
{
    return !op->writes || op->api->allow_writes || op->has_dry_run;
}

static bool tool_only_plans(const struct api_operation *op)
{
    return op->writes && !op->api->allow_writes;
}

void mcp_build_tools(struct api *a)
{
    const json_t *mcp = json_object_get(a->schemas, "mcp");

    a->tools = json_array();
    for (size_t i = 0; i < a->n; i++) {
        struct api_operation *op = &a->operations[i];
        bool writes = op->writes && a->allow_writes;

        if (!tool_is_offered(op))
            continue;
        op->tool_input = json_deep_copy(op->input);
        (void)json_object_set(kube_map(op->tool_input, "properties", NULL), "maxBytes",
                              json_object_get(mcp, "maxBytes"));
        (void)json_array_append_new(
            a->tools, json_pack("{s:s,s:s,s:s+,s:O,s:O,s:{s:s,s:b,s:b,s:b,s:b}}", "name", op->o->name,
                                "title", op->title, "description", op->description,
                                tool_only_plans(op) ? cstr(kube_str(mcp, "plansOnly", NULL)) : "",
                                "inputSchema", op->tool_input, "outputSchema", op->output, "annotations",
                                "title", op->title, "readOnlyHint", !writes, "destructiveHint", writes,
                                "idempotentHint", 1, "openWorldHint", 0));
    }
}

static void mcp_list_tools(const struct mcp_message *m)
{
    if (json_object_get(m->params, "cursor"))
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "unknown cursor: the list has one page");
    else if (m->is_stateless)
        mcp_reply_result(m, json_pack("{s:O,s:i,s:s}", "tools", m->api->tools, "ttlMs", MCP_TTL_MS,
                                      "cacheScope", "public"));
    else
        mcp_reply_result(m, json_pack("{s:O}", "tools", m->api->tools));
}

/* ---- Calls of tools ---- */

static const struct api_operation *tool_find(const struct api *a, const char *name)
{
    for (size_t i = 0; name && i < a->n; i++)
        if (tool_is_offered(&a->operations[i]) && strcmp(a->operations[i].o->name, name) == 0)
            return &a->operations[i];
    return NULL;
}

/* What an assistant reads of an error: the sentence, and all members if they say more and fit. */
static int tool_put_error(const json_t *error, size_t max_bytes, struct buf *into)
{
    size_t usual = 1 + (json_object_get(error, "field") != NULL);

    if (json_object_size(error) > usual && json_dumpb(error, NULL, 0, JSON_COMPACT) <= max_bytes)
        return kube_json_print(error, into);
    return buf_puts(into, cstr(json_string_value(json_object_get(error, "detail"))));
}

/* The result's members. */
static int tool_print_members(struct api_request *r, struct buf *into)
{
    bool failed = r->call.status != 200;
    BUF_AUTO(text, API_MAX_ANSWER);
    int e = failed ? tool_put_error(r->call.answer, r->call.max_bytes, &text) : api_request_print(r, &text);

    e = e ?: buf_puts(into, "\"content\":[{\"type\":\"text\",\"text\":");
    e = e ?: buf_put_json(into, buf_str(&text));
    e = e ?: buf_printf(into, "}],\"isError\":%s", failed ? "true" : "false,\"structuredContent\":");
    return e ?: failed ? 0 : buf_put_str(into, buf_str(&text));
}

static int tool_print(struct api_request *r, struct buf *into)
{
    json_auto_t *o = json_pack("{s:s,s:O,s:{}}", "jsonrpc", "2.0", "id", r->id, "result");
    int e;

    if (r->is_stateless)
        mcp_add_stateless(json_object_get(o, "result"));
    e = kube_json_print(o, into);
    if (e < 0)
        return e;
    buf_truncate(into, into->n - 2); /* the braces */
    e = r->is_stateless ? buf_putc(into, ',') : 0;
    return e ?: tool_print_members(r, into) ?: buf_puts(into, "}}");
}

static void mcp_call_tool(const struct mcp_message *m)
{
    const struct api_operation *op = tool_find(m->api, json_string_value(json_object_get(m->params, "name")));
    json_t *arguments = json_object_get(m->params, "arguments");
    struct api_request *r;

    if (!op) {
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "unknown tool: tools/list names those that there are");
        return;
    }
    r = api_request_new(m->reply, "mcp", tool_print);
    r->http_status = 200;
    r->id = json_incref(m->id);
    r->is_stateless = m->is_stateless;
    r->call.max_bytes = ANSWER_BYTES;
    arguments = arguments ? json_copy(arguments) : json_object();
    if (tool_only_plans(op)) {
        r->call.note =
            "nothing was applied: this server was started without --mcp.allow-writes, so dryRun was set";
        (void)json_object_set_new(arguments, "dryRun", json_true());
    }
    api_request_start(op, r, arguments, op->tool_input);
}

/* ---- Methods ---- */

static void mcp_initialize(const struct mcp_message *m)
{
    const char *asked = json_string_value(json_object_get(m->params, "protocolVersion"));

    if (!asked) {
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "protocolVersion is missing");
        return;
    }
    mcp_reply_result(m, json_pack("{s:s,s:{s:{}},s:o,s:O*}", "protocolVersion",
                                  mcp_is_stateful(asked) ? asked : MCP_STATEFUL, "capabilities", "tools",
                                  "serverInfo", mcp_server_info(), "instructions",
                                  json_object_get(json_object_get(m->api->schemas, "mcp"), "instructions")));
}

static void mcp_discover(const struct mcp_message *m)
{
    mcp_reply_result(m, json_pack("{s:o,s:{s:{}},s:O*,s:i,s:s}", "supportedVersions", mcp_versions(),
                                  "capabilities", "tools", "instructions",
                                  json_object_get(json_object_get(m->api->schemas, "mcp"), "instructions"),
                                  "ttlMs", MCP_TTL_MS, "cacheScope", "public"));
}

static void mcp_ping(const struct mcp_message *m)
{
    mcp_reply_result(m, json_object());
}

static void mcp_dispatch(const struct mcp_message *m)
{
    static const struct {
        const char *method;
        bool stateful, stateless;
        void (*fn)(const struct mcp_message *m);
    } methods[] = {
        {"initialize", true, false, mcp_initialize},    {"ping", true, false, mcp_ping},
        {"server/discover", false, true, mcp_discover}, {"tools/list", true, true, mcp_list_tools},
        {"tools/call", true, true, mcp_call_tool},
    };

    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if ((m->is_stateless ? methods[i].stateless : methods[i].stateful) &&
            strcmp(methods[i].method, m->method) == 0) {
            methods[i].fn(m);
            return;
        }
    mcp_reply_error(m, MCP_METHOD_NOT_FOUND, NULL, "method not found");
}

/* ---- Messages ---- */

static bool mcp_read(struct mcp_message *m, const json_t *o)
{
    const json_t *params = json_object_get(o, "params");
    json_t *id = json_object_get(o, "id");

    if (json_is_array(o)) {
        mcp_reply_error(m, MCP_INVALID_REQUEST, NULL, "batches are not supported: send one message");
        return false;
    }
    if (json_is_string(id) || json_is_number(id))
        m->id = id;
    m->method = json_string_value(json_object_get(o, "method"));
    m->params = params;
    if (strcmp(cstr(json_string_value(json_object_get(o, "jsonrpc"))), "2.0") != 0 || (id && !m->id) ||
        (params && !json_is_object(params)) ||
        (!m->method && !json_object_get(o, "result") && !json_object_get(o, "error"))) {
        mcp_reply_error(m, MCP_INVALID_REQUEST, NULL, "not a message of JSON-RPC 2.0");
        return false;
    }
    return true;
}

void mcp_handle(struct mcp_message *m, struct str body)
{
    char why[256] = "";
    json_t *o = NULL;

    if (kube_json_parse(&o, body, why) < 0)
        mcp_reply_error(m, MCP_PARSE_ERROR, NULL, why);
    else if (mcp_read(m, o) && mcp_check_version(m)) {
        if (m->method && m->id)
            mcp_dispatch(m);
        else /* nothing was asked: a notification, or an answer to no question of ours */
            m->reply->status = 202;
    }
    json_decref(o);
}

void mcp_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct mcp_message m = {.api = arg,
                            .reply = reply,
                            .header_version = httpd_header(rq, "MCP-Protocol-Version"),
                            .header_method = httpd_header(rq, "Mcp-Method"),
                            .header_name = httpd_header(rq, "Mcp-Name")};

    if (!api_media_type_is(rq->content_type, "application/json") || *rq->content_encoding)
        httpd_reply_text(reply, 415, STR("415: the body must be application/json, not compressed\n"));
    else if (*rq->accept && !strstr(rq->accept, "application/json") && !strstr(rq->accept, "*/*"))
        httpd_reply_text(reply, 406, STR("406: answers are application/json\n"));
    else
        mcp_handle(&m, rq->body);
}
