/* The Model Context Protocol, both generations. */
#include "controller/assist/mcp.h"
#include "test/fuzz/api_echo.h"
#include "test/unit/assist/api_world.h"

#include <ctype.h>
#include <string.h>

#define META(version)                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\",\"io.modelcontextprotocol/" \
    "clientCapabilities\":{}}"
#define NEW                 META("2026-07-28")
#define CALL(params)        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" params "}}"
#define ASK(method, params) "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" params "}}"

/* Sends a message with these headers; returns the status. */
static unsigned exchange(struct api_world *w, const char *version, const char *method, const char *name,
                         const char *body, json_t **ret)
{
    struct httpd_reply reply = {0};
    const struct mcp_message m = {.api = w->api,
                                  .reply = &reply,
                                  .header_version = version,
                                  .header_method = method,
                                  .header_name = name,
                                  .body = str_of(body)};
    json_t *o;

    mcp_handle(&m);
    o = world_body(&reply);
    if (ret)
        *ret = o;
    else
        json_decref(o);
    return reply.status;
}

/* Of an answer of the earlier generation. */
static json_t *ask(struct api_world *w, const char *body)
{
    json_t *o = NULL;

    assert_int_equal(exchange(w, "2025-11-25", NULL, NULL, body, &o), 200);
    return o;
}

static json_int_t code_of(const json_t *o)
{
    return json_integer_value(json_object_get(json_object_get(o, "error"), "code"));
}

static const char *text_of(const json_t *o)
{
    const json_t *content = json_object_get(json_object_get(o, "result"), "content");

    return json_string_value(json_object_get(json_array_get(content, 0), "text"));
}

static void refuses_messages_that_are_none(void **state)
{
    static const struct {
        const char *body;
        json_int_t code;
        unsigned status;
    } cases[] = {
        {"", -32700, 400},
        {"{", -32700, 400},
        {"[]", -32600, 400},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, 400},
        {"5", -32700, 400},
        {"{}", -32600, 400},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600, 400},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600, 400},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600, 400},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32600, 400},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", -32601, 200},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", -32601, 200},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", -32602, 200},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", -32602,
         200},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"write\"}}", -32602,
         200},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", -32602, 200},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = NULL;

        assert_int_equal(exchange(*state, "2025-06-18", NULL, NULL, cases[i].body, &o), cases[i].status);
        assert_int_equal(code_of(o), cases[i].code);
        json_decref(o);
    }
}

