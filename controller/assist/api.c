#include "controller/assist/api.h"

#include "controller/assist/schema.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/invariant.h"
#include "exporter/base/json.h"
#include "exporter/base/log.h"
#include "exporter/base/utf8.h"
#include "exporter/ui/member.h"

#include <errno.h>
#include <stdio.h>

enum {
    MAX_BODY = 16 << 20,
    MAX_ANSWER = 512 << 20,
    MAX_OPENAPI = 1 << 20,
    /* Memory for the arguments of one request, and of all that are under way. The largest that the schema
     * of a plan allows, 10,000 clusters with 64 Policies each, takes 290 MB. */
    REQUEST_MAX_BYTES = 320 << 20,
    REQUESTS_MAX_BYTES = 640 << 20,
    MCP_HEAD_MAX_BYTES = 1 << 20, /* memory for a message without its arguments */
    MCP_ANSWER_BYTES = 4 << 10,   /* of a tool, unless maxBytes asks for more */
    MCP_TTL_MS = 300 * 1000,      /* how long clients may keep the list of tools */
};

/* ---- Bodies ---- */

/* Has the reply send the JSON text, which is taken. */
static void reply_take(struct httpd_reply *reply, unsigned status, struct buf *text)
{
    httpd_reply_take(reply, text);
    reply->status = status;
    reply->content_type = "application/json";
}

static bool media_type_is_json(const struct httpd_request *rq)
{
    struct str type = {rq->content_type, strcspn(rq->content_type, "; \t")};

    return str_eq_nocase(type, STR("application/json")) && !*rq->content_encoding;
}

/* ---- The life of a request ----
 *
 * read -> run -> written. Large arguments are read on the worker, and answers that do not come at once are
 * written there. */

/* A call that came by HTTP. */
struct api_request {
    struct call call;
    const struct api_operation *op; /* NULL: of api_answer() */
    struct job reading, writing;
    struct api *api;
    struct httpd_reply *reply;
    bool is_deferred;  /* the reply is: it needs httpd_finish() */
    bool has_returned; /* run() has, without an answer */
    /* Arguments */
    struct str text;  /* JSON */
    struct buf query; /* the text of a GET */
    bool forces_dry_run;
    bool has_read;
    struct api_error api_error; /* to the arguments */
    /* The answer */
    struct buf body;
    int printed;       /* 0: the body is complete */
    struct buf id;     /* of a tool's call, as JSON; empty: REST */
    bool is_stateless; /* revision 2026-07-28 or later of the Model Context Protocol */
};

static int tool_print(const struct api_request *r, struct buf *into);

static int call_print(const struct call *c, struct buf *into)
{
    kube_json_print(c->answer, into);
    if (buf_failed(into) < 0 || !c->has_items || c->status != 200)
        return buf_failed(into);
    buf_truncate(into, into->n - 1); /* the brace: the answer has other members */
    buf_puts(into, ",\"items\":[");
    buf_put_str(into, buf_str(&c->items));
    buf_puts(into, "]}");
    return buf_failed(into);
}

static void request_defer(struct api_request *r)
{
    if (!r->is_deferred)
        httpd_defer(r->reply);
    r->is_deferred = true;
}

/* Large trees take time to free: call it on the worker where possible. */
static void request_release(struct api_request *r)
{
    struct call *c = &r->call;

    c->hub = snapshot_free(c->hub);
    json_decref(TAKE_PTR(c->input));
    (void)atomic_fetch_sub(&r->api->held_bytes, c->input_bytes);
    c->input_bytes = 0;
    json_decref(TAKE_PTR(c->answer));
    buf_done(&c->items);
}

/* Worker's thread, or the loop's. */
static void request_write(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, writing);
    struct call *c = &r->call;

    if (c->hub)
        snapshot_fill(c);
    r->printed = r->id.n ? tool_print(r, &r->body) : call_print(c, &r->body);
    request_release(r);
}

static void request_on_written(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, writing);
    struct httpd_reply *reply = r->reply;
    struct call *c = &r->call;
    char code[16];

    if (r->printed == -ECANCELED)
        httpd_reply_text(reply, c->status = 503, STR("the optimizer is shutting down\n"));
    else if (r->printed < 0)
        httpd_reply_text(reply, c->status = 500, STR("the answer is too large\n"));
    else
        reply_take(reply, r->id.n ? 200 : c->status, &r->body);
    if (reply->status == 503)
        reply->retry_after = CALL_RETRY_AFTER_S;
    (void)snprintf(code, sizeof(code), "%u", c->status);
    if (r->op)
        metric_add(r->api->o.metrics, METRIC_OPTIMIZER_REQUESTS,
                   LV(code, r->id.n ? "mcp" : "rest", r->op->o->name), 1);
    if (r->is_deferred)
        httpd_finish(reply);
    request_release(r);
    buf_done(&r->query);
    buf_done(&r->id);
    buf_done(&r->body);
    free(r);
}

