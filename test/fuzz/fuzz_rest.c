/* REST requests: a byte says which operation, then the query (names and values, each ended by a NUL) or the
 * body. An operation only sees arguments that keep its schema; all others are answered with what is wrong. */
#include "controller/assist/api.h"
#include "controller/assist/api_table.h"
#include "controller/assist/schema.h"
#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "test/fuzz/api_echo.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api *api = echo_api();
    const struct api_operation *op = &api->operations[size ? *data % api->n : 0];
    bool is_get = strcmp(op->method, "GET") == 0;
    struct httpd_request rq = {.content_type = is_get ? "" : "application/json", .content_encoding = ""};
    struct httpd_reply reply = {0};
    struct api_error error;
    struct httpd_route routes[ECHO_MAX + API_OWN_ROUTES], *route;
    json_auto_t *answer = NULL;
    BUF_AUTO(copy, SIZE_MAX);

    /* The server ends names and values with a NUL, and there is a value for each name. */
    buf_put(&copy, size ? data + 1 : data, size ? size - 1 : 0);
    buf_put(&copy, "\0\0", 2);
    assert(buf_failed(&copy) == 0);
    if (is_get) {
        size_t nuls = 0;

        for (size_t i = 0; i < copy.n; i++)
            nuls += copy.p[i] == '\0';
        rq.arguments = (struct str){copy.p, copy.n - nuls % 2};
    } else {
        rq.body = (struct str){copy.p, copy.n - 2};
    }
    (void)api_routes(op->api, routes);
    route = &routes[op - op->api->operations];
    route->fn(route->arg, &rq, &reply);
    answer = echo_body(&reply);
    if (reply.status == 200) {
        CLEANUP(cleanup_free) char *input = json_dumps(json_object_get(answer, "input"), 0);
        json_auto_t *again = NULL;
        size_t bytes;

        assert(schema_read(&again, op->input, str_of(input), "body", 64 << 20, &bytes, &error) == 0);
        assert(json_equal(again, json_object_get(answer, "input")));
    } else {
        assert(reply.status == 400 || reply.status == 422);
        assert(json_is_string(json_object_get(answer, "detail")));
    }
    return 0;
}
