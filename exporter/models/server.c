/* A call of /scoring is one struct from its body to its reply. Small requests are scored at once, large ones
 * on a worker, so that /healthz and the page answer meanwhile; a model that must wait answers with
 * scoring_done(). */

#include "exporter/models/server.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/inflate.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"
#include "exporter/ui/member.h"
#include "exporter/ui/site.h"
#include "exporter/web/bearer.h"

#include <errno.h>
#include <stdio.h>

enum {
    MODEL_MAX_ENDPOINTS = 2,
    MAX_CALLS = 32,
    MAX_BODY_BYTES = 64 << 20, /* of a call, also once decoded */
    MAX_BODIES_BYTES = 256 << 20,
    MAX_WAITING_BODY_BYTES = 8 << 20, /* of a decoded body that is kept while the model waits */
    MAX_ANSWER_BYTES = 256 << 20,
    MAX_STATUS_BYTES = 16 << 20,
    MAX_CONFIG_BYTES = 1 << 20,
    COMPRESSION = 16,      /* how much larger than its compressed form a body is, about */
    PATIENCE_SECONDS = 30, /* a call that has waited longer is not scored: its caller is gone */
    RETRY_SECONDS = 5,
    STOP_SECONDS = 5, /* in which calls that wait at the end are still scored */
    PATH_BYTES = 128,
    ROUTES_PER_ENDPOINT = 3,
    SHOWN_SERIES = 50, /* on the page, of the last call */
    SHOWN_SAMPLES = 240,
    SHOWN_RESULTS = 200,
    SHOWN_METRIC_BYTES = 4 << 10,
    SHOWN_RESULT_BYTES = 16 << 10,
    SHOWN_BYTES = 2 << 20,
    LAST_BYTES = SHOWN_BYTES + (16 << 10),
};

struct served_endpoint {
    struct model_server *server;
    size_t index;
    char config[PATH_BYTES], scoring[PATH_BYTES], reset[PATH_BYTES];
    /* For the page. */
    uint64_t calls, failures;
    struct buf last_success, last_failure; /* JSON objects; empty: none */
};

struct model_server {
    struct loop *loop;
    struct instance *instance;
    struct metrics *metrics;
    struct worker *worker;
    struct site *site;
    struct bearer bearer;
    struct served_endpoint endpoints[MODEL_MAX_ENDPOINTS];
    unsigned n_calls; /* under way */
    double stop_at;   /* clock_seconds(); 0: not yet */
};

struct model_call {
    struct job job;
    struct served_endpoint *endpoint;
    struct scoring scoring;
    struct buf body; /* decoded, if it came compressed */
    struct buf answer, shown;
    const struct httpd_request *rq;
    struct httpd_reply *reply;
    double began; /* clock_seconds() */
    bool ran;
    int result; /* 0 or a negative errno */
};

WORD_TABLE(left_out_word, enum left_out, LEFT_OUTS,
           {[LEFT_OUT_NO_VALUES] = "no_values",
            [LEFT_OUT_SHORT] = "short",
            [LEFT_OUT_GAPPY] = "gappy",
            [LEFT_OUT_ENDED] = "ended",
            [LEFT_OUT_DISORDERED] = "disordered",
            [LEFT_OUT_NOT_FINITE] = "not_finite",
            [LEFT_OUT_NO_ANSWER] = "no_answer",
            [LEFT_OUT_NO_NUMBER] = "no_number"});

/* ---- The last call, for the page ---- */

static void show_numbers(struct buf *o, const char *key, const double *v, size_t n)
{
    member_list(o, key);
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        value_number(o, v[i]);
    }
    buf_puts(o, "]");
}

static void show_request(struct buf *o, struct str body)
{
    struct input_series s;
    struct request rq;
    size_t n = 0;

    member_list(o, "shownSeries");
    request_begin(&rq, body);
    while (n < SHOWN_SERIES && request_next(&rq, &s)) {
        size_t samples = size_min(s.n, SHOWN_SAMPLES), from = s.n - samples; /* the last ones */

        if (s.metric.n > SHOWN_METRIC_BYTES)
            continue;
        n++;
        member_item(o);
        buf_puts(o, "{");
        member(o, "metric");
        buf_put_str(o, s.metric);
        show_numbers(o, "unixSeconds", s.times + from, samples);
        show_numbers(o, "values", s.values + from, samples);
        buf_puts(o, "}");
    }
    request_abandon(&rq);
    buf_puts(o, "]");
}

