/* REST requests, their answers, and what /openapi.json says of them. */
#include "controller/assist/api_table.h"
#include "exporter/base/buf.h"
#include "test/unit/assist/api_world.h"

#include <errno.h>
#include <string.h>

static const struct api_operation *find(struct api_world *w, const char *name)
{
    for (size_t i = 0; i < w->api->n; i++)
        if (strcmp(w->api->operations[i].o->name, name) == 0)
            return &w->api->operations[i];
    fail();
    return NULL;
}

/* Sends a body, or with a type of NULL the query; returns the status. */
static unsigned rest_send(struct api_world *w, const char *name, const char *type, const char *text, size_t n,
                          json_t **ret)
{
    const struct httpd_request rq = {.content_type = type ? type : "",
                                     .content_encoding = "",
                                     .arguments = {type ? NULL : text, type ? 0 : n},
                                     .body = {type ? text : NULL, type ? n : 0}};
    struct httpd_route routes[ARRAY_SIZE(world_operations) + API_OWN_ROUTES], *route;
    struct httpd_reply reply = {0};
    json_t *o;

    (void)api_routes(w->api, routes);
    route = &routes[find(w, name) - w->api->operations];
    route->fn(route->arg, &rq, &reply);
    o = world_body(&reply);
    if (ret)
        *ret = o;
    else
        json_decref(o);
    return reply.status;
}

static void counts_failures_from_zero(void **state)
{
    struct api_world *w = *state;
    BUF_AUTO(page, 1 << 20);

    metrics_render(w->metrics, &page);
    assert_int_equal(buf_failed(&page), 0);
    assert_non_null(strstr(page.p, "dynamic_scoring_optimizer_requests_total{code=\"503\",interface=\"rest\","
                                   "operation=\"echo\"} 0\n"));
    assert_null(strstr(page.p, "code=\"200\""));
}

static void reads_the_query_by_the_schema(void **state)
{
    static const char query[] = "name\0007\0n\0007";
    struct api_world *w = *state;
    json_t *o = NULL, *input;

    assert_int_equal(rest_send(w, "echo_get", NULL, query, sizeof(query), &o), 200);
    input = json_object_get(o, "input");
    assert_string_equal(json_string_value(json_object_get(input, "name")), "7");
    assert_int_equal(json_integer_value(json_object_get(input, "n")), 7);
    json_decref(o);
    assert_int_equal(rest_send(w, "echo_get", NULL, "n\0007x", 5, &o), 422);
    json_decref(o);
    assert_int_equal(rest_send(w, "echo_get", NULL, "n\000 7", 5, &o), 422);
    json_decref(o);
    assert_int_equal(rest_send(w, "echo_get", NULL, "name\0\xff", 7, NULL), 400);
    assert_int_equal(rest_send(w, "echo_get", NULL, "nmae\000a", 7, &o), 422);
    assert_string_equal(json_string_value(json_object_get(o, "detail")),
                        "nmae: unknown field; did you mean name?");
    json_decref(o);
}

static void refuses_what_it_cannot_read(void **state)
{
    static const struct {
        const char *type, *body, *field;
        unsigned status;
    } cases[] = {
        {"text/plain", "{}", NULL, 415},
        {"application/jsonx", "{}", NULL, 415},
        {"application/json", "{", NULL, 400},
        {"application/json", "", NULL, 400},
        {"application/json", "[]", NULL, 422},
        {"application/json", "{\"n\":0}", "n", 422},
        {"application/json", "{\"names\":[\"a\",1]}", "names[1]", 422},
    };
    struct api_world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = NULL;
        const char *body = cases[i].body;

        assert_int_equal(rest_send(w, "echo", cases[i].type, body, strlen(body), &o), cases[i].status);
        assert_non_null(json_object_get(o, "detail"));
        if (cases[i].field)
            assert_string_equal(json_string_value(json_object_get(o, "field")), cases[i].field);
        else
            assert_null(json_object_get(o, "field"));
        json_decref(o);
    }
}

static void describes_its_requests(void **state)
{
    const struct api_world *w = *state;
    json_auto_t *o = json_loadb(w->api->openapi.p, w->api->openapi.n, 0, NULL);
    json_t *paths = json_object_get(o, "paths"), *echo = json_object_get(paths, "/echo");

    assert_int_equal(json_object_size(paths), 6);
    assert_int_equal(json_object_size(echo), 2);
    assert_string_equal(json_string_value(json_object_get(json_object_get(echo, "post"), "operationId")),
                        "echo");
    assert_int_equal(json_array_size(json_object_get(json_object_get(echo, "get"), "parameters")), 3);
    assert_null(json_object_get(o, "security"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_failures_from_zero, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(reads_the_query_by_the_schema, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(refuses_what_it_cannot_read, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(describes_its_requests, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