static void request_on_ended(struct call *c)
{
    struct api_request *r = CONTAINER_OF(c, struct api_request, call);

    if (r->has_returned)
        worker_start(r->api->worker, &r->writing);
}

/* After run(), or instead of it. */
static void request_return(struct api_request *r)
{
    r->has_returned = true;
    if (!r->call.status)
        request_defer(r);
    else if (r->is_deferred)
        worker_start(r->api->worker, &r->writing);
    else {
        request_write(&r->writing);
        request_on_written(&r->writing);
    }
}

/* Worker's thread, or the loop's. */
static void request_read(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, reading);
    const json_t *schema = r->id.n ? r->op->tool_input : r->op->input;
    size_t held = atomic_load(&r->api->held_bytes), all = REQUESTS_MAX_BYTES;
    size_t room = held < all ? all - held : 0, max = size_min(room, REQUEST_MAX_BYTES), bytes = 0;
    int e = schema_read(&r->call.input, schema, r->text, r->id.n ? "arguments" : "body", max, &bytes,
                        &r->api_error);

    r->has_read = true;
    if (e == 0) {
        r->call.input_bytes = bytes;
        (void)atomic_fetch_add(&r->api->held_bytes, bytes);
    } else if (e == -EFBIG && max < REQUEST_MAX_BYTES) {
        (void)api_error_set(&r->api_error, 503,
                            "the requests under way leave no memory for this one; try again");
    } else if (e == -EFBIG) {
        (void)api_error_set(&r->api_error, 413, "the request would take more than %d MiB of memory",
                            REQUEST_MAX_BYTES >> 20);
    }
}

static void request_call(struct api_request *r)
{
    json_t *input = r->call.input;
    const json_t *max_bytes = json_object_get(input, "maxBytes"); /* of a tool */

    if (max_bytes)
        r->call.max_bytes = (size_t)json_integer_value(max_bytes);
    (void)json_object_del(input, "maxBytes");
    if (r->forces_dry_run)
        (void)json_object_set_new(input, "dryRun", json_true());
    r->op->o->run(r->api->o.arg, &r->call);
}

static void request_on_read(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, reading);

    if (!r->has_read || r->api->is_ending) {
        request_on_written(&r->writing); /* as if writing had been cancelled */
        return;
    }
    if (r->api_error.status)
        call_refuse(&r->call, &r->api_error, NULL);
    else
        request_call(r);
    request_return(r);
}

static struct api_request *request_new(struct api *api, const struct api_operation *op,
                                       struct httpd_reply *reply)
{
    struct api_request *r = xmalloc(sizeof(*r));

    *r = (struct api_request){
        .call = {.max_bytes = SIZE_MAX,
                 .ended = request_on_ended,
                 .items.max = MAX_ANSWER,
                 .operation = op ? op->o : NULL},
        .op = op,
        .reading = {.run = request_read, .done = request_on_read},
        .writing = {.run = request_write, .done = request_on_written},
        .api = api,
        .reply = reply,
        .query.max = MAX_BODY,
        .body.max = MAX_ANSWER,
        .printed = -ECANCELED,
        .id.max = MAX_BODY,
    };
    return r;
}

/* Reads the arguments, which stay valid until the reply is finished, and runs the operation. The request
 * is answered and freed when it has ended. */
static void request_start(struct api_request *r, struct str text)
{
    r->text = text;
    if (worker_takes(r->api->worker, text.n))
        request_defer(r);
    worker_do(r->api->worker, &r->reading, text.n);
}

void api_answer(struct api *a, struct httpd_reply *reply, json_t *answer)
{
    struct api_request *r = request_new(a, NULL, reply);

    r->has_returned = true;
    request_defer(r);
    call_done(&r->call, answer);
}

/* ---- REST: query parameters or a JSON body in, JSON out ---- */

/* Appends the value of a query parameter: an integer if the schema asks for one and the text is one, else
 * a string. */
static void query_put_value(const json_t *schema, const char *text, struct buf *into)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    char *end;
    long long integer;

    errno = 0;
    integer = strtoll(text, &end, 10);
    if (strcmp(cstr(type), "integer") == 0 && !*end && end > text && errno == 0 && *text != ' ')
        buf_printf(into, "%lld", integer);
    else
        buf_put_json(into, str_of(text));
}

