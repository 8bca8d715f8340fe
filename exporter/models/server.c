/* Small requests are scored at once, large ones on a worker, so that /healthz and the page answer
 * meanwhile. */
#include "exporter/models/server.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/version.h"
#include "exporter/models/call.h"
#include "exporter/models/last_call.h"
#include "exporter/models/model.h"
#include "exporter/ui/api.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"
#include "exporter/ui/site.h"
#include "exporter/ui/web_config.h"
#include "exporter/web/bearer.h"

#include <errno.h>
#include <stdio.h>

enum {
    MAX_CALLS = 32,
    MAX_BODY_BYTES = 256 << 20, /* of all requests at once */
    STATUS_MAX_BYTES = 16 << 20,
    CONFIG_MAX_BYTES = 1 << 20,
    PATH_BYTES = 128,
    DRAIN_MS = 5000,
    ROUTES_PER_ENDPOINT = 3,
};

struct served_endpoint {
    struct model_server *server;
    size_t index;
    char config[PATH_BYTES], scoring[PATH_BYTES], reset[PATH_BYTES];
    struct last_call last;
};

struct model_server {
    struct loop *loop;
    struct instance *instance;
    struct metrics *metrics;
    struct worker *worker;
    struct site *site;
    struct bearer bearer;
    struct served_endpoint endpoints[MODEL_MAX_ENDPOINTS];
    unsigned n_calls;           /* under way */
    void (*drained)(void *arg); /* set: no new calls */
    void *drained_arg;
    struct timer drain_timer;
    bool draining;
};

/* ---- Calls ---- */

static void server_drain_end(struct model_server *s)
{
    void (*done)(void *arg) = s->drained;

    s->drained = NULL;
    loop_timer_clear(s->loop, &s->drain_timer);
    if (done)
        done(s->drained_arg);
}

static void server_count(struct model_server *s, const struct served_endpoint *e, const struct call *c)
{
    char code[16];
    const struct scoring *sc = &c->scoring;

    (void)snprintf(code, sizeof(code), "%u", c->status);
    metric_add(s->metrics, METRIC_SCORER_REQUESTS, LV(code, e->scoring), 1);
    if (c->status != 200)
        return;
    metric_add(s->metrics, METRIC_SCORER_SERIES, LV(e->scoring), (double)sc->request.n_series);
    metric_add(s->metrics, METRIC_SCORER_RESULTS, LV(e->scoring), (double)sc->results.n);
    for (size_t i = 0; i < LEFT_OUTS; i++)
        if (sc->left_out[i])
            metric_add(s->metrics, METRIC_SCORER_LEFT_OUT, LV(e->scoring, left_out_word((enum left_out)i)),
                       (double)sc->left_out[i]);
    if (sc->n_backtests)
        metric_set(s->metrics, METRIC_SCORER_BACKTEST, LV(e->scoring), e->last.backtest_error);
}

/* Keeps what the page shows. */
static void server_remember(struct served_endpoint *e, struct call *c, double seconds)
{
    const struct scoring *sc = &c->scoring;
    struct last_call *last = &e->last;
    unix_ms now = loop_wall(e->server->loop);

    last->calls++;
    if (c->status != 200) {
        last->failures++;
        last->failed_at = now;
        last->failed_status = c->status;
        (void)snprintf(last->failure, sizeof(last->failure), "%s", sc->why);
        return;
    }
    last->at = now;
    last->seconds = seconds;
    last->bytes = c->rq->body.n;
    last->series = sc->request.n_series;
    last->results = sc->results.n;
    last->backtests = sc->n_backtests;
    last->backtest_error = sc->n_backtests ? sc->backtest_error / (double)sc->n_backtests : 0;
    memcpy(last->left_out, sc->left_out, sizeof(last->left_out));
    buf_done(&last->shown);
    last->shown = buf_take(&c->shown);
}

