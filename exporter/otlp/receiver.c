/* Requests are handled on the server's thread, one at a time, which owns the ingest. The counters are shared
 * with the loop.
 *
 * Connections take turns, so what a request may cost is bounded: its fields (DECODE_MAX_FIELDS), and what it
 * expands to. A body that is compressed more than metrics ever are draws on an allowance that all such
 * requests share; when it is used up they get 503, before they are decoded. */
#include "exporter/otlp/receiver.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/inflate.h"
#include "exporter/base/json.h"
#include "exporter/base/varint.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/series.h"
#include "exporter/web/access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* A body as received, and decoded or converted from JSON. */
enum { BODY_MAX_BYTES = 16 << 20, BODIES_MAX_BYTES = 64 << 20, DECODED_MAX_BYTES = 64 << 20 };
enum { MAX_CONNECTIONS = 1024, IDLE_SECONDS = 120, RETRY_SECONDS = 5, REPLY_MAX_BYTES = 16 << 10 };
enum { STATUS_PREFIX = sizeof("404: ") - 1 };
/* Metrics compress to a tenth or twentieth; the allowance is used up by one body of the largest size. */
enum { USUAL_RATIO = 20, FREE_BYTES = 1 << 20, ALLOWANCE_BYTES = DECODED_MAX_BYTES, REFILL_PER_MS = 8 << 10 };

enum encoding { PROTOBUF, JSON };

struct otlp {
    struct otlp_options o;
    struct ingest *ingest;
    struct access *access;
    struct httpd *httpd;
    struct httpd_route route;
    int64_t allowance; /* bytes */
    mono_ms refilled_at;
    atomic_uint_fast64_t points[OTLP_RESULTS];
    atomic_int_fast64_t last_ms;
};

/* ---- Bodies of responses, in the encoding of the request ---- */

static const char *media_type(enum encoding e)
{
    return e == JSON ? "application/json" : "application/x-protobuf";
}

/* The encoding that a Content-Type names, parameters ignored; false, and JSON, if it is none of OTLP's. */
static bool encoding_of(const char *content_type, enum encoding *ret)
{
    struct str type = str_trim((struct str){content_type, strcspn(content_type, ";")});

    *ret = str_eq_nocase(type, str_of(media_type(PROTOBUF))) ? PROTOBUF : JSON;
    return str_eq_nocase(type, str_of(media_type(*ret)));
}

static int put_wire_bytes(struct buf *into, unsigned field, struct str bytes)
{
    char head[2 * VARINT_MAX], *end = put_varint(put_varint(head, field << 3 | WIRE_BYTES), bytes.n);

    return buf_put(into, head, (size_t)(end - head)) ?: buf_put_str(into, bytes);
}

/* A message of a number and a text, as both responses have it. */
static int put_wire_pair(struct buf *into, unsigned number, uint64_t v, unsigned field, struct str text)
{
    char head[2 * VARINT_MAX], *end = put_varint(put_varint(head, number << 3 | WIRE_VARINT), v);

    return buf_put(into, head, (size_t)(end - head)) ?: put_wire_bytes(into, field, text);
}

/* {"code":3,"message":"..."}: members as JSON writes them. */
static int put_json_pair(struct buf *into, const char *number, const char *field, struct str text)
{
    return buf_printf(into, "{%s,\"%s\":", number, field) ?: buf_put_json(into, text) ?: buf_putc(into, '}');
}