static void show_answer(struct buf *o, struct str answer)
{
    struct str key, result;
    struct jr j;
    size_t n = 0;

    member_list(o, "shownResults");
    jr_init(&j, answer, JR_STRICT);
    (void)jr_object(&j);
    (void)jr_member(&j, &key);
    (void)jr_array(&j);
    while (n < SHOWN_RESULTS && jr_item(&j) && jr_skip(&j, &result))
        if (result.n <= SHOWN_RESULT_BYTES) {
            member_item(o);
            buf_put_str(o, result);
            n++;
        }
    buf_puts(o, "]");
}

/* ---- Calls ---- */

static bool is_compressed(const struct model_call *c)
{
    return *c->rq->content_encoding && !str_eq_nocase(str_of(c->rq->content_encoding), STR("identity"));
}

/* Decodes the body. */
static int call_read_body(struct model_call *c, struct str *ret)
{
    struct str coding = str_of(c->rq->content_encoding);
    CLEANUP(cleanup_free) char *why = NULL;
    int r;

    *ret = c->rq->body;
    if (!is_compressed(c))
        return 0;
    if (!str_eq_nocase(coding, STR("gzip")) && !str_eq_nocase(coding, STR("x-gzip")) &&
        !str_eq_nocase(coding, STR("deflate")))
        return -EPROTONOSUPPORT;
    r = inflate_body(c->rq->body, &c->body, &why);
    *ret = buf_str(&c->body);
    if (r == -EFBIG)
        (void)snprintf(c->scoring.why, WHY_BYTES, "the decoded body is larger than %zu MiB",
                       c->body.max >> 20);
    else if (r < 0)
        (void)snprintf(c->scoring.why, WHY_BYTES, "the body %s", why ? why : "is damaged");
    if (r == -EFBIG)
        return -E2BIG;
    return r == -EBADMSG ? -EINVAL : r;
}

/* Ends reading and writing; the first error counts. Of a valid request keeps the first series and results for
 * the page. */
static void call_conclude(struct model_call *c, int r)
{
    struct scoring *s = &c->scoring;
    struct str body = s->request.body;
    int read = request_end(&s->request), written = results_end(&s->results);

    s->left_out[LEFT_OUT_NO_VALUES] = s->request.n_without_values;
    if (read < 0)
        (void)snprintf(c->scoring.why, WHY_BYTES, "%s", s->request.why);
    c->result = read ?: r ?: written;
    if (c->result < 0)
        return;
    show_request(&c->shown, body);
    show_answer(&c->shown, buf_str(&c->answer));
    if (buf_failed(&c->shown) < 0)
        buf_done(&c->shown);
}

static void call_run(struct job *j)
{
    struct model_call *c = CONTAINER_OF(j, struct model_call, job);
    const struct instance *i = c->endpoint->server->instance;
    struct str body = STR("{\"data\":[]}");

    c->ran = true;
    if (clock_seconds() - c->began > PATIENCE_SECONDS)
        c->result = -ETIME;
    else if (!i->model->takes_any_body)
        c->result = call_read_body(c, &body);
    if (c->result < 0)
        return;
    request_begin(&c->scoring.request, body);
    results_begin(&c->scoring.results, &c->answer);
    if (i->model->score)
        call_conclude(c, i->model->score(i->state, &c->scoring));
}

