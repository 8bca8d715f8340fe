/* Owns each message until it is answered, or handed over to a request. On the loop, but for mcp_read().
 * Nothing is remembered from one message to the next. */
#include "controller/assist/mcp.h"

#include "controller/assist/api_error.h"
#include "controller/assist/api_request.h"
#include "controller/assist/api_table.h"
#include "controller/assist/mcp_reply.h"
#include "controller/assist/schema.h"
#include "controller/assist/tool.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/ui/member.h"

#include <errno.h>

enum {
    MCP_HEAD_MAX_BYTES = 1 << 20, /* memory for a message without its arguments */
    MCP_ANSWER_BYTES = 4 << 10,   /* of a tool, unless maxBytes asks for more */
    MCP_TTL_MS = 300 * 1000,      /* how long clients may keep the list of tools */
};

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_STATELESS "2026-07-28" /* the first revision without initialize */

/* A message that is being answered. Only what the protocol needs of it becomes a tree; arguments, which
 * can be large, stay text until their tool is known. */
struct mcp_exchange {
    struct mcp_message in;
    struct job reading;
    bool is_deferred;    /* the reply is */
    bool is_handed_over; /* to a request, which will finish the reply */
    /* Set by reading: */
    bool has_read;
    json_t *head; /* owned: the message without arguments and other large members; NULL after an error */
    struct api_error api_error;
    bool has_id;
    struct str id;        /* as it came; empty: a notification, or unknown */
    struct str arguments; /* of a tool; empty: none */
    /* Of the head: */
    const char *method;
    const json_t *params; /* an object, or NULL without any */
    bool is_stateless;
};

/* The value is taken. */
static void mcp_reply(const struct mcp_exchange *m, unsigned status, const char *member, json_t *value)
{
    BUF_AUTO(text, SIZE_MAX);

    mcp_put_head(&text, m->id, member);
    kube_json_print(value, &text);
    buf_putc(&text, '}');
    if (buf_failed(&text) < 0)
        memory_exhausted(text.n);
    api_reply_json(m->in.reply, status, &text);
    json_decref(value);
}

/* Returns false. */
static bool mcp_refuse(const struct mcp_exchange *m, enum mcp_code code, const char *text)
{
    unsigned status = code == MCP_METHOD_NOT_FOUND ? 404 : 400;

    /* Revisions before 2026-07-28 leave the HTTP status to the transport: an answer is an answer. */
    if (!m->is_stateless && (code == MCP_METHOD_NOT_FOUND || code == MCP_INVALID_PARAMS))
        status = 200;
    mcp_reply(m, status, "error", json_pack("{s:i,s:s}", "code", (int)code, "message", text));
    return false;
}

/* The result is taken. */
static void mcp_reply_result(const struct mcp_exchange *m, json_t *result)
{
    if (m->is_stateless)
        mcp_add_stateless(result);
    mcp_reply(m, 200, "result", result);
}

/* ---- Which revision a message is of, and what that asks for ---- */

/* Newest first: MCP_STATELESS, and those that begin with initialize. */
static json_t *mcp_versions(const struct api *a)
{
    return kube_list(a->schemas, "mcp", "versions", NULL);
}

static bool mcp_is_stateful(const struct api *a, const char *version)
{
    return kube_list_has(mcp_versions(a), version) && strcmp(version, MCP_STATELESS) != 0;
}

static bool mcp_refuse_version(const struct mcp_exchange *m, const char *version)
{
    /* NULL, and left out, for a header that is not UTF-8. */
    json_t *data = json_pack("{s:O,s:s}", "supported", mcp_versions(m->in.api), "requested", version);

    mcp_reply(m, 400, "error",
              json_pack("{s:i,s:s,s:o*}", "code", MCP_UNSUPPORTED_VERSION, "message",
                        "unsupported protocol version", "data", data));
    return false;
}

/* libmicrohttpd leaves the white space around a value. */
static bool mcp_header_is(const char *header, const char *value)
{
    return header && str_eq(str_trim(str_of(header)), str_of(value));
}

static bool mcp_check_stateless(const struct mcp_exchange *m)
{
    const json_t *meta = json_object_get(m->params, "_meta");
    const char *version = kube_str(meta, MCP_META "protocolVersion", NULL);
    const char *name = strcmp(m->method, "tools/call") == 0 ? kube_str(m->params, "name", NULL) : NULL;

    if (!m->id.n) /* a notification says nothing about itself */
        return true;
    if (!version)
        return mcp_refuse(m, MCP_INVALID_PARAMS, "params._meta: " MCP_META "protocolVersion is missing");
    if (!kube_map(meta, MCP_META "clientCapabilities", NULL))
        return mcp_refuse(m, MCP_INVALID_PARAMS, "params._meta: " MCP_META "clientCapabilities is missing");
    if (!mcp_header_is(m->in.header_version, version))
        return mcp_refuse(m, MCP_HEADER_MISMATCH, "MCP-Protocol-Version differs from params._meta");
    if (!mcp_header_is(m->in.header_method, m->method))
        return mcp_refuse(m, MCP_HEADER_MISMATCH, "Mcp-Method differs from method");
    if (name && !mcp_header_is(m->in.header_name, name))
        return mcp_refuse(m, MCP_HEADER_MISMATCH, "Mcp-Name differs from params");
    return strcmp(version, MCP_STATELESS) == 0 || mcp_refuse_version(m, version);
}