static void requires_headers_and_meta_of_the_stateless_revision(void **state)
{
    static const struct {
        const char *version, *method, *name, *body;
        json_int_t code;
        unsigned status;
    } cases[] = {
        {"2026-07-28", "server/discover", NULL, ASK("server/discover", NEW), 0, 200},
        {"2026-07-28", "tools/call", "echo", CALL("\"name\":\"echo\"," NEW), 0, 200},
        {"2026-07-28 ", "\ttools/call", " echo \t", CALL("\"name\":\"echo\"," NEW), 0, 200},
        {"2026-07-28", "server/discover", NULL, ASK("server/discover", ""), -32602, 400},
        {"2026-07-28", "server/discover", NULL, ASK("server/discover", "\"_meta\":{}"), -32602, 400},
        {"2026-07-28", "server/discover", NULL,
         ASK("server/discover", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"),
         -32602, 400},
        {NULL, "server/discover", NULL, ASK("server/discover", NEW), -32020, 400},
        {"2025-11-25", "server/discover", NULL, ASK("server/discover", NEW), -32020, 400},
        {"2026-07-28", NULL, NULL, ASK("server/discover", NEW), -32020, 400},
        {"2026-07-28", "tools/list", NULL, ASK("server/discover", NEW), -32020, 400},
        {"2026-07-28", "tools/call", NULL, CALL("\"name\":\"echo\"," NEW), -32020, 400},
        {"2026-07-28", "tools/call", "fail", CALL("\"name\":\"echo\"," NEW), -32020, 400},
        {"2026-07-28", "server/discover", NULL, ASK("server/discover", META("2027-01-01")), -32020, 400},
        {"2027-01-01", "server/discover", NULL, ASK("server/discover", META("2027-01-01")), -32022, 400},
        {"2027-01-01", "tools/list", NULL, ASK("tools/list", ""), -32022, 400},
        {"2026-07-28", "initialize", NULL, ASK("initialize", NEW), -32601, 404},
        {"2026-07-28", "ping", NULL, ASK("ping", NEW), -32601, 404},
        {"2026-07-28", "tools/call", "none", CALL("\"name\":\"none\"," NEW), -32602, 400},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = NULL;

        assert_int_equal(
            exchange(*state, cases[i].version, cases[i].method, cases[i].name, cases[i].body, &o),
            cases[i].status);
        assert_int_equal(code_of(o), cases[i].code);
        assert_int_equal(json_integer_value(json_object_get(o, "id")), 7);
        json_decref(o);
    }
}

static void echoes_ids_as_they_came(void **state)
{
    static const char *const ids[] = {"9007199254740993", "-18446744073709551617", "1e999", "\"\\u0041\"",
                                      "0.10"};
    static const char *const methods[] = {"ping", "tools/call"};
    struct api_world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ids) * ARRAY_SIZE(methods); i++) {
        char body[200], expected[100];
        struct httpd_reply reply = {0};
        struct mcp_message m = {.api = w->api, .reply = &reply, .header_version = "2025-11-25"};

        (void)snprintf(body, sizeof(body),
                       "{\"id\": %s ,\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{\"name\":\"echo\"}}",
                       ids[i / 2], methods[i % 2]);
        (void)snprintf(expected, sizeof(expected), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{", ids[i / 2]);
        m.body = str_of(body);
        mcp_handle(&m);
        assert_int_equal(reply.status, 200);
        assert_memory_equal(reply.parts->iov_base, expected, strlen(expected));
        reply.release(reply.arg);
    }
}

static int setup_writes(void **state)
{
    return world_setup_writes(state, true);
}

static void offers_writes_where_they_are_allowed(void **state)
{
    json_t *o = ask(*state, ASK("tools/list", "")), *tools, *write, *annotations;

    tools = json_object_get(json_object_get(o, "result"), "tools");
    assert_int_equal(json_array_size(tools), 7);
    write = json_array_get(tools, 5);
    annotations = json_object_get(write, "annotations");
    assert_string_equal(json_string_value(json_object_get(write, "name")), "write");
    assert_true(json_is_false(json_object_get(annotations, "readOnlyHint")));
    assert_true(json_is_true(json_object_get(annotations, "destructiveHint")));
    json_decref(o);
    o = ask(*state, CALL("\"name\":\"write_or_plan\",\"arguments\":{\"dryRun\":false}"));
    assert_null(strstr(text_of(o), "note"));
    assert_non_null(strstr(text_of(o), "\"dryRun\":false"));
    json_decref(o);
}

static void only_plans_where_writes_are_not_allowed(void **state)
{
    json_t *o = ask(*state, CALL("\"name\":\"write_or_plan\",\"arguments\":{\"dryRun\":false}"));

    assert_non_null(strstr(text_of(o), "\"dryRun\":true"));
    assert_non_null(strstr(text_of(o), "--mcp.allow-writes"));
    json_decref(o);
}

static void tells_the_assistant_what_failed(void **state)
{
    static const char *const cases[][2] = {
        {CALL("\"name\":\"fail\""), "in the way"},
        {CALL("\"name\":\"fail\",\"arguments\":{\"name\":\"a\"}"), "workload \"a\xef\xbf\xbd\" not found"},
        {CALL("\"name\":\"echo\",\"arguments\":{\"n\":0}"), "n: must be at least 1"},
        {CALL("\"name\":\"echo\",\"arguments\":[]"), "arguments: must be an object"},
        {CALL("\"name\":\"echo\",\"arguments\":{\"maxBytes\":1}"), "maxBytes: must be at least 1024"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = ask(*state, cases[i][0]), *result = json_object_get(o, "result");

        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_null(json_object_get(result, "structuredContent"));
        assert_string_equal(text_of(o), cases[i][1]);
        json_decref(o);
    }
}

static void bounds_answers(void **state)
{
    static const struct {
        const char *body;
        size_t max;
    } cases[] = {
        {CALL("\"name\":\"list\""), 4096},
        {CALL("\"name\":\"list\",\"arguments\":{\"maxBytes\":1024}"), 1024},
        {CALL("\"name\":\"list\",\"arguments\":{\"maxBytes\":20000,\"offset\":7}"), 20000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *o = ask(*state, cases[i].body);
        json_auto_t *list = json_loads(text_of(o), 0, NULL);
        json_int_t shown = json_integer_value(json_object_get(list, "shown"));

        assert_true(strlen(text_of(o)) <= cases[i].max);
        assert_true(strlen(text_of(o)) > cases[i].max / 3);
        assert_int_equal(json_array_size(json_object_get(list, "items")), shown);
        assert_int_equal(json_integer_value(json_object_get(list, "total")), 1000);
        assert_non_null(json_object_get(list, "next"));
        assert_non_null(strstr(json_string_value(json_object_get(list, "note")), "offset"));
        json_decref(o);
    }
}

/* Whether the text has the name as a word of its own. */
static bool has_word(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = text; (p = strstr(p, name)); p += n) {
        bool begins = p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != '_');

        if (begins && !isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    }
    return false;
}

/* Of the optimizer's own operations. */
static void names_no_tool_that_is_not_there(void **state)
{
    (void)state;
    for (int allow_writes = 0; allow_writes < 2; allow_writes++) {
        struct api *api = echo_api_new(allow_writes);
        CLEANUP(cleanup_free) char *tools = json_dumps(api->tools, 0);
        const char *instructions = json_string_value(api->instructions);
        size_t n_hidden = 0;

        for (size_t i = 0; i < api->n; i++) {
            const char *name = api->operations[i].o->name;

            if (api->operations[i].tool_input)
                continue;
            n_hidden++;
            assert_false(has_word(instructions, name));
            assert_false(has_word(tools, name));
        }
        assert_int_equal(n_hidden, allow_writes ? 0 : 2);
        assert_true(has_word(instructions, "plan"));
        assert_int_equal(has_word(instructions, "apply"), allow_writes);
        echo_api_free(api);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refuses_messages_that_are_none),
        TEST(requires_headers_and_meta_of_the_stateless_revision),
        cmocka_unit_test_setup_teardown(offers_writes_where_they_are_allowed, setup_writes, world_teardown),
        TEST(echoes_ids_as_they_came),
        TEST(only_plans_where_writes_are_not_allowed),
        TEST(tells_the_assistant_what_failed),
        TEST(bounds_answers),
        cmocka_unit_test(names_no_tool_that_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
