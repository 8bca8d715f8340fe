/* The optimizer's API, whose operations answer with what they were given. */
#pragma once

#include "controller/assist/api.h"
#include "controller/assist/call.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <assert.h>
#include <jansson.h>

enum { ECHO_MAX = 32 };

static inline void echo_run(void *arg, struct call *c)
{
    (void)arg;
    call_done(c, json_pack("{s:O}", "input", c->input));
}

static inline struct api *echo_api_new(bool allow_writes)
{
    static struct operation operations[ECHO_MAX];
    static json_t *schemas;
    struct api_options o = {
        .schemas = assist_schemas, .operations = operations, .allow_writes = allow_writes};
    struct api *api;
    const json_t *one;
    size_t i;

    if (!schemas)
        schemas = json_loads(assist_schemas, 0, NULL);
    json_array_foreach(json_object_get(schemas, "operations"), i, one)
    {
        operations[o.n_operations++] =
            (struct operation){json_string_value(json_object_get(one, "name")), .run = echo_run};
    }
    assert(o.n_operations <= ECHO_MAX && loop_new(&o.loop, &clock_system) == 0);
    o.metrics = metrics_new(METRIC_OWNER_LOOP);
    assert(api_new(&api, &o) == 0);
    return api;
}

static inline void echo_api_free(struct api *api)
{
    struct api_options o = api->o;

    (void)api_free(api);
    (void)metrics_free(o.metrics);
    (void)loop_free(o.loop);
}

/* Made once; each call begins a turn of its loop, which has a share of bytes to read. */
static inline struct api *echo_api(void)
{
    static struct api *api;

    if (!api)
        api = echo_api_new(false);
    assert(loop_turn(api->o.loop, 0) == 0);
    return api;
}

/* The body of a reply, which is released: NULL for none, else JSON. */
static inline json_t *echo_body(struct httpd_reply *reply)
{
    json_t *o = NULL;

    if (reply->n_parts) {
        o = json_loadb(reply->parts->iov_base, reply->parts->iov_len, JSON_ALLOW_NUL, NULL);
        assert(o);
    }
    if (reply->release)
        reply->release(reply->arg);
    return o;
}