/* Sets the status; and the reason of a failure, unless there is one. */
static void call_fill_reply(struct model_call *c)
{
    static const struct {
        int result;
        unsigned status;
        const char *why;
    } table[] = {
        {0, 200, ""},
        {-EINVAL, 400, "invalid request"},
        {-E2BIG, 413, "the body is too large"},
        {-EPROTONOSUPPORT, 415, "unsupported Content-Encoding; supported are gzip and deflate"},
        {-EIO, 502, "the model's service failed"},
        {-ETIME, 503, "too many calls: this one waited too long"},
        {-ECANCELED, 503, "shutting down"},
        {-EFBIG, 500, "the answer would be larger than 256 MiB"},
        {-ENOMEM, 503, "out of memory"},
    };
    struct httpd_reply *reply = c->reply;
    size_t i = 0;

    while (i + 1 < ARRAY_SIZE(table) && table[i].result != c->result)
        i++;
    if (c->result < 0) {
        if (!*c->scoring.why)
            (void)snprintf(c->scoring.why, WHY_BYTES, "%s", table[i].why);
        buf_clear(&c->answer);
        buf_puts(&c->answer, "{");
        member_text(&c->answer, "error", c->scoring.why);
        buf_puts(&c->answer, "}");
        if (buf_failed(&c->answer) < 0)
            buf_done(&c->answer);
    }
    httpd_reply_take(reply, &c->answer);
    reply->status = table[i].status;
    reply->content_type = "application/json";
    reply->retry_after = reply->status == 503 ? RETRY_SECONDS : 0;
}

static double call_backtest_error(const struct scoring *sc)
{
    return sc->backtest_error / (double)sc->n_backtests;
}

/* What the page shows of a call that failed. */
static void call_put_failure(struct buf *o, const struct model_call *c)
{
    member_count(o, "status", c->reply->status);
    member_text(o, "error", c->scoring.why);
}

/* What the page shows of a call that succeeded. */
static void call_put_success(struct buf *o, const struct model_call *c, double seconds)
{
    const struct scoring *sc = &c->scoring;

    member_number(o, "seconds", seconds);
    member_count(o, "bodyBytes", c->rq->body.n);
    member_count(o, "series", sc->request.n_series);
    member_count(o, "results", sc->results.n);
    member_object(o, "leftOut");
    for (size_t i = 0; i < LEFT_OUTS; i++)
        if (sc->left_out[i])
            member_count(o, left_out_word((enum left_out)i), sc->left_out[i]);
    buf_puts(o, "}");
    if (sc->n_backtests)
        member_number(o, "backtestError", call_backtest_error(sc));
    if (c->shown.n)
        buf_puts(o, ",");
    buf_put_str(o, buf_str(&c->shown));
}

/* Sets what the page shows of the last call that ended like this one; nothing if that is too large. */
static void call_show(const struct model_call *c, double seconds)
{
    struct served_endpoint *e = c->endpoint;
    struct buf *last = c->result == 0 ? &e->last_success : &e->last_failure;

    buf_done(last);
    *last = (struct buf){.max = LAST_BYTES};
    buf_puts(last, "{");
    member_time(last, "at", loop_wall(e->server->loop).ms);
    if (c->result < 0)
        call_put_failure(last, c);
    else
        call_put_success(last, c, seconds);
    buf_puts(last, "}");
    if (buf_failed(last) < 0)
        buf_done(last);
}

/* Counts the call, and keeps what the page shows. */
static void call_record(const struct model_call *c, double seconds)
{
    struct served_endpoint *e = c->endpoint;
    const struct scoring *sc = &c->scoring;
    struct metrics *m = e->server->metrics;
    char code[16];

    (void)snprintf(code, sizeof(code), "%u", c->reply->status);
    metric_add(m, METRIC_SCORER_REQUESTS, LV(code, e->scoring), 1);
    metric_observe(m, METRIC_SCORER_DURATION, LV(e->scoring), seconds);
    e->calls++;
    e->failures += c->result < 0;
    call_show(c, seconds);
    if (c->result < 0)
        return;
    metric_add(m, METRIC_SCORER_SERIES, LV(e->scoring), (double)sc->request.n_series);
    metric_add(m, METRIC_SCORER_RESULTS, LV(e->scoring), (double)sc->results.n);
    for (size_t i = 0; i < LEFT_OUTS; i++)
        if (sc->left_out[i])
            metric_add(m, METRIC_SCORER_LEFT_OUT, LV(e->scoring, left_out_word((enum left_out)i)),
                       (double)sc->left_out[i]);
    if (sc->n_backtests)
        metric_set(m, METRIC_SCORER_BACKTEST, LV(e->scoring), call_backtest_error(sc));
}

