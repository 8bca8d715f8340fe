/* Requests are handled on the server's thread, one at a time, which owns the ingest. The counters are shared
 * with the loop.
 *
 * Connections take turns, so what a request may cost is bounded. Its cost is the size of an ordinary one that
 * takes as long: its bytes when decoded, or more if it has more fields, samples, or labels of new series than
 * metrics of that size ever have. It may cost so many times what was sent as metrics compress; what is beyond
 * draws on an allowance that all requests share. When that is used up they get 503, at the latest when they
 * have cost it. */
#include "exporter/otlp/receiver.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/inflate.h"
#include "exporter/base/log.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/otlp/decode.h"
#include "exporter/web/access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* A body as received, and decoded or converted from JSON. */
enum { BODY_MAX_BYTES = 16 << 20, BODIES_MAX_BYTES = 64 << 20, DECODED_MAX_BYTES = 64 << 20 };
enum {
    MAX_CONNECTIONS = 1024,
    IDLE_SECONDS = 120,
    RETRY_SECONDS = 5,
    WARN_MS = 60 * 1000,
    REPLY_MAX_BYTES = 16 << 10
};
enum { STATUS_PREFIX = sizeof("404: ") - 1 };
/* Metrics compress to a tenth or twentieth; the allowance is used up by one body of the largest size. */
enum { USUAL_RATIO = 20, FREE_BYTES = 1 << 20, ALLOWANCE_BYTES = DECODED_MAX_BYTES, REFILL_PER_MS = 8 << 10 };
enum { FIELD_BYTES = 8 /* of an ordinary request, at least */ };

enum encoding { PROTOBUF, JSON };

static const char *const media_types[] = {[PROTOBUF] = "application/x-protobuf", [JSON] = "application/json"};

struct otlp {
    struct otlp_options o;
    struct ingest *ingest;
    struct access *access;
    struct httpd *httpd;
    struct httpd_route route;
    int64_t allowance; /* bytes */
    mono_ms refilled_at;
    mono_ms warn_at; /* of requests in vain; not before */
    atomic_uint_fast64_t points[OTLP_RESULTS];
    atomic_uint_fast64_t without_points;
    atomic_int_fast64_t last_ms;
};

/* A body on its way into the store. */
struct otlp_reading {
    struct otlp *otlp;
    enum encoding encoding;
    struct str body;
    uint64_t free_cost;             /* what is beyond draws on the allowance */
    uint64_t cost;                  /* so far */
    char skipped[DECODE_WHY_BYTES]; /* the first member in JSON that OTLP does not have; "": none */
    char why[DECODE_WHY_BYTES + 64];
};

/* Whether the request holds nothing, and its JSON has members that are not those of OTLP. */
static bool reading_has_no_points(const struct otlp_reading *x, const struct ingest_outcome *o)
{
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (o->results[i])
            return false;
    return x->skipped[0] != '\0';
}

/* ---- Responses, in the encoding of the request. They are written in JSON ---- */

/* The encoding that a Content-Type names, parameters ignored; false, and JSON, if it is none of OTLP's. */
static bool encoding_of(const char *content_type, enum encoding *ret)
{
    struct str type = str_trim((struct str){content_type, strcspn(content_type, ";")});

    *ret = str_eq_nocase(type, str_of(media_types[PROTOBUF])) ? PROTOBUF : JSON;
    return str_eq_nocase(type, str_of(media_types[*ret]));
}

static void otlp_reply(struct httpd_reply *reply, enum encoding e, const ProtobufCMessageDescriptor *m,
                       struct str json)
{
    BUF_AUTO(packed, REPLY_MAX_BYTES);
    char why[DECODE_WHY_BYTES];

