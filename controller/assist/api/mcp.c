/* Messages: read, checked, dispatched. */
#include "controller/assist/api/mcp.h"

#include "controller/assist/api/api_internal.h"
#include "exporter/base/httpd.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <string.h>

/* ---- Replies ---- */

/* Revisions before 2026-07-28 leave the HTTP status to the transport: an answer is an answer. */
static unsigned mcp_status(const struct mcp_message *m, enum mcp_code code)
{
    if (code == MCP_INTERNAL_ERROR)
        return 500;
    if (code == MCP_METHOD_NOT_FOUND)
        return m->is_stateless ? 404 : 200;
    return m->is_stateless || code != MCP_INVALID_PARAMS ? 400 : 200;
}

void mcp_reply_error(const struct mcp_message *m, enum mcp_code code, json_t *data, const char *text)
{
    json_t *error = json_pack("{s:i,s:s,s:o*}", "code", (int)code, "message", text, "data", data);
    json_t *id = m->id ? json_incref(m->id) : json_null();

    api_reply_json(m->reply, mcp_status(m, code),
                   json_pack("{s:s,s:o,s:o}", "jsonrpc", "2.0", "id", id, "error", error));
}

void mcp_reply_result(const struct mcp_message *m, json_t *result)
{
    if (m->is_stateless && mcp_add_stateless(result) < 0) {
        json_decref(result);
        result = NULL;
    }
    api_reply_json(m->reply, 200,
                   json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", m->id, "result", result));
}

json_t *mcp_server_info(void)
{
    return json_pack("{s:s,s:s,s:s}", "name", "dynamic-scoring-framework-mcp", "title",
                     "Dynamic Scoring optimizer", "version", ds_version);
}

int mcp_add_stateless(json_t *result)
{
    if (json_object_set_new(result, "resultType", json_string("complete")) < 0)
        return -1;
    return json_object_set_new(result, "_meta", json_pack("{s:o}", MCP_META "serverInfo", mcp_server_info()));
}

/* ---- Methods ---- */

static json_t *mcp_capabilities(void)
{
    return json_pack("{s:{}}", "tools");
}

static void mcp_initialize(const struct mcp_message *m)
{
    const char *asked = json_string_value(json_object_get(m->params, "protocolVersion"));

    if (!asked) {
        mcp_reply_error(m, MCP_INVALID_PARAMS, NULL, "protocolVersion is missing");
        return;
    }
    mcp_reply_result(m, json_pack("{s:s,s:o,s:o,s:s}", "protocolVersion",
                                  mcp_is_stateful(asked) ? asked : MCP_STATEFUL, "capabilities",
                                  mcp_capabilities(), "serverInfo", mcp_server_info(), "instructions",
                                  m->api->instructions));
}

static void mcp_discover(const struct mcp_message *m)
{
    mcp_reply_result(m, json_pack("{s:o,s:o,s:s,s:i,s:s}", "supportedVersions", mcp_versions(),
                                  "capabilities", mcp_capabilities(), "instructions", m->api->instructions,
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
    int r = api_parse(&o, body, why);

    if (r < 0)
        mcp_reply_error(m, r == -EINVAL ? MCP_PARSE_ERROR : MCP_INTERNAL_ERROR, NULL,
                        r == -EINVAL ? why : "out of memory");
    else if (!mcp_read(m, o) || !mcp_check_version(m))
        r = -EINVAL;
    else if (!m->method ||
             !m->id) /* nothing was asked: a notification, or an answer to no question of ours */
        m->reply->status = 202;
    else
        mcp_dispatch(m);
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
