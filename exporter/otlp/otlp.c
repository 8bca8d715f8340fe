/* Requests are handled on the server's thread, which owns the ingest. The counters are shared with the
 * loop. */
#include "exporter/otlp/otlp.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/inflate.h"
#include "exporter/otlp/reply.h"
#include "exporter/otlp/schema.h"
#include "exporter/tsdb/tsdb.h"
#include "exporter/web/access.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* A body as received, and decoded or converted from JSON. */
enum { BODY_MAX_BYTES = 16 << 20, BODIES_MAX_BYTES = 64 << 20, DECODED_MAX_BYTES = 64 << 20 };
enum { MAX_CONNECTIONS = 1024, IDLE_SECONDS = 120, RETRY_SECONDS = 5, REPLY_MAX_BYTES = 16 << 10 };
enum { STATUS_PREFIX = sizeof("404: ") - 1 };

struct otlp {
    struct otlp_options o;
    struct ingest *ingest;
    struct access *access;
    struct httpd *httpd;
    struct httpd_route route;
    atomic_uint_fast64_t points[OTLP_RESULTS];
    atomic_int_fast64_t last_ms;
};

/* ---- Requests. Server's thread ---- */

static void otlp_reply(struct httpd_reply *reply, unsigned status, enum otlp_encoding e, int r,
                       struct buf *body)
{
    httpd_reply_copy(reply, r == 0 ? buf_str(body) : STR(""));
    if (reply->status == 500)
        return;
    reply->status = status;
    reply->content_type = otlp_media_type(e);
    reply->retry_after = status == 503 ? RETRY_SECONDS : 0;
}

static void otlp_refuse(struct httpd_reply *reply, enum otlp_encoding e, unsigned status, const char *why)
{
    BUF_AUTO(body, REPLY_MAX_BYTES);
    int r = otlp_put_status(e, status, str_of(why), &body);

    otlp_reply(reply, status, e, r, &body);
}

/* Of an error of the server itself: "404: not found\n". If out of memory, the text stays. */
static void otlp_error_body(const struct httpd_request *rq, struct httpd_reply *reply, struct str text)
{
    BUF_AUTO(body, REPLY_MAX_BYTES);
    enum otlp_encoding e;

    (void)otlp_encoding_of(rq->content_type, &e);
    if (text.n > STATUS_PREFIX)
        text = (struct str){text.p + STATUS_PREFIX, text.n - STATUS_PREFIX};
    if (otlp_put_status(e, reply->status, str_trim(text), &body) < 0)
        return;
    httpd_reply_copy(reply, buf_str(&body));
    reply->content_type = otlp_media_type(e);
}

static void otlp_refuse_errno(struct httpd_reply *reply, enum otlp_encoding e, int r, const char *what,
                              const char *why)
{
    char text[SCHEMA_WHY_BYTES + 64];

    if (r == -EFBIG) {
        (void)snprintf(text, sizeof(text), "decoded request exceeds the limit of %d bytes",
                       DECODED_MAX_BYTES);
        otlp_refuse(reply, e, 413, text);
    } else if (r == -ENOMEM) {
        otlp_refuse(reply, e, 503, "out of memory");
    } else {
        (void)snprintf(text, sizeof(text), "%s%s", what, why);
        otlp_refuse(reply, e, 400, text);
    }
}

/* Decodes the body where it is encoded: *ret is either the request's own or in `into`. */
static bool otlp_decode(const struct httpd_request *rq, struct httpd_reply *reply, enum otlp_encoding e,
                        struct buf *into, struct str *ret)
{
    struct str coding = str_trim(str_of(rq->content_encoding));
    CLEANUP(cleanup_free) char *why = NULL;
    int r;

    *ret = rq->body;
    if (coding.n == 0 || str_eq_nocase(coding, STR("identity")))
        return true;
    if (!str_eq_nocase(coding, STR("gzip")) && !str_eq_nocase(coding, STR("deflate"))) {
        otlp_refuse(reply, e, 415, "unsupported Content-Encoding; supported: gzip, deflate");
        return false;
    }
    r = inflate_body(rq->body, into, &why);
    if (r < 0)
        otlp_refuse_errno(reply, e, r, "body has Content-Encoding gzip, but ", cstr(why));
    *ret = buf_str(into);
    return r == 0;
}

static bool otlp_read(struct str body, enum otlp_encoding e, struct httpd_reply *reply, struct buf *converted,
                      struct str *ret)
{
    char why[SCHEMA_WHY_BYTES] = "";
    int r = 0;