    if (e == PROTOBUF && decode_json(json, m, &packed, why) == 0) {
        httpd_reply_copy(reply, buf_str(&packed));
        reply->content_type = media_types[PROTOBUF];
        return;
    }
    httpd_reply_copy(reply, json);
    reply->content_type = media_types[JSON];
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
static void reply_status(struct httpd_reply *reply, enum encoding e, unsigned status, struct str message)
{
    BUF_AUTO(json, REPLY_MAX_BYTES);

    buf_printf(&json, "{\"code\":%u,\"message\":", rpc_code(status));
    buf_put_json(&json, message);
    buf_putc(&json, '}');
    otlp_reply(reply, e, &otlp__status__descriptor, buf_str(&json));
    reply->status = status;
}

/* Of an error of the server itself: "404: not found\n". */
static void otlp_error_body(const struct httpd_request *rq, struct httpd_reply *reply, struct str text)
{
    enum encoding e;

    (void)encoding_of(rq->content_type, &e);
    if (text.n > STATUS_PREFIX)
        text = (struct str){text.p + STATUS_PREFIX, text.n - STATUS_PREFIX};
    reply_status(reply, e, reply->status, str_trim(text));
}

/* "out_of_order 2, overlap 1" */
static void put_reasons(struct buf *to, const struct ingest_outcome *o)
{
    bool is_first = true;

    for (unsigned i = STORE_OK + 1; i < OTLP_RESULTS; i++) {
        if (o->results[i] == 0)
            continue;
        if (!is_first)
            buf_puts(to, ", ");
        buf_printf(to, "%s %" PRIu64, otlp_result_word(i), o->results[i]);
        is_first = false;
    }
}

/* What the sender should know; empty if all is well. "3 of 10 data points rejected: out_of_order 2, overlap
 * 1; the first one is of the metric http.requests" */
static void put_remark(struct buf *to, const struct otlp_reading *x, const struct ingest_outcome *o,
                       uint64_t rejected)
{
    if (rejected) {
        buf_printf(to, "%" PRIu64 " of %" PRIu64 " data points rejected: ", rejected,
                   rejected + o->results[STORE_OK]);
        put_reasons(to, o);
        buf_puts(to, "; the first one is of the metric ");
        buf_puts(to, o->first);
    } else if (reading_has_no_points(x, o)) {
        buf_puts(to, "no data points found: ");
        buf_puts(to, x->skipped);
    }
}

/* An ExportMetricsServiceResponse, with partial_success if there is a remark. */
static void reply_outcome(struct httpd_reply *reply, const struct otlp_reading *x,
                          const struct ingest_outcome *o)
{
    BUF_AUTO(remark, REPLY_MAX_BYTES);
    BUF_AUTO(json, REPLY_MAX_BYTES);
    uint64_t rejected = 0;
    bool has_remark;

    for (unsigned i = STORE_OK + 1; i < OTLP_RESULTS; i++)
        rejected += o->results[i];
    put_remark(&remark, x, o, rejected);
    buf_printf(&json,
               "{\"partialSuccess\":{\"rejectedDataPoints\":\"%" PRIu64 "\",\"errorMessage\":", rejected);
    buf_put_json(&json, buf_str(&remark));
    buf_puts(&json, "}}");
    has_remark = remark.n > 0 && buf_failed(&json) == 0;
    otlp_reply(reply, x->encoding, &otlp__response__descriptor, has_remark ? buf_str(&json) : STR("{}"));
}

/* ---- Requests. Server's thread ---- */

static unsigned PRINTF_LIKE(3, 4) refuse(struct otlp_reading *x, unsigned status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(x->why, sizeof(x->why), fmt, ap);
    va_end(ap);
    return status;
}

static unsigned refuse_size(struct otlp_reading *x)
{
    return refuse(x, 413, "decoded request exceeds the limit of %d bytes", DECODED_MAX_BYTES);
}

static void otlp_refill(struct otlp *x)
{
    mono_ms now = clock_system.mono(&clock_system);
    int64_t more = mono_diff(x->refilled_at, now) * REFILL_PER_MS;

    x->refilled_at = now;
    x->allowance = x->allowance + more < ALLOWANCE_BYTES ? x->allowance + more : ALLOWANCE_BYTES;
}

/* What the request may cost. */
static uint64_t reading_max_cost(const struct otlp_reading *x)
{
    return x->free_cost + (uint64_t)x->otlp->allowance;
}

/* A part of the cost; the largest one is what counts. */
static void reading_charge(struct otlp_reading *x, uint64_t cost)
{
    x->cost = size_max(x->cost, cost);
}

/* Takes from the allowance what was beyond the request's own. */
static void reading_pay(const struct otlp_reading *x)
{
    int64_t beyond = x->cost > x->free_cost ? (int64_t)(x->cost - x->free_cost) : 0;

    x->otlp->allowance = x->otlp->allowance > beyond ? x->otlp->allowance - beyond : 0;
}

static unsigned refuse_cost(struct otlp_reading *x)
{
    return refuse(x, 503, "busy with requests that take too long for their size; send smaller batches");
}

/* Decodes the body into `inflated` if it is compressed. The status of the response. What a damaged body
 * expanded to is known by the room that it took. */
static unsigned read_coding(struct otlp_reading *x, struct str coding, struct buf *inflated)
{
    CLEANUP(cleanup_free) char *why = NULL;
    int r;

    if (coding.n == 0 || str_eq_nocase(coding, STR("identity")))
        return 200;
    if (!str_eq_nocase(coding, STR("gzip")) && !str_eq_nocase(coding, STR("deflate")))
        return refuse(x, 415, "unsupported Content-Encoding; supported: gzip, deflate");
    inflated->max = size_min(DECODED_MAX_BYTES, reading_max_cost(x));
    r = inflate_body(x->body, inflated, &why);
    if (r == -EFBIG)
        reading_charge(x, inflated->max);
    else
        reading_charge(x, r < 0 ? inflated->cap : inflated->n);
    x->body = buf_str(inflated);
    if (r == -EFBIG && inflated->max < DECODED_MAX_BYTES)
        return refuse_cost(x);
    if (r == -EFBIG)
        return refuse_size(x);
    return r == 0 ? 200
                  : refuse(x, 400, "body has Content-Encoding %.*s, but %s", STR_ARG(coding), cstr(why));
}

/* Checks the body, which is in protobuf then: in `converted` if it was not. The status of the response. */
static unsigned read_body(struct otlp_reading *x, struct buf *converted)
{
    char why[DECODE_WHY_BYTES] = "";
    size_t fields = 0;
    int r = 0;

    if (x->encoding == JSON) {
        r = decode_json_request(x->body, converted, x->skipped, why);
        x->body = buf_str(converted);
    }
    if (r == 0)
        r = decode_check(x->body, &fields, why);
    reading_charge(x, size_max(x->body.n, (uint64_t)fields * FIELD_BYTES));
    if (r == -EFBIG)
        return *why ? refuse(x, 413, "decoded request %s", why) : refuse_size(x);
    if (r < 0)
        return refuse(x, 400, "invalid %s: %s", x->encoding == JSON ? "JSON" : "protobuf", why);
    return 200;
}

/* Says once a minute that requests hold nothing that is read. */
static void count_without_points(const struct otlp_reading *x)
{
    struct otlp *o = x->otlp;
    mono_ms now = clock_system.mono(&clock_system);

    atomic_fetch_add(&o->without_points, 1);
    if (mono_before(now, o->warn_at))
        return;
    o->warn_at = mono_add(now, WARN_MS);
    log_warn("OTLP request without data points", L_STR("reason", x->skipped));
}

/* Stores what the body holds. The status of the response. */
static unsigned read_points(struct otlp_reading *x, struct ingest_outcome *ret)
{
    struct otlp *o = x->otlp;

    if (x->cost > reading_max_cost(x))
        return refuse_cost(x);
    ingest_request(o->ingest, x->body, reading_max_cost(x), ret);
    reading_charge(x, ret->cost);
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        atomic_fetch_add(&o->points[i], ret->results[i]);
    atomic_store(&o->last_ms, clock_system.wall(&clock_system).ms);
    if (reading_has_no_points(x, ret))
        count_without_points(x);
    return ret->is_cut ? refuse_cost(x) : 200;
}

static void otlp_receive(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    struct otlp *o = arg;
    struct otlp_reading x = {
        .otlp = o, .body = rq->body, .free_cost = FREE_BYTES + (uint64_t)USUAL_RATIO * rq->body.n};
    BUF_AUTO(inflated, DECODED_MAX_BYTES);
    BUF_AUTO(converted, DECODED_MAX_BYTES);
    struct ingest_outcome outcome;
    unsigned status = 200;

    otlp_refill(o);
    if (!encoding_of(rq->content_type, &x.encoding))
        status =
            refuse(&x, 415, "unsupported Content-Type; supported: application/x-protobuf, application/json");
    if (status == 200)
        status = read_coding(&x, str_trim(str_of(rq->content_encoding)), &inflated);
    if (status == 200)
        status = read_body(&x, &converted);
    if (status == 200)
        status = read_points(&x, &outcome);
    reading_pay(&x);
    if (status == 200) {
        reply_outcome(reply, &x, &outcome);
        return;
    }
    reply_status(reply, x.encoding, status, str_of(x.why));
    reply->retry_after = status == 503 ? RETRY_SECONDS : 0;
}

/* ---- The server. Loop's thread ---- */

int otlp_start(struct otlp **ret, const struct otlp_options *o, char **ret_why)
{
    struct otlp *x = xcalloc(1, sizeof(*x));
    const struct access_options access = {.loop = o->loop, .metrics = o->metrics, .file = o->config_file};
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
                                         .served_arg = o->page};
    int r;