/* Writes the arguments of a GET as a JSON object. -EINVAL if they are not well-formed UTF-8. */
static int query_print(const struct api_operation *op, struct str arguments, struct buf *into)
{
    const json_t *properties = json_object_get(op->input, "properties");
    const char *end = arguments.p + arguments.n, *value;

    if (utf8_valid_prefix(arguments) < arguments.n)
        return -EINVAL;
    buf_putc(into, '{');
    for (const char *name = arguments.p; name < end; name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        if (name > arguments.p)
            buf_putc(into, ',');
        buf_put_json(into, str_of(name));
        buf_putc(into, ':');
        query_put_value(json_object_get(properties, name), value, into);
    }
    buf_putc(into, '}');
    return buf_failed(into);
}

static void rest_serve_get(const struct api_operation *op, const struct httpd_request *rq,
                           struct httpd_reply *reply)
{
    struct api_request *r = request_new(op->api, op, reply);

    if (query_print(op, rq->arguments, &r->query) == 0) {
        request_start(r, buf_str(&r->query));
        return;
    }
    call_fail(&r->call, 400, NULL, "the query parameters are not UTF-8");
    request_return(r);
}

/* Nothing at all reads as {}. */
static void rest_serve_post(const struct api_operation *op, const struct httpd_request *rq,
                            struct httpd_reply *reply)
{
    struct api_request *r = request_new(op->api, op, reply);

    if (rq->body.n == 0 && !*rq->content_type) {
        request_start(r, STR("{}"));
    } else if (media_type_is_json(rq)) {
        request_start(r, rq->body);
    } else {
        call_fail(&r->call, 415, NULL, "the body must be application/json, not compressed");
        request_return(r);
    }
}

static void rest_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api_operation *op = arg;

    if (strcmp(op->method, "GET") == 0)
        rest_serve_get(op, rq, reply);
    else
        rest_serve_post(op, rq, reply);
}

/* ---- The document of the REST requests (https://spec.openapis.org/oas/v3.1.1) ---- */

static json_t *openapi_parameters(const json_t *input)
{
    const json_t *required = json_object_get(input, "required");
    json_t *all = json_array(), *schema;
    const char *name;

    json_object_foreach(json_object_get(input, "properties"), name, schema)
    {
        (void)json_array_append_new(all,
                                    json_pack("{s:s,s:s,s:b,s:s,s:O}", "name", name, "in", "query",
                                              "required", kube_list_has(required, name), "description",
                                              cstr(kube_str(schema, "description", NULL)), "schema", schema));
    }
    return all;
}

static json_t *openapi_operation(const struct api_operation *op)
{
    bool is_required = json_array_size(json_object_get(op->input, "required")) > 0;
    json_t *responses = json_deep_copy(json_object_get(op->api->schemas, "openapi_responses"));
    json_t *o = json_pack("{s:s,s:O,s:s+,s:o}", "operationId", op->o->name, "summary",
                          json_object_get(op->described, "title"), "description",
                          kube_str(op->described, "description", NULL),
                          cstr(kube_str(op->described, "whenWritable", NULL)), "responses", responses);

    (void)json_object_set(kube_map(responses, "200", "content", "application/json", NULL), "schema",
                          (json_t *)(uintptr_t)op->output);
    if (strcmp(op->method, "GET") == 0)
        (void)json_object_set_new(o, "parameters", openapi_parameters(op->input));
    else
        (void)json_object_set_new(o, "requestBody",
                                  json_pack("{s:{s:{s:O}},s:b}", "content", "application/json", "schema",
                                            op->input, "required", is_required));
    return o;
}

static json_t *openapi_paths(const struct api *a)
{
    json_t *paths = json_object();

    for (size_t i = 0; i < a->n; i++) {
        const struct api_operation *op = &a->operations[i];
        json_auto_t *path =
            op->path ? json_pack("{s:{s:o}}", op->path, strcmp(op->method, "GET") == 0 ? "get" : "post",
                                 openapi_operation(op))
                     : NULL;

        (void)json_object_update_recursive(paths, path); /* one may have both methods */
    }
    return paths;
}

static void openapi_build(struct api *a)
{
    json_auto_t *o = json_deep_copy(json_object_get(a->schemas, "openapi"));

    (void)json_object_set_new(kube_map(o, "info", NULL), "version", json_string(ds_version));
    (void)json_object_set_new(o, "paths", openapi_paths(a));
    if (!a->o.needs_token) {
        (void)json_object_del(kube_map(o, "components", NULL), "securitySchemes");
        (void)json_object_del(o, "security");
    }
    a->openapi.max = MAX_OPENAPI;
    kube_json_print(o, &a->openapi);
    invariant(buf_failed(&a->openapi) == 0);
}

static void openapi_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api *a = arg;

    (void)rq;
    httpd_reply_copy(reply, buf_str(&a->openapi));
    reply->content_type = "application/json";
}