static void server_finish_call(struct model_call *c)
{
    struct model_server *s = c->endpoint->server;
    double seconds = clock_seconds() - c->began;

    call_fill_reply(c);
    call_record(c, seconds);
    metric_set(s->metrics, METRIC_SCORER_CALLS, LV_NONE, --s->n_calls);
    httpd_finish(c->reply);
    request_abandon(&c->scoring.request);
    buf_done(&c->body);
    buf_done(&c->answer);
    buf_done(&c->shown);
    free(c);
}

void scoring_done(struct scoring *s, int r)
{
    struct model_call *c = CONTAINER_OF(s, struct model_call, scoring);

    call_conclude(c, r);
    server_finish_call(c);
}

static void call_ended(struct job *j)
{
    struct model_call *c = CONTAINER_OF(j, struct model_call, job);
    const struct model_server *s = c->endpoint->server;
    const struct instance *i = s->instance;

    if (!c->ran && clock_seconds() < s->stop_at)
        call_run(j);
    else if (!c->ran)
        c->result = -ECANCELED;
    if (c->result == 0 && i->model->begin)
        i->model->begin(i->state, &c->scoring);
    else
        server_finish_call(c);
}

/* What a model may pass on for its caller. The token that guards this server is none of that: whoever the
 * model asks could call this server with it. */
static struct str server_authorization(const struct model_server *s, const struct httpd_request *rq)
{
    bool has_token = s->bearer.file || s->bearer.token;

    return has_token ? STR("") : str_of(rq->authorization);
}

static void server_scoring(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct served_endpoint *e = arg;
    struct model_server *s = e->server;
    struct model_call *c;

    if (s->n_calls == MAX_CALLS) {
        metric_add(s->metrics, METRIC_SCORER_REQUESTS, LV("503", e->scoring), 1);
        httpd_reply_text(reply, 503, STR("{\"error\":\"too many calls at a time\"}"));
        reply->content_type = "application/json";
        reply->retry_after = 1;
        return;
    }
    c = xcalloc(1, sizeof(*c));
    *c = (struct model_call){
        .job = {.run = call_run, .done = call_ended},
        .endpoint = e,
        .scoring = {.endpoint = e->index, .authorization = server_authorization(s, rq)},
        .body.max = s->instance->model->begin ? MAX_WAITING_BODY_BYTES : MAX_BODY_BYTES,
        .answer.max = MAX_ANSWER_BYTES,
        .shown.max = SHOWN_BYTES,
        .rq = rq,
        .reply = reply,
        .began = clock_seconds(),
    };
    metric_set(s->metrics, METRIC_SCORER_CALLS, LV_NONE, ++s->n_calls);
    httpd_defer(reply);

    worker_do(s->worker, &c->job, is_compressed(c) ? rq->body.n * COMPRESSION : rq->body.n);
}

/* ---- Other paths ---- */

static void server_healthz(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg, (void)rq;
    httpd_reply_text(reply, 200, STR("{\"status\":\"ok\"}"));
    reply->content_type = "application/json";
}

static void server_config(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct served_endpoint *e = arg;
    BUF_AUTO(body, MAX_CONFIG_BYTES);

    (void)rq;
    instance_put_config(e->server->instance, e->index, &body);
    api_reply(reply, buf_failed(&body), "", &body);
}

static void server_api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    const struct model_server *s = arg;
    const struct model *m = s->instance->model;
    BUF_AUTO(body, MAX_STATUS_BYTES);

    (void)rq;
    buf_puts(&body, "{");
    member_text(&body, "role", "scorer");
    member_text(&body, "model", m->name);
    member_text(&body, "description", m->help);
    member_time(&body, "now", loop_wall(s->loop).ms);
    member_time(&body, "startedAt", metrics_process_start_ms());
    member_build(&body);
    member_list(&body, "endpoints");
    for (const struct served_endpoint *e = s->endpoints; e < s->endpoints + m->n_endpoints; e++) {
        member_item(&body);
        buf_puts(&body, "{");
        member_text(&body, "path", e->scoring);
        member(&body, "config");
        instance_put_config(s->instance, e->index, &body);
        member_count(&body, "calls", e->calls);
        member_count(&body, "failures", e->failures);
        member(&body, "lastCall");
        buf_put_str(&body, e->last_success.n ? buf_str(&e->last_success) : STR("null"));
        member(&body, "lastFailure");
        buf_put_str(&body, e->last_failure.n ? buf_str(&e->last_failure) : STR("null"));
        buf_puts(&body, "}");
    }
    buf_puts(&body, "]");
    member_web_config(&body, site_access(s->site));
    buf_puts(&body, "}");
    api_reply(reply, buf_failed(&body), "", &body);
}

