/* Owns nothing: makes an api_request of each request, or of why it is none. On the loop, called by httpd. */
#include "controller/assist/rest.h"

#include "controller/assist/api_request.h"
#include "controller/assist/api_table.h"
#include "controller/assist/call.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/utf8.h"

#include <errno.h>

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

static const json_t *rest_schema(const struct api_operation *op)
{
    return op->input;
}

static int rest_print(const struct api_request *r, struct buf *into)
{
    return api_call_print(&r->call, into);
}

static const struct api_interface rest_interface = {
    .name = "rest", .arguments = "body", .schema = rest_schema, .print = rest_print};

static void rest_serve_get(const struct api_operation *op, const struct httpd_request *rq,
                           struct httpd_reply *reply)
{
    struct api_request *r = api_request_new(op->api, op, &rest_interface, reply);

    if (query_print(op, rq->arguments, &r->query) == 0) {
        api_request_start(r, buf_str(&r->query));
        return;
    }
    call_fail(&r->call, 400, NULL, "the query parameters are not UTF-8");
    api_request_return(r);
}

/* Nothing at all reads as {}. */
static void rest_serve_post(const struct api_operation *op, const struct httpd_request *rq,
                            struct httpd_reply *reply)
{
    struct api_request *r = api_request_new(op->api, op, &rest_interface, reply);

    if (rq->body.n == 0 && !*rq->content_type) {
        api_request_start(r, STR("{}"));
    } else if (api_body_is_json(rq)) {
        api_request_start(r, rq->body);
    } else {
        call_fail(&r->call, 415, NULL, "the body must be application/json, not compressed");
        api_request_return(r);
    }
}

void rest_serve(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct api_operation *op = arg;

    if (strcmp(op->method, "GET") == 0)
        rest_serve_get(op, rq, reply);
    else
        rest_serve_post(op, rq, reply);
}