static void server_on_call_done(struct call *c)
{
    struct served_endpoint *e = c->owner;
    struct model_server *s = e->server;
    struct httpd_reply *reply = c->reply;
    double seconds = call_seconds(c);

    call_reply(c);
    server_remember(e, c, seconds);
    server_count(s, e, c);
    metric_observe(s->metrics, METRIC_SCORER_DURATION, LV(e->scoring), seconds);
    metric_set(s->metrics, METRIC_SCORER_CALLS, LV_NONE, --s->n_calls);
    httpd_finish(reply); /* c may be gone after this */
    if (s->n_calls == 0)
        server_drain_end(s);
}

static void server_refuse(const struct served_endpoint *e, struct httpd_reply *reply, const char *text)
{
    metric_add(e->server->metrics, METRIC_SCORER_REQUESTS, LV("503", e->scoring), 1);
    httpd_reply_text(reply, 503, str_of(text));
    reply->content_type = "application/json";
    reply->retry_after = 1;
}

static void server_scoring(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct served_endpoint *e = arg;
    struct model_server *s = e->server;
    struct call *c;

    if (s->draining || s->n_calls == MAX_CALLS) {
        server_refuse(e, reply,
                      s->draining ? "{\"error\":\"shutting down\"}"
                                  : "{\"error\":\"too many calls at a time\"}");
        return;
    }
    c = call_new(s->instance->model, s->instance->state, e->index, rq, reply);
    if (!c) {
        server_refuse(e, reply, "{\"error\":\"out of memory\"}");
        return;
    }
    c->owner = e;
    c->done = server_on_call_done;
    metric_set(s->metrics, METRIC_SCORER_CALLS, LV_NONE, ++s->n_calls);
    httpd_defer(reply);
    call_start(c, s->worker);
}

/* ---- Other paths ---- */

static void server_healthz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg;
    (void)rq;
    httpd_reply_text(reply, 200, STR("{\"status\":\"ok\"}"));
    reply->content_type = "application/json";
}

static void server_reset(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct served_endpoint *e = arg;
    struct instance *i = e->server->instance;

    if (i->model->reset)
        i->model->reset(i->state);
    server_healthz(NULL, rq, reply);
}

static void server_config(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct served_endpoint *e = arg;
    BUF_AUTO(body, CONFIG_MAX_BYTES);

    (void)rq;
    api_reply(reply, instance_put_config(e->server->instance, e->index, &body), "", &body);
}

static void member_endpoint(struct out *o, const struct served_endpoint *e)
{
    member_item(o);
    out_puts(o, "{");
    member_text(o, "path", e->scoring);
    member(o, "config");
    if (o->error == 0)
        o->error = instance_put_config(e->server->instance, e->index, o->b);
    member_last_call(o, &e->last);
    out_puts(o, "}");
}

static void server_api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct model_server *s = arg;
    const struct model *m = s->instance->model;
    BUF_AUTO(body, STATUS_MAX_BYTES);
    struct out o = out_begin(&body);

    (void)rq;
    out_puts(&o, "{");
    member_text(&o, "role", "scorer");
    member_text(&o, "model", m->name);
    member_text(&o, "description", m->help);
    member_time(&o, "now", loop_wall(s->loop).ms);
    member_time(&o, "startedAt", metrics_process_start_ms());
    member_object(&o, "build");
    member_text(&o, "version", ds_version);
    member_text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    member_list(&o, "endpoints");
    for (size_t i = 0; i < m->n_endpoints; i++)
        member_endpoint(&o, &s->endpoints[i]);
    out_puts(&o, "]");
    member_web_config(&o, site_access(s->site));
    out_puts(&o, "}");
    api_reply(reply, out_end(&o), "", &body);
}

/* ---- Life ---- */

