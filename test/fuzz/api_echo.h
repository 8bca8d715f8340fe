/* The optimizer's API, whose operations answer with what they were given. */
#ifndef DS_TEST_FUZZ_API_ECHO_H
#define DS_TEST_FUZZ_API_ECHO_H

#include "controller/assist/api/api.h"
#include "controller/assist/api/operation.h"
#include "controller/assist/operations/operations.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <assert.h>
#include <jansson.h>

enum { ECHO_MAX = 32 };

static inline void echo_run(void *arg, struct call *c)
{
    (void)arg;
    call_done(c, json_pack("{s:O}", "input", c->input));
}

/* Made once. */
static inline struct api *echo_api(void)
{
    static struct operation operations[ECHO_MAX];
    static const struct operation *table[ECHO_MAX];
    static struct api *api;
    struct api_options o = {.operations = {table, n_assist_operations, NULL}, .instructions = ""};

    if (api)
        return api;
    assert(n_assist_operations <= ECHO_MAX && loop_new(&o.loop, &clock_system) == 0);
    o.metrics = metrics_new(METRIC_OWNER_LOOP);
    for (size_t i = 0; i < n_assist_operations; i++) {
        operations[i] = *assist_operations[i];
        operations[i].run = echo_run;
        table[i] = &operations[i];
    }
    assert(api_new(&api, &o) == 0);
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

#endif