    *x = (struct otlp){.o = *o,
                       .ingest = ingest_new(o->store, &clock_system, &o->promotion),
                       .allowance = ALLOWANCE_BYTES,
                       .refilled_at = clock_system.mono(&clock_system),
                       .route = {.method = "POST",
                                 .path = "/v1/metrics",
                                 .fn = otlp_receive,
                                 .arg = x,
                                 .direct = true,
                                 .max_body = BODY_MAX_BYTES}};
    r = access_new(&x->access, &access, ret_why) ?: access_serve(x->access, &x->httpd, server, ret_why);
    if (r < 0)
        (void)otlp_stop(x, 0);
    else
        *ret = x;
    return r;
}

struct otlp *otlp_stop(struct otlp *x, int grace_ms)
{
    if (!x)
        return NULL;
    x->access = access_stop(x->access, grace_ms);
    x->ingest = ingest_free(x->ingest);
    free(x);
    return NULL;
}

void otlp_status(struct otlp *x, struct otlp_status *ret)
{
    *ret = (struct otlp_status){.listen = x->o.listen,
                                .last_ms = atomic_load(&x->last_ms),
                                .without_points = atomic_load(&x->without_points)};
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
    metric_set(m, METRIC_OTLP_IN_VAIN, LV_NONE, (double)s.without_points);
    metric_set(m, METRIC_OTLP_SERIES, LV_NONE, (double)s.store.series);
    metric_set(m, METRIC_OTLP_SERIES_LIMIT, LV_NONE, (double)s.store.max_series);
    metric_set(m, METRIC_OTLP_MEMORY, LV_NONE, (double)s.store.bytes);
    metric_set(m, METRIC_OTLP_MEMORY_LIMIT, LV_NONE, (double)s.store.max_bytes);
    metric_set(m, METRIC_OTLP_SAMPLES, LV_NONE, (double)s.store.samples);
    metric_set(m, METRIC_OTLP_RANGE, LV_NONE, (double)s.store.age_ms / 1000);
    metric_set(m, METRIC_OTLP_EVICTED, LV_NONE, (double)s.store.samples_evicted);
}
