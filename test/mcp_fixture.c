/* The tools that the conformance suite of the Model Context Protocol calls, on the product's protocol core:
 *
 *     mcp-fixture 127.0.0.1:PORT
 *
 * serves http://127.0.0.1:PORT/mcp until it is killed. */
#include "controller/assist/api/api.h"
#include "controller/assist/api/operation.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define NOTHING "{\"type\":\"object\",\"properties\":{}}"
#define TEXT "{\"type\":\"object\",\"required\":[\"text\"],\"properties\":{\"text\":{\"type\":\"string\"}}}"
/* clang-format on */

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

static const struct operation fixture_tools[] = {
    {"test_simple_text", NULL, NULL, "Text", "Answers with text.", NOTHING, TEXT, OPERATION_READS, true,
     false, fixture_answer},
    {"test_error_handling", NULL, NULL, "Error", "Fails.", NOTHING, TEXT, OPERATION_READS, true, false,
     fixture_fail},
    {"test_logging_tool", NULL, NULL, "Logging", "Logs nothing.", NOTHING, TEXT, OPERATION_READS, true, false,
     fixture_answer},
    {"test_streaming_elicitation", NULL, NULL, "Elicitation", "Asks nothing.", NOTHING, TEXT, OPERATION_READS,
     true, false, fixture_answer},
};

int main(int argc, char **argv)
{
    const struct operation *table[ARRAY_SIZE(fixture_tools)];
    struct httpd_route routes[ARRAY_SIZE(fixture_tools) + API_OWN_ROUTES];
    struct api_options o = {.operations = {table, ARRAY_SIZE(table), NULL},
                            .instructions = "Test the protocol."};
    struct httpd_options serve = {.n_listen = 1, .max_connections = 64, .idle_seconds = 60, .routes = routes};
    const char *address = argc == 2 ? argv[1] : "";
    struct api *api = NULL;
    struct httpd *server = NULL;
    char *why = NULL;
    int r = loop_new(&o.loop, &clock_system);

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        table[i] = &fixture_tools[i];
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
