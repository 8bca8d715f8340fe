/* The tools that the conformance suite of the Model Context Protocol calls, on the product's protocol core:
 *
 *     mcp-fixture 127.0.0.1:PORT
 *
 * serves http://127.0.0.1:PORT/mcp until it is killed. */
#include "controller/assist/api.h"
#include "controller/assist/call.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void fixture_answer(void *arg, struct call *c)
{
    (void)arg;
    call_done(c, json_pack("{s:s}", "text", "This is a simple text response for testing."));
}

static void fixture_fail(void *arg, struct call *c)
{
    (void)arg;
    call_fail(c, 500, NULL, "This tool intentionally returns an error for testing");
}

/* clang-format off */
#define FIXTURE_TOOL(name) \
    "{\"name\":\"" name "\",\"title\":\"Test\",\"description\":\"Tests.\",\"input\":\"nothing\"," \
    "\"output\":\"text\"}"

static const char fixture_schemas[] =
    "{\"nothing\":{\"type\":\"object\",\"properties\":{}},"
    "\"text\":{\"type\":\"object\",\"required\":[\"text\"],\"properties\":{\"text\":{\"type\":\"string\"}}},"
    "\"openapi\":{},\"mcp\":{\"versions\":[\"2026-07-28\",\"2025-11-25\"],"
    "\"instructions\":\"Test the protocol.\",\"maxBytes\":{\"type\":\"integer\"}},"
    "\"operations\":["
    FIXTURE_TOOL("test_simple_text") "," FIXTURE_TOOL("test_error_handling") ","
    FIXTURE_TOOL("test_logging_tool") "," FIXTURE_TOOL("test_streaming_elicitation") "]}";
/* clang-format on */

static const struct operation fixture_tools[] = {
    {"test_simple_text", .run = fixture_answer},
    {"test_error_handling", .run = fixture_fail},
    {"test_logging_tool", .run = fixture_answer},
    {"test_streaming_elicitation", .run = fixture_answer},
};

int main(int argc, char **argv)
{
    struct httpd_route routes[ARRAY_SIZE(fixture_tools) + API_OWN_ROUTES];
    struct api_options o = {
        .schemas = fixture_schemas, .operations = fixture_tools, .n_operations = ARRAY_SIZE(fixture_tools)};
    struct httpd_options serve = {.n_listen = 1, .max_connections = 64, .idle_seconds = 60, .routes = routes};
    const char *address = argc == 2 ? argv[1] : "";
    struct api *api = NULL;
    struct httpd *server = NULL;
    char *why = NULL;
    int r = loop_new(&o.loop, &clock_system);

    if (r == 0)
        o.metrics = metrics_new(METRIC_OWNER_LOOP);
    if (r == 0)
        r = api_new(&api, &o);
    if (r == 0) {
        serve.n_routes = api_routes(api, routes);
        serve.listen = &address;
        r = httpd_new(&server, o.loop, &serve, &why);
    }
    if (r == 0)
        r = loop_run(o.loop);
    (void)fprintf(stderr, "mcp-fixture: %s\n", why ? why : strerror(-r));
    return 1;
}