/* Decides which generation the message is of and checks what that asks of it; false after the reply. */
static bool mcp_check_version(struct mcp_exchange *m)
{
    const char *header = m->in.header_version;

    m->is_stateless = kube_get(m->params, "_meta", MCP_META "protocolVersion", NULL) ||
                      mcp_header_is(header, MCP_STATELESS);
    if (!m->method)
        return true;
    if (m->is_stateless)
        return mcp_check_stateless(m);
    /* Without the header it is 2025-03-26. */
    if (!header || mcp_is_stateful(m->in.api, header))
        return true;
    m->is_stateless = true; /* of a revision to come */
    return mcp_refuse_version(m, header);
}

/* ---- Methods ---- */

/* Adds what both generations are told first. */
static void mcp_add_capabilities(json_t *result)
{
    (void)kube_set_object(kube_set_object(result, "capabilities"), "tools");
}

static void mcp_initialize(struct mcp_exchange *m)
{
    const char *asked = kube_str(m->params, "protocolVersion", NULL);
    const char *last = json_string_value(json_array_get(mcp_versions(m->in.api), 1));
    json_t *result;

    if (!asked) {
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "protocolVersion is missing");
        return;
    }
    result = json_object();
    kube_set_str(result, "protocolVersion", mcp_is_stateful(m->in.api, asked) ? asked : last);
    mcp_add_capabilities(result);
    kube_set(result, "serverInfo", mcp_server_info());
    kube_set(result, "instructions", json_incref(m->in.api->instructions));
    mcp_reply_result(m, result);
}

/* How long the result may be kept, and by whom. */
static void mcp_add_lifetime(json_t *result)
{
    kube_set_int(result, "ttlMs", MCP_TTL_MS);
    kube_set_str(result, "cacheScope", "public");
}

static void mcp_discover(struct mcp_exchange *m)
{
    json_t *result = json_object();

    kube_set(result, "supportedVersions", json_incref(mcp_versions(m->in.api)));
    mcp_add_capabilities(result);
    kube_set(result, "instructions", json_incref(m->in.api->instructions));
    mcp_add_lifetime(result);
    mcp_reply_result(m, result);
}

static void mcp_ping(struct mcp_exchange *m)
{
    mcp_reply_result(m, json_object());
}

static void mcp_list_tools(struct mcp_exchange *m)
{
    json_t *result;

    if (json_object_get(m->params, "cursor")) {
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "unknown cursor: the list has one page");
        return;
    }
    result = json_object();
    kube_set(result, "tools", json_incref(m->in.api->tools));
    if (m->is_stateless)
        mcp_add_lifetime(result);
    mcp_reply_result(m, result);
}

static void mcp_call_tool(struct mcp_exchange *m)
{
    const struct api_operation *op = tool_find(m->in.api, kube_str(m->params, "name", NULL));
    struct api_request *r;

    if (!op) {
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "unknown tool: tools/list names those that there are");
        return;
    }
    r = api_request_new(m->in.api, op, &tool_interface, m->in.reply);
    buf_put_str(&r->id, m->id); /* a part of the body, and so no longer */
    r->is_stateless = m->is_stateless;
    r->is_deferred = m->is_deferred;
    r->call.max_bytes = MCP_ANSWER_BYTES;
    if (tool_only_plans(op)) {
        r->call.note =
            "nothing was applied: this server was started without --mcp.allow-writes, so dryRun was set";
        r->forces_dry_run = true;
    }
    m->is_handed_over = true;
    api_request_start(r, m->arguments.n ? m->arguments : STR("{}"));
}

static void mcp_dispatch(struct mcp_exchange *m)
{
    static const struct {
        const char *method;
        bool stateful, stateless;
        void (*fn)(struct mcp_exchange *m);
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
    (void)mcp_refuse(m, MCP_METHOD_NOT_FOUND, "method not found");
}

/* ---- Messages ---- */

/* What the head keeps: see schema.h. What is listed without a type may be of any, which mcp_read() judges. */
static const char mcp_head_schema[] =
    "{\"properties\":{\"jsonrpc\":{},\"method\":{},\"result\":{},\"error\":{},\"params\":{\"properties\":{"
    "\"name\":{},\"protocolVersion\":{},\"cursor\":{},\"_meta\":{\"properties\":{"
    "\"" MCP_META "protocolVersion\":{},\"" MCP_META "clientCapabilities\":{}}}}}}}";

/* Reads params.arguments, the last ones of several. */
static void mcp_find_arguments(struct mcp_exchange *m, struct jr *j)
{
    struct str key;

    m->arguments = STR("");
    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        bool is_wanted = jr_key_is(key, "arguments");

        (void)jr_skip(j, is_wanted ? &m->arguments : NULL);
    }
}

