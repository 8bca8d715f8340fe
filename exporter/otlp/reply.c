#include "exporter/otlp/reply.h"

#include "exporter/base/json.h"
#include "exporter/base/varint.h"
#include "exporter/otlp/wire.h"
#include "exporter/tsdb/tsdb.h"

#include <stdio.h>

enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_REJECTED = 1,
    PARTIAL_MESSAGE = 2,
    STATUS_CODE = 1,
    STATUS_MESSAGE = 2
};

const char *otlp_media_type(enum otlp_encoding e)
{
    return e == OTLP_JSON ? "application/json" : "application/x-protobuf";
}

bool otlp_encoding_of(const char *content_type, enum otlp_encoding *ret)
{
    struct str type = str_trim((struct str){content_type, strcspn(content_type, ";")});

    *ret = str_eq_nocase(type, STR("application/x-protobuf")) ? OTLP_PROTOBUF : OTLP_JSON;
    return *ret == OTLP_PROTOBUF || str_eq_nocase(type, STR("application/json"));
}

static int put_wire_number(struct buf *into, unsigned number, uint64_t v)
{
    char text[2 * VARINT_MAX];
    char *end = put_varint(put_varint(text, number << 3 | WIRE_VARINT), v);

    return v ? buf_put(into, text, (size_t)(end - text)) : 0;
}

static int put_wire_bytes(struct buf *into, unsigned number, struct str s)
{
    char text[2 * VARINT_MAX];
    char *end = put_varint(put_varint(text, number << 3 | WIRE_BYTES), s.n);
    int r = buf_put(into, text, (size_t)(end - text));

    return r ?: buf_put_str(into, s);
}

/* "3 of 10 data points rejected: out_of_order 2, overlap 1; the first one is of http.requests" */
static int put_summary(const struct ingest_outcome *o, uint64_t rejected, struct buf *into)
{
    uint64_t all = rejected + o->results[TSDB_OK];
    int r = buf_printf(into, "%llu of %llu data points rejected", (unsigned long long)rejected,
                       (unsigned long long)all);
    const char *between = ": ";

    for (unsigned i = 0; i < OTLP_RESULTS && r == 0; i++)
        if (i != TSDB_OK && o->results[i]) {
            r = buf_printf(into, "%s%s %llu", between, otlp_result_word(i),
                           (unsigned long long)o->results[i]);
            between = ", ";
        }
    return r ?: buf_printf(into, "; the first one is of the metric %s", o->first);
}

static int put_partial(enum otlp_encoding e, uint64_t rejected, struct str summary, struct buf *into)
{
    BUF_AUTO(partial, into->max);
    int r;

    if (e == OTLP_JSON) {
        r = buf_printf(into, "{\"partialSuccess\":{\"rejectedDataPoints\":\"%llu\",\"errorMessage\":",
                       (unsigned long long)rejected);
        r = r ?: buf_put_json(into, summary);
        return r ?: buf_puts(into, "}}");
    }
    r = put_wire_number(&partial, PARTIAL_REJECTED, rejected);
    r = r ?: put_wire_bytes(&partial, PARTIAL_MESSAGE, summary);
    return r ?: put_wire_bytes(into, RESPONSE_PARTIAL_SUCCESS, buf_str(&partial));
}

int otlp_put_response(enum otlp_encoding e, const struct ingest_outcome *o, struct buf *into)
{
    BUF_AUTO(summary, into->max);
    uint64_t rejected = 0;
    int r;

    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        rejected += i != TSDB_OK ? o->results[i] : 0;
    if (rejected == 0)
        return e == OTLP_JSON ? buf_puts(into, "{}") : 0;
    r = put_summary(o, rejected, &summary);
    return r ?: put_partial(e, rejected, buf_str(&summary), into);
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

int otlp_put_status(enum otlp_encoding e, unsigned http_status, struct str message, struct buf *into)
{
    unsigned code = rpc_code(http_status);
    int r;

    if (e == OTLP_PROTOBUF) {
        r = put_wire_number(into, STATUS_CODE, code);
        return r ?: put_wire_bytes(into, STATUS_MESSAGE, message);
    }
    r = buf_printf(into, "{\"code\":%u,\"message\":", code);
    r = r ?: buf_put_json(into, message);
    return r ?: buf_putc(into, '}');
}