/* A google.rpc.Code. */
static unsigned rpc_code(unsigned http_status)
{
    enum { INVALID_ARGUMENT = 3, INTERNAL = 13 };
    static const struct {
        unsigned http, rpc;
    } codes[] = {
        {401, 16 /* UNAUTHENTICATED */}, {403, 7 /* PERMISSION_DENIED */},  {404, 5 /* NOT_FOUND */},
        {405, 12 /* UNIMPLEMENTED */},   {413, 8 /* RESOURCE_EXHAUSTED */}, {429, 8 /* RESOURCE_EXHAUSTED */},
        {503, 14 /* UNAVAILABLE */},
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (codes[i].http == http_status)
            return codes[i].rpc;
    return http_status < 500 ? INVALID_ARGUMENT : INTERNAL;
}

/* A google.rpc.Status. */
static int put_status(struct buf *into, enum encoding e, unsigned http_status, struct str message)
{
    char code[32];

    if (e == PROTOBUF)
        return put_wire_pair(into, 1, rpc_code(http_status), 2, message);
    (void)snprintf(code, sizeof(code), "\"code\":%u", rpc_code(http_status));
    return put_json_pair(into, code, "message", message);
}

/* "3 of 10 data points rejected: out_of_order 2, overlap 1; the first one is of http.requests" */
static int put_summary(const struct ingest_outcome *o, uint64_t rejected, struct buf *into)
{
    int r = buf_printf(into, "%" PRIu64 " of %" PRIu64 " data points rejected", rejected,
                       rejected + o->results[STORE_OK]);
    const char *between = ": ";

    for (unsigned i = STORE_OK + 1; i < OTLP_RESULTS; i++)
        if (o->results[i]) {
            r = r ?: buf_printf(into, "%s%s %" PRIu64, between, otlp_result_word(i), o->results[i]);
            between = ", ";
        }
    return r ?: buf_printf(into, "; the first one is of the metric %s", o->first);
}

/* An ExportMetricsServiceResponse, with partial_success if points were rejected. */
static int put_response(struct buf *into, enum encoding e, const struct ingest_outcome *o)
{
    BUF_AUTO(summary, into->max);
    BUF_AUTO(partial, into->max);
    uint64_t rejected = 0;
    char number[64];
    int r;

    for (unsigned i = STORE_OK + 1; i < OTLP_RESULTS; i++)
        rejected += o->results[i];
    if (rejected == 0)
        return e == JSON ? buf_puts(into, "{}") : 0;
    r = put_summary(o, rejected, &summary);
    if (e == PROTOBUF) {
        r = r ?: put_wire_pair(&partial, 1, rejected, 2, buf_str(&summary));
        return r ?: put_wire_bytes(into, 1, buf_str(&partial));
    }
    (void)snprintf(number, sizeof(number), "\"rejectedDataPoints\":\"%" PRIu64 "\"", rejected);
    r = r ?: buf_puts(into, "{\"partialSuccess\":");
    r = r ?: put_json_pair(into, number, "errorMessage", buf_str(&summary));
    return r ?: buf_putc(into, '}');
}

/* ---- Requests. Server's thread ---- */

static void otlp_reply(struct httpd_reply *reply, unsigned status, enum encoding e, const struct buf *body)
{
    httpd_reply_copy(reply, buf_str(body));
    reply->status = status;
    reply->content_type = media_type(e);
    reply->retry_after = status == 503 ? RETRY_SECONDS : 0;
}

static void otlp_refuse(struct httpd_reply *reply, enum encoding e, unsigned status, const char *what,
                        const char *why)
{
    BUF_AUTO(body, REPLY_MAX_BYTES);
    char text[DECODE_WHY_BYTES + 64];

    (void)snprintf(text, sizeof(text), "%s%s", what, why);
    (void)put_status(&body, e, status, str_of(text));
    otlp_reply(reply, status, e, &body);
}

/* Of an error of the server itself: "404: not found\n". */
static void otlp_error_body(const struct httpd_request *rq, struct httpd_reply *reply, struct str text)
{
    BUF_AUTO(body, REPLY_MAX_BYTES);
    enum encoding e;

    (void)encoding_of(rq->content_type, &e);
    if (text.n > STATUS_PREFIX)
        text = (struct str){text.p + STATUS_PREFIX, text.n - STATUS_PREFIX};
    (void)put_status(&body, e, reply->status, str_trim(text));
    httpd_reply_copy(reply, buf_str(&body));
    reply->content_type = media_type(e);
}

/* -EFBIG, or malformed. */
static void otlp_refuse_errno(struct httpd_reply *reply, enum encoding e, int r, const char *what,
                              const char *why)
{
    char limit[64];

    (void)snprintf(limit, sizeof(limit), "exceeds the limit of %d bytes", DECODED_MAX_BYTES);
    if (r == -EFBIG)
        otlp_refuse(reply, e, 413, "decoded request ", *why ? why : limit);
    else
        otlp_refuse(reply, e, 400, what, why);
}

struct inflating {
    struct buf *into;
    struct otlp *otlp;
    size_t free_bytes;
};

static int inflating_put(void *arg, struct str out)
{
    struct inflating *x = arg;

    if (x->into->n + out.n > x->free_bytes)
        x->otlp->allowance -= (int64_t)out.n;
    return x->otlp->allowance < 0 ? -EBUSY : buf_put_str(x->into, out);
}

static void otlp_refill(struct otlp *x)
{
    mono_ms now = clock_system.mono(&clock_system);
    int64_t more = mono_diff(x->refilled_at, now) * REFILL_PER_MS;

    x->refilled_at = now;
    x->allowance = x->allowance + more < ALLOWANCE_BYTES ? x->allowance + more : ALLOWANCE_BYTES;
}

/* Decodes the body where it is encoded: *ret is either the request's own or in `into`. */
static bool otlp_decode(struct otlp *x, const struct httpd_request *rq, struct httpd_reply *reply,
                        enum encoding e, struct buf *into, struct str *ret)
{
    struct inflating out = {into, x, FREE_BYTES + USUAL_RATIO * rq->body.n};
    struct str coding = str_trim(str_of(rq->content_encoding));
    CLEANUP(cleanup_inflate_free) struct inflate *d = NULL;
    int r;

    *ret = rq->body;
    if (coding.n == 0 || str_eq_nocase(coding, STR("identity")))
        return true;
    if (!str_eq_nocase(coding, STR("gzip")) && !str_eq_nocase(coding, STR("deflate"))) {
        otlp_refuse(reply, e, 415, "unsupported Content-Encoding; supported: gzip, deflate", "");
        return false;
    }
    otlp_refill(x);
    d = inflate_new();
    r = inflate_put(d, rq->body, inflating_put, &out) ?: inflate_end(d);
    if (r == -EBUSY)
        otlp_refuse(reply, e, 503, "busy with requests that are compressed too much; send smaller batches",
                    "");
    else if (r < 0)
        otlp_refuse_errno(reply, e, r, "body has Content-Encoding gzip, but ",
                          r == -EBADMSG ? inflate_error(d) : "");
    *ret = buf_str(into);
    return r == 0;
}

static bool otlp_read(struct str body, enum encoding e, struct httpd_reply *reply, struct buf *converted,
                      struct str *ret)
{
    char why[DECODE_WHY_BYTES] = "";
    int r = e == JSON ? decode_json(body, converted, why) : 0;

    *ret = e == JSON ? buf_str(converted) : body;
    r = r ?: decode_check(*ret, why);
    if (r < 0)
        otlp_refuse_errno(reply, e, r, e == JSON ? "invalid JSON: " : "invalid protobuf: ", why);
    return r == 0;
}

static void otlp_receive(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(decoded, DECODED_MAX_BYTES);
    BUF_AUTO(converted, DECODED_MAX_BYTES);
    BUF_AUTO(body, REPLY_MAX_BYTES);
    struct ingest_outcome outcome;
    struct str request, plain;
    struct otlp *x = arg;
    enum encoding e;

    if (!encoding_of(rq->content_type, &e)) {
        otlp_refuse(reply, e, 415,
                    "unsupported Content-Type; supported: application/x-protobuf, application/json", "");
        return;
    }
    if (!otlp_decode(x, rq, reply, e, &decoded, &plain) || !otlp_read(plain, e, reply, &converted, &request))
        return;
    ingest_request(x->ingest, request, &outcome);
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (outcome.results[i])
            atomic_fetch_add(&x->points[i], outcome.results[i]);
    atomic_store(&x->last_ms, clock_system.wall(&clock_system).ms);
    (void)put_response(&body, e, &outcome);
    otlp_reply(reply, 200, e, &body);
}

/* ---- The server. Loop's thread ---- */

static int otlp_listen(struct otlp *x, char **ret_why)
{
    const struct access_options access = {
        .loop = x->o.loop, .metrics = x->o.metrics, .file = x->o.config_file};
    const struct httpd_options server = {.listen = &x->o.listen,
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

    return r ?: access_serve(x->access, &x->httpd, server, ret_why);
}

int otlp_start(struct otlp **ret, const struct otlp_options *o, char **ret_why)
{
    struct otlp *x = xcalloc(1, sizeof(*x));
    int r;

    x->ingest = ingest_new(o->store, &clock_system, &o->promotion);
    x->o = *o;
    x->allowance = ALLOWANCE_BYTES;
    x->refilled_at = clock_system.mono(&clock_system);
    x->route = (struct httpd_route){.method = "POST",
                                    .path = "/v1/metrics",
                                    .fn = otlp_receive,
                                    .arg = x,
                                    .direct = true,
                                    .max_body = BODY_MAX_BYTES};
    r = otlp_listen(x, ret_why);
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
    store_stats(x->o.store, &ret->store);
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        ret->points[i] = atomic_load(&x->points[i]);
}

void otlp_render(struct otlp *x)
{
    struct metrics *m = x->o.metrics;
    struct otlp_status s;
    double all = 0;

    otlp_status(x, &s);
    for (unsigned i = 0; i < OTLP_RESULTS; i++) {
        all += (double)s.points[i];
        if (i != STORE_OK)
            metric_set(m, METRIC_OTLP_REJECTED, LV(otlp_result_word(i)), (double)s.points[i]);
    }
    metric_set(m, METRIC_OTLP_POINTS, LV_NONE, all);
    metric_set(m, METRIC_OTLP_SERIES, LV_NONE, (double)s.store.series);
    metric_set(m, METRIC_OTLP_SERIES_LIMIT, LV_NONE, (double)s.store.max_series);
    metric_set(m, METRIC_OTLP_MEMORY, LV_NONE, (double)s.store.bytes);
    metric_set(m, METRIC_OTLP_MEMORY_LIMIT, LV_NONE, (double)s.store.max_bytes);
    metric_set(m, METRIC_OTLP_SAMPLES, LV_NONE, (double)s.store.samples);
    metric_set(m, METRIC_OTLP_RANGE, LV_NONE, (double)s.store.age_ms / 1000);
    metric_set(m, METRIC_OTLP_EVICTED, LV_NONE, (double)s.store.samples_evicted);
}