    *ret = body;
    if (e == OTLP_JSON) {
        r = schema_from_json(body, converted, why);
        *ret = buf_str(converted);
    }
    r = r ?: schema_check(*ret, why);
    if (r < 0)
        otlp_refuse_errno(reply, e, r, e == OTLP_JSON ? "invalid JSON: " : "invalid protobuf: ", why);
    return r == 0;
}

static void otlp_count(struct otlp *x, const struct ingest_outcome *outcome)
{
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (outcome->results[i])
            atomic_fetch_add(&x->points[i], outcome->results[i]);
    atomic_store(&x->last_ms, clock_system.wall(&clock_system).ms);
}

static void otlp_receive(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(decoded, DECODED_MAX_BYTES);
    BUF_AUTO(converted, DECODED_MAX_BYTES);
    BUF_AUTO(body, REPLY_MAX_BYTES);
    struct ingest_outcome outcome;
    struct str request, plain;
    struct otlp *x = arg;
    enum otlp_encoding e;
    int r;

    if (!otlp_encoding_of(rq->content_type, &e)) {
        otlp_refuse(reply, e, 415,
                    "unsupported Content-Type; supported: application/x-protobuf, application/json");
        return;
    }
    if (!otlp_decode(rq, reply, e, &decoded, &plain) || !otlp_read(plain, e, reply, &converted, &request))
        return;
    r = ingest_request(x->ingest, request, &outcome);
    otlp_count(x, &outcome);
    if (r < 0) {
        otlp_refuse_errno(reply, e, -ENOMEM, "", "");
        return;
    }
    r = otlp_put_response(e, &outcome, &body);
    otlp_reply(reply, 200, e, r, &body);
}

/* ---- The server. Loop's thread ---- */

static int otlp_listen(struct otlp *x, char **ret_why)
{
    const struct access_options access = {
        .loop = x->o.loop, .metrics = x->o.metrics, .file = x->o.config_file};
    struct httpd_options server = {.listen = &x->o.listen,
                                   .n_listen = 1,
                                   .max_connections = MAX_CONNECTIONS,
                                   .max_body_bytes = BODIES_MAX_BYTES,
                                   .idle_seconds = IDLE_SECONDS,
                                   .routes = &x->route,
                                   .n_routes = 1,
                                   .served = page_count_request,
                                   .cut = page_count_cut,
                                   .error_body = otlp_error_body,
                                   .served_arg = x->o.page};
    int r = access_new(&x->access, &access, ret_why);

    if (r < 0)
        return r;
    access_configure(x->access, &server);
    r = httpd_new(&x->httpd, x->o.loop, &server, ret_why);
    return r ?: access_serve(x->access, x->httpd);
}

int otlp_start(struct otlp **ret, const struct otlp_options *o, char **ret_why)
{
    const struct ingest_options ingest = {.tsdb = o->tsdb, .clock = &clock_system, .promotion = o->promotion};
    struct otlp *x = calloc(1, sizeof(*x));
    int r = x ? ingest_new(&x->ingest, &ingest) : -ENOMEM;

    if (r == 0) {
        x->o = *o;
        x->route = (struct httpd_route){.method = "POST",
                                        .path = "/v1/metrics",
                                        .fn = otlp_receive,
                                        .arg = x,
                                        .direct = true,
                                        .max_body = BODY_MAX_BYTES};
        r = otlp_listen(x, ret_why);
    }
    if (r < 0) {
        (void)otlp_stop(x, 0);
        return r;
    }
    *ret = x;
    return 0;
}

struct otlp *otlp_stop(struct otlp *x, int grace_ms)
{
    if (!x)
        return NULL;
    access_close(x->access);
    x->httpd = httpd_stop(x->httpd, grace_ms);
    x->access = access_free(x->access);
    x->ingest = ingest_free(x->ingest);
    free(x);
    return NULL;
}

void otlp_status(struct otlp *x, struct otlp_status *ret)
{
    *ret = (struct otlp_status){.listen = x->o.listen, .last_ms = atomic_load(&x->last_ms)};
    tsdb_stats(x->o.tsdb, &ret->store);
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        ret->points[i] = atomic_load(&x->points[i]);
}

void otlp_render(struct otlp *x)
{
    struct otlp_status s;
    double all = 0;

    otlp_status(x, &s);
    for (unsigned i = 0; i < OTLP_RESULTS; i++) {
        all += (double)s.points[i];
        if (i != TSDB_OK && i != TSDB_NO_SERIES && i != TSDB_NO_MEMORY)
            metric_set(x->o.metrics, METRIC_OTLP_REJECTED, LV(otlp_result_word(i)), (double)s.points[i]);
    }
    metric_set(x->o.metrics, METRIC_OTLP_POINTS, LV_NONE, all);
}