/* Finds what stays text: the arguments, and the id if that is a string or a number. jansson refuses large
 * numbers, and ids are only echoed. */
static void mcp_find_texts(struct mcp_exchange *m)
{
    struct str key, id = {0};
    struct jr j;

    jr_init(&j, m->in.body, JR_STRICT);
    if (jr_peek(&j) != JR_OBJECT)
        return;
    (void)jr_object(&j);
    while (jr_member(&j, &key))
        if (jr_key_is(key, "params"))
            mcp_find_arguments(m, &j);
        else
            (void)jr_skip(&j, jr_key_is(key, "id") ? &id : NULL);
    m->id = id.n && strchr("\"-0123456789", *id.p) ? id : STR("");
    m->has_id = id.n > 0;
}

/* Worker's thread, or the loop's. */
static void mcp_read(struct job *job)
{
    struct mcp_exchange *m = CONTAINER_OF(job, struct mcp_exchange, reading);
    json_auto_t *schema = json_loads(mcp_head_schema, 0, NULL);
    size_t bytes;
    int e = schema_read(&m->head, schema, m->in.body, "message", MCP_HEAD_MAX_BYTES, &bytes, &m->api_error);

    m->has_read = true;
    if (e == -EFBIG)
        (void)api_error_set(&m->api_error, 413, "message: takes more than %d KiB besides its arguments",
                            MCP_HEAD_MAX_BYTES >> 10);
    else if (e == 0)
        mcp_find_texts(m);
}

static bool mcp_check_head(struct mcp_exchange *m)
{
    const json_t *head = m->head;

    if (m->api_error.status)
        return mcp_refuse(m, m->api_error.status == 400 ? MCP_PARSE_ERROR : MCP_INVALID_REQUEST,
                          m->api_error.detail);
    if (json_is_array(head))
        return mcp_refuse(m, MCP_INVALID_REQUEST, "batches are not supported: send one message");
    if (!json_is_object(head))
        return mcp_refuse(m, MCP_PARSE_ERROR, "not a JSON object");
    m->method = json_string_value(json_object_get(head, "method"));
    m->params = json_object_get(head, "params");
    if (strcmp(cstr(json_string_value(json_object_get(head, "jsonrpc"))), "2.0") != 0 ||
        (m->has_id && !m->id.n) || (m->params && !json_is_object(m->params)) ||
        (!m->method && !json_object_get(head, "result") && !json_object_get(head, "error")))
        return mcp_refuse(m, MCP_INVALID_REQUEST, "not a message of JSON-RPC 2.0");
    return true;
}

static void mcp_on_read(struct job *job)
{
    struct mcp_exchange *m = CONTAINER_OF(job, struct mcp_exchange, reading);

    if (!m->has_read || m->in.api->is_ending)
        httpd_reply_text(m->in.reply, 503, STR("the optimizer is shutting down\n"));
    else if (mcp_check_head(m) && mcp_check_version(m)) {
        if (m->method && m->id.n)
            mcp_dispatch(m);
        else /* nothing was asked: a notification, or an answer to no question of ours */
            m->in.reply->status = 202;
    }
    if (m->is_deferred && !m->is_handed_over)
        httpd_finish(m->in.reply);
    json_decref(m->head);
    free(m);
}

void mcp_handle(const struct mcp_message *in)
{
    struct mcp_exchange *m = xmalloc(sizeof(*m));

    *m = (struct mcp_exchange){.in = *in, .reading = {.run = mcp_read, .done = mcp_on_read}};
    if (worker_takes(in->api->worker, in->body.n)) {
        m->is_deferred = true;
        httpd_defer(in->reply);
    }
    worker_do(in->api->worker, &m->reading, in->body.n);
}

void mcp_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct mcp_message m = {.api = arg,
                                  .reply = reply,
                                  .header_version = httpd_header(rq, "MCP-Protocol-Version"),
                                  .header_method = httpd_header(rq, "Mcp-Method"),
                                  .header_name = httpd_header(rq, "Mcp-Name"),
                                  .body = rq->body};

    if (!api_body_is_json(rq))
        httpd_reply_text(reply, 415, STR("415: the body must be application/json, not compressed\n"));
    else if (*rq->accept && !strstr(rq->accept, "application/json") && !strstr(rq->accept, "*/*"))
        httpd_reply_text(reply, 406, STR("406: answers are application/json\n"));
    else
        mcp_handle(&m);
}