/* ---- Life ---- */

/* Returns the number of routes. */
static size_t server_set_routes(struct model_server *s, struct httpd_route *to)
{
    const struct model *m = s->instance->model;
    struct httpd_route *from = to;

    *to++ = (struct httpd_route){.method = "GET", .path = "/healthz", .fn = server_healthz};
    *to++ =
        (struct httpd_route){.method = "GET", .path = "/api/v1/status", .fn = server_api_status, .arg = s};
    for (size_t i = 0; i < m->n_endpoints; i++) {
        struct served_endpoint *e = &s->endpoints[i];
        const char *prefix = m->endpoints[i].prefix;

        *e = (struct served_endpoint){.server = s, .index = i};
        (void)snprintf(e->config, PATH_BYTES, "%s/config", prefix);
        (void)snprintf(e->scoring, PATH_BYTES, "%s/scoring", prefix);
        (void)snprintf(e->reset, PATH_BYTES, "%s/reset", prefix);
        *to++ = (struct httpd_route){.method = "GET", .path = e->config, .fn = server_config, .arg = e};
        *to++ = (struct httpd_route){
            .method = "POST", .path = e->scoring, .fn = server_scoring, .arg = e, .max_body = MAX_BODY_BYTES};
        if (m->endpoints[i].has_reset)
            *to++ = (struct httpd_route){.method = "POST", .path = e->reset, .fn = server_healthz};
    }
    return (size_t)(to - from);
}

/* Callers of a scoring API need the token, and readers of what callers sent. */
static bool server_is_open(const struct httpd_request *rq)
{
    return strcmp(rq->method, "POST") != 0 && !str_starts(str_of(rq->path), STR("/api/"));
}

int model_server_start(struct model_server **ret, const struct model_server_options *o, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    struct httpd_route routes[2 + MODEL_MAX_ENDPOINTS * ROUTES_PER_ENDPOINT];
    struct model_server *s = xcalloc(1, sizeof(*s));
    const struct model *m = o->instance->model;
    struct site_options site = {.access = {.loop = o->loop, .file = o->config_file},
                                .listen = o->listen,
                                .n_listen = o->n_listen,
                                .max_body_bytes = MAX_BODIES_BYTES,
                                .routes = routes,
                                .pages = pages};
    int r;

    s->metrics = metrics_new(METRIC_OWNER_LOOP);
    s->loop = o->loop;
    s->instance = o->instance;
    metric_set(s->metrics, METRIC_BUILD_INFO, LV(ds_revision, ds_version), 1);
    site.access.metrics = s->metrics;
    site.access.guard = bearer_init(&s->bearer, o->token_file, o->token, server_is_open);
    site.n_routes = server_set_routes(s, routes);
    r = worker_new(&s->worker, o->loop);
    if (r == 0 && m->open)
        r = m->open(s->instance->state, o->loop, s->metrics, ret_why);
    if (r == 0)
        r = site_start(&s->site, &site, ret_why);
    if (r < 0)
        (void)model_server_stop(s, 0);
    else
        *ret = s;
    return r;
}

struct site *model_server_site(const struct model_server *s)
{
    return s ? s->site : NULL;
}

struct model_server *model_server_stop(struct model_server *s, int grace_ms)
{
    if (!s)
        return NULL;
    s->stop_at = clock_seconds() + STOP_SECONDS;
    /* Both answer the calls under way, which must be done before the server stops. */
    s->worker = worker_free(s->worker);
    if (s->instance)
        instance_close(s->instance);
    s->site = site_stop(s->site, grace_ms);
    for (size_t i = 0; i < MODEL_MAX_ENDPOINTS; i++) {
        buf_done(&s->endpoints[i].last_success);
        buf_done(&s->endpoints[i].last_failure);
    }
    s->metrics = metrics_free(s->metrics);
    free(s);
    return NULL;
}