/* Returns the number of routes. */
static size_t server_set_routes(struct model_server *s, struct httpd_route *to)
{
    const struct model *m = s->instance->model;
    struct httpd_route *from = to;

    *to++ =
        (struct httpd_route){.method = "GET", .path = "/api/v1/status", .fn = server_api_status, .arg = s};
    for (size_t i = 0; i < m->n_endpoints; i++) {
        struct served_endpoint *e = &s->endpoints[i];
        const char *prefix = m->endpoints[i].prefix;

        *e = (struct served_endpoint){.server = s, .index = i, .last.shown.max = LAST_CALL_MAX_BYTES};
        (void)snprintf(e->config, PATH_BYTES, "%s/config", prefix);
        (void)snprintf(e->scoring, PATH_BYTES, "%s/scoring", prefix);
        (void)snprintf(e->reset, PATH_BYTES, "%s/reset", prefix);
        *to++ = (struct httpd_route){.method = "GET", .path = e->config, .fn = server_config, .arg = e};
        *to++ = (struct httpd_route){.method = "POST",
                                     .path = e->scoring,
                                     .fn = server_scoring,
                                     .arg = e,
                                     .max_body = CALL_MAX_BODY_BYTES};
        if (m->endpoints[i].has_reset)
            *to++ = (struct httpd_route){.method = "POST", .path = e->reset, .fn = server_reset, .arg = e};
    }
    return (size_t)(to - from);
}

/* Callers of a scoring API need the token, and readers of what callers sent. */
static bool server_is_open(const struct httpd_request *rq)
{
    return strcmp(rq->method, "POST") != 0 && !str_starts(str_of(rq->path), STR("/api/"));
}

static int server_serve(struct model_server *s, const struct model_server_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    static const struct httpd_route probe = {.method = "GET", .path = "/healthz", .fn = server_healthz};
    struct httpd_route routes[1 + MODEL_MAX_ENDPOINTS * ROUTES_PER_ENDPOINT];
    const struct site_options site = {.loop = o->loop,
                                      .metrics = s->metrics,
                                      .listen = o->listen,
                                      .n_listen = o->n_listen,
                                      .max_body_bytes = MAX_BODY_BYTES,
                                      .config_file = o->config_file,
                                      .guard = bearer_guard(&s->bearer),
                                      .probes = &probe,
                                      .n_probes = 1,
                                      .probes_everywhere = true,
                                      .routes = routes,
                                      .n_routes = server_set_routes(s, routes),
                                      .pages = pages};

    return site_start(&s->site, &site, ret_why);
}

int model_server_start(struct model_server **ret, const struct model_server_options *o, char **ret_why)
{
    struct model_server *s = calloc(1, sizeof(*s));
    struct model_env env = {.loop = o->loop};
    int r = s ? metrics_new(&s->metrics, METRIC_OWNER_LOOP) : -ENOMEM;

    if (r == 0) {
        s->loop = o->loop;
        s->instance = o->instance;
        bearer_init(&s->bearer, o->token_file, o->token, server_is_open);
        metric_set(s->metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
        env.metrics = s->metrics;
        r = worker_new(&s->worker, o->loop);
    }
    if (r == 0)
        r = instance_open(s->instance, &env, ret_why);
    if (r == 0)
        r = server_serve(s, o, ret_why);
    if (r < 0) {
        (void)model_server_stop(s, 0);
        return r;
    }
    *ret = s;
    return 0;
}

unsigned model_server_port(const struct model_server *s, size_t i)
{
    return site_port(s->site, i);
}

int model_server_reload(struct model_server *s)
{
    return site_reload(s->site, NULL);
}

static void server_on_drain_timer(struct timer *t)
{
    server_drain_end(CONTAINER_OF(t, struct model_server, drain_timer));
}

void model_server_drain(struct model_server *s, void (*done)(void *arg), void *arg)
{
    s->draining = true;
    s->drained = done;
    s->drained_arg = arg;
    s->drain_timer.fn = server_on_drain_timer;
    if (s->n_calls == 0 ||
        loop_timer_set(s->loop, &s->drain_timer, mono_add(loop_now(s->loop), DRAIN_MS)) < 0)
        server_drain_end(s);
}

struct model_server *model_server_stop(struct model_server *s, int grace_ms)
{
    if (!s)
        return NULL;
    s->draining = true;
    s->drained = NULL;
    loop_timer_clear(s->loop, &s->drain_timer);
    /* Both answer the calls under way, which must be done before the server stops. */
    s->worker = worker_free(s->worker);
    if (s->instance)
        instance_close(s->instance);
    s->site = site_stop(s->site, grace_ms);
    for (size_t i = 0; i < MODEL_MAX_ENDPOINTS; i++)
        buf_done(&s->endpoints[i].last.shown);
    s->metrics = metrics_free(s->metrics);
    free(s);
    return NULL;
}
