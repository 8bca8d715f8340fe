/* What the tests of the API share: a table of operations, and requests without a server. */
#pragma once

#include "controller/assist/api.h"
#include "controller/assist/api_error.h"
#include "controller/assist/call.h"
#include "controller/assist/listing.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct api_world {
    struct loop *loop;
    struct metrics *metrics;
    struct api *api;
    struct call *held; /* by world_hold */
};

static void world_echo(void *arg, struct call *c)
{
    (void)arg;
    call_done(c, json_pack("{s:O,s:s*}", "input", c->input, "note", c->note));
}

static void world_fail(void *arg, struct call *c)
{
    struct api_error error = {0};

    (void)arg;
    if (json_object_get(c->input, "name")) {
        api_error_at(&error, "name");
        (void)api_error_set(&error, 404, "workload \"%s\" not found", "a\xff");
        call_refuse(c, &error, NULL);
    } else {
        call_fail(c, 409, NULL, "in the way");
    }
}

static void world_hold(void *arg, struct call *c)
{
    ((struct api_world *)arg)->held = c;
}

static void world_list(void *arg, struct call *c)
{
    struct listing l;

    (void)arg;
    listing_init(&l, c);
    for (int i = 0; i < 1000; i++)
        if (listing_wants(&l))
            listing_add(&l, json_pack("{s:i,s:s}", "i", i, "text", "some text that takes room"));
    listing_end(&l);
}

#define WORLD_OPERATION(name, method, path, input, more)                       \
    "{\"name\":\"" name "\",\"method\":\"" method "\",\"path\":\"" path        \
    "\",\"title\":\"A title\",\"description\":\"Does it.\",\"input\":\"" input \
    "\",\"output\":\"output\"" more "}"

static const char world_schemas[] =
    "{\"openapi\":{\"components\":{},\"security\":[]},\"openapi_responses\":{},\"mcp\":{\"versions\":["
    "\"2026-07-28\",\"2025-11-25\",\"2025-06-18\"],\"instructions\":\"Call tools.\","
    "\"maxBytes\":{\"type\":\"integer\",\"minimum\":1024,\"default\":4096}},\"output\":{\"type\":\"object\"},"
    "\"input\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"properties\":{\"name\":{\"type\":\"string\",\"description\":\"A name.\"},\"n\":{\"type\":\"integer\","
    "\"minimum\":1},\"names\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}},\"dry\":{\"type\":"
    "\"object\",\"additionalProperties\":false,\"properties\":{\"dryRun\":{\"type\":\"boolean\"}}},\"list\":{"
    "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"offset\":{\"type\":\"integer\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1}}},\"operations\":["
    // clang-format off
    WORLD_OPERATION("echo_get", "GET", "/echo", "input", "") ","
    WORLD_OPERATION("echo", "POST", "/echo", "input", "") ","
    WORLD_OPERATION("fail", "POST", "/fail", "input", "") ","
    WORLD_OPERATION("hold", "POST", "/hold", "input", "") ","
    WORLD_OPERATION("list", "GET", "/list", "list", "") ","
    WORLD_OPERATION("write", "POST", "/write", "input", ",\"writes\":true") ","
    WORLD_OPERATION("write_or_plan", "POST", "/write-or-plan", "dry", ",\"writes\":true")
    // clang-format on
    "]}";

static const struct operation world_operations[] = {
    {"echo_get", .run = world_echo},      {"echo", .run = world_echo}, {"fail", .run = world_fail},
    {"hold", .run = world_hold},          {"list", .run = world_list}, {"write", .run = world_echo},
    {"write_or_plan", .run = world_echo},
};

static struct api_options world_options(struct api_world *w)
{
    return (struct api_options){.loop = w->loop,
                                .metrics = w->metrics,
                                .schemas = world_schemas,
                                .operations = world_operations,
                                .n_operations = ARRAY_SIZE(world_operations),
                                .arg = w};
}

static inline int world_setup_writes(void **state, bool allow_writes)
{
    struct api_world *w = calloc(1, sizeof(*w));
    struct api_options o;

    assert_int_equal(loop_new(&w->loop, &clock_system), 0);
    w->metrics = metrics_new(METRIC_OWNER_LOOP);
    o = world_options(w);
    o.allow_writes = allow_writes;
    assert_int_equal(api_new(&w->api, &o), 0);
    *state = w;
    return 0;
}

static inline int world_setup(void **state)
{
    return world_setup_writes(state, false);
}

static inline int world_teardown(void **state)
{
    struct api_world *w = *state;

    w->api = api_free(w->api);
    w->metrics = metrics_free(w->metrics);
    w->loop = loop_free(w->loop);
    free(w);
    return 0;
}

/* The body of a reply, which is released; NULL for an empty one, or for text. */
static inline json_t *world_body(struct httpd_reply *reply)
{
    json_t *o = NULL;

    if (reply->n_parts)
        o = json_loadb(reply->parts->iov_base, reply->parts->iov_len, 0, NULL);
    if (reply->release)
        reply->release(reply->arg);
    return o;
}
