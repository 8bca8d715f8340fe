/* Messages of assistants: three lines of headers ("-": absent), then the body. Each is answered with one
 * message that has the request's id, or accepted without an answer. */
#include "controller/assist/mcp.h"
#include "exporter/base/str.h"
#include "exporter/http/httpd.h"
#include "test/fuzz/api_echo.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_HEADER = 64 };

/* Takes a line off the input; NULL for "-". */
static const char *take_header(struct str *in, char out[MAX_HEADER])
{
    const char *end = in->n ? memchr(in->p, '\n', in->n) : NULL;
    size_t n = end ? (size_t)(end - in->p) : in->n, used = n + (end != NULL);

    (void)snprintf(out, MAX_HEADER, "%.*s", (int)(n < MAX_HEADER ? n : MAX_HEADER - 1), in->n ? in->p : "");
    *in = (struct str){in->p + used, in->n - used};
    return strcmp(out, "-") == 0 ? NULL : out;
}

static void check_answer(const json_t *o, const json_t *request, unsigned status)
{
    const json_t *id = json_object_get(request, "id"), *result = json_object_get(o, "result");
    const json_t *error = json_object_get(o, "error"), *content = json_object_get(result, "content");

    assert(strcmp(json_string_value(json_object_get(o, "jsonrpc")), "2.0") == 0);
    assert((result != NULL) + (error != NULL) == 1);
    if (json_is_string(id) || json_is_number(id))
        assert(json_equal(json_object_get(o, "id"), id) || status == 400);
    else
        assert(error && json_is_null(json_object_get(o, "id")));
    if (error)
        assert(json_is_integer(json_object_get(error, "code")) &&
               json_is_string(json_object_get(error, "message")));
    else
        assert(status == 200);
    if (content && !json_is_true(json_object_get(result, "isError"))) {
        const char *text = json_string_value(json_object_get(json_array_get(content, 0), "text"));
        json_auto_t *same = json_loads(text, 0, NULL);

        assert(json_equal(same, json_object_get(result, "structuredContent")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    char version[MAX_HEADER], method[MAX_HEADER], name[MAX_HEADER];
    struct httpd_reply reply = {0};
    struct mcp_message m = {.api = echo_api(), .reply = &reply};
    json_auto_t *request = NULL, *answer = NULL;
    json_error_t why = {0};

    m.header_version = take_header(&in, version);
    m.header_method = take_header(&in, method);
    m.header_name = take_header(&in, name);
    request = json_loadb(in.n ? in.p : "", in.n, JSON_ALLOW_NUL, &why);
    m.body = in;
    mcp_handle(&m);
    /* A number as id that jansson refuses is echoed: it refuses the answer as well. */
    if (!request && json_error_code(&why) == json_error_numeric_overflow) {
        if (reply.release)
            reply.release(reply.arg);
        return 0;
    }
    answer = echo_body(&reply);
    if (reply.status == 202)
        assert(!answer && request);
    else
        check_answer(answer, request, reply.status);
    return 0;
}