/* ---- The Model Context Protocol: replies ----
 *
 * Tools over Streamable HTTP with plain JSON answers. Two generations: revision 2026-07-28 is stateless, and
 * each request says its version in params._meta and in headers; earlier ones begin with `initialize`, after
 * which nothing has to be remembered here either. */

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_HEADER_MISMATCH = -32020,
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_STATELESS "2026-07-28" /* the first revision without initialize */
#define MCP_META      "io.modelcontextprotocol/"

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

/* Up to the value of the result or the error. */
static void mcp_put_head(struct buf *into, struct str id, const char *member)
{
    buf_puts(into, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_put_str(into, id.n ? id : STR("null"));
    buf_printf(into, ",\"%s\":", member);
}

/* The value is taken. */
static void mcp_reply(const struct mcp_exchange *m, unsigned status, const char *member, json_t *value)
{
    BUF_AUTO(text, SIZE_MAX);

    mcp_put_head(&text, m->id, member);
    kube_json_print(value, &text);
    buf_putc(&text, '}');
    if (buf_failed(&text) < 0)
        memory_exhausted(text.n);
    reply_take(m->in.reply, status, &text);
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

/* ---- Operations as tools ---- */

static bool tool_only_plans(const struct api_operation *op)
{
    return op->writes && !op->api->o.allow_writes;
}

static void tool_build(struct api_operation *op)
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

static const struct api_operation *tool_find(const struct api *a, const char *name)
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
    BUF_AUTO(text, MAX_ANSWER);
    int e = failed ? tool_put_error(r->call.answer, r->call.max_bytes, &text) : call_print(&r->call, &text);

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

/* ---- Methods ---- */

static void mcp_initialize(struct mcp_exchange *m)
{
    const char *asked = kube_str(m->params, "protocolVersion", NULL);
    const char *last = json_string_value(json_array_get(mcp_versions(m->in.api), 1));

    if (!asked)
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "protocolVersion is missing");
    else
        mcp_reply_result(m,
                         json_pack("{s:s,s:{s:{}},s:o,s:O*}", "protocolVersion",
                                   mcp_is_stateful(m->in.api, asked) ? asked : last, "capabilities", "tools",
                                   "serverInfo", mcp_server_info(), "instructions", m->in.api->instructions));
}

static void mcp_discover(struct mcp_exchange *m)
{
    mcp_reply_result(m, json_pack("{s:O,s:{s:{}},s:O*,s:i,s:s}", "supportedVersions", mcp_versions(m->in.api),
                                  "capabilities", "tools", "instructions", m->in.api->instructions, "ttlMs",
                                  MCP_TTL_MS, "cacheScope", "public"));
}

static void mcp_ping(struct mcp_exchange *m)
{
    mcp_reply_result(m, json_object());
}

static void mcp_list_tools(struct mcp_exchange *m)
{
    if (json_object_get(m->params, "cursor"))
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "unknown cursor: the list has one page");
    else
        mcp_reply_result(m, json_pack("{s:O,s:o*,s:s*}", "tools", m->in.api->tools, "ttlMs",
                                      m->is_stateless ? json_integer(MCP_TTL_MS) : NULL, "cacheScope",
                                      m->is_stateless ? "public" : NULL));
}

static void mcp_call_tool(struct mcp_exchange *m)
{
    const struct api_operation *op = tool_find(m->in.api, kube_str(m->params, "name", NULL));
    struct api_request *r;

    if (!op) {
        (void)mcp_refuse(m, MCP_INVALID_PARAMS, "unknown tool: tools/list names those that there are");
        return;
    }
    r = request_new(m->in.api, op, m->in.reply);
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
    request_start(r, m->arguments.n ? m->arguments : STR("{}"));
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

static void mcp_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct mcp_message m = {.api = arg,
                                  .reply = reply,
                                  .header_version = httpd_header(rq, "MCP-Protocol-Version"),
                                  .header_method = httpd_header(rq, "Mcp-Method"),
                                  .header_name = httpd_header(rq, "Mcp-Name"),
                                  .body = rq->body};

    if (!media_type_is_json(rq))
        httpd_reply_text(reply, 415, STR("415: the body must be application/json, not compressed\n"));
    else if (*rq->accept && !strstr(rq->accept, "application/json") && !strstr(rq->accept, "*/*"))
        httpd_reply_text(reply, 406, STR("406: answers are application/json\n"));
    else
        mcp_handle(&m);
}

/* ---- The API ---- */

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
                                         .max_body = MAX_BODY};
    *to++ = (struct httpd_route){.method = "GET", .path = "/openapi.json", .fn = openapi_serve, .arg = a};
    *to++ = (struct httpd_route){.method = "POST",
                                 .path = "/mcp",
                                 .fn = mcp_serve,
                                 .arg = a,
                                 .max_body = MAX_BODY,
                                 .local_origins = true};
    return (size_t)(to - from);
}
