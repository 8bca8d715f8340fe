/* Walks through a request: resources, metrics, points. Fields may come in any order, so each message is
 * read before the messages in it whose meaning depends on it. */
#include "exporter/base/arena.h"
#include "exporter/base/hash.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/ingest_internal.h"
#include "exporter/otlp/wire.h"

#include <errno.h>
#include <stdio.h>

enum { ARENA_CHUNK = 16 << 10, SPARE_SERIES = 1024 };

const char *otlp_result_word(unsigned result)
{
    switch (result) {
    case OTLP_INVALID:
        return "invalid";
    case OTLP_TEMPORALITY:
        return "temporality";
    case OTLP_OVERLAP:
        return "overlap";
    default:
        return tsdb_result_word((enum tsdb_result)result);
    }
}

int ingest_new(struct ingest **ret, const struct ingest_options *o)
{
    struct ingest *in = calloc(1, sizeof(*in));

    if (!in)
        return -ENOMEM;
    in->o = *o;
    in->resource_arena.chunk_bytes = in->point_arena.chunk_bytes = ARENA_CHUNK;
    *ret = in;
    return 0;
}

struct ingest *ingest_free(struct ingest *in)
{
    if (!in)
        return NULL;
    known_done(&in->known);
    arena_done(&in->resource_arena);
    arena_done(&in->point_arena);
    free(in);
    return NULL;
}

/* The name goes into the response, where text is UTF-8. */
static void ingest_set_first(struct ingest_outcome *o, struct str name)
{
    struct str valid = utf8_cut((struct str){name.p, utf8_valid_prefix(name)}, sizeof(o->first) - 1);

    (void)snprintf(o->first, sizeof(o->first), "%.*s", STR_ARG(valid));
}

static void ingest_count(struct ingest *in, unsigned result)
{
    struct ingest_outcome *o = in->outcome;

    o->results[result]++;
    if (result != TSDB_OK && !o->first[0])
        ingest_set_first(o, in->metric.name);
}

/* ---- Points ---- */

typedef unsigned (*read_fn)(struct ingest *in, struct ingest_point *pt);

static const struct {
    unsigned field; /* of the metric */
    bool temporal;
    read_fn read;
} kinds[] = {
    [OTLP_GAUGE] = {METRIC_GAUGE, false, ingest_read_number},
    [OTLP_COUNTER] = {METRIC_SUM, true, ingest_read_number},
    [OTLP_UP_DOWN_COUNTER] = {METRIC_SUM, true, ingest_read_number},
    [OTLP_HISTOGRAM] = {METRIC_HISTOGRAM, true, ingest_read_histogram},
    [OTLP_EXPONENTIAL] = {METRIC_EXPONENTIAL, true, ingest_read_exponential},
    [OTLP_SUMMARY] = {METRIC_SUMMARY, false, ingest_read_summary},
};

static int ingest_point(struct ingest *in, struct str message)
{
    const struct ingest_metric *m = &in->metric;
    struct ingest_point pt = {.message = message, .attributes_hash = 1};
    unsigned result;
    int r = 0;

    in->n_parts = 0;
    result = kinds[m->type].read(in, &pt);
    if (pt.time_ns > in->resource_time_ns)
        in->resource_time_ns = pt.time_ns;
    if (kinds[m->type].temporal && m->temporality != TEMPORALITY_CUMULATIVE &&
        m->temporality != TEMPORALITY_DELTA)
        result = OTLP_TEMPORALITY;
    if (result == TSDB_OK)
        r = ingest_store(in, &pt, &result);
    if (r == 0)
        ingest_count(in, result);
    return r;
}

static int ingest_points(struct ingest *in, struct str data)
{
    struct wire w = wire_of(data);
    struct wire_field f;
    int r = 0;

    while (r == 0 && wire_next(&w, &f))
        if (f.number == DATA_POINTS)
            r = ingest_point(in, f.bytes);
    return r;
}

/* ---- Metrics ---- */

static enum otlp_type type_of(unsigned field, bool monotonic)
{
    switch (field) {
    case METRIC_SUM:
        return monotonic ? OTLP_COUNTER : OTLP_UP_DOWN_COUNTER;
    case METRIC_HISTOGRAM:
        return OTLP_HISTOGRAM;
    case METRIC_EXPONENTIAL:
        return OTLP_EXPONENTIAL;
    case METRIC_SUMMARY:
        return OTLP_SUMMARY;
    default:
        return OTLP_GAUGE;
    }
}

static void ingest_describe(struct ingest *in, unsigned field, struct str data)
{
    struct ingest_metric *m = &in->metric;
    struct wire w = wire_of(data);
    bool monotonic = false;
    struct wire_field f;

    m->temporality = 0;
    while (wire_next(&w, &f))
        if (f.number == DATA_TEMPORALITY)
            m->temporality = f.value;
        else if (f.number == DATA_MONOTONIC)
            monotonic = f.value;
    m->type = type_of(field, monotonic);
    if (!kinds[m->type].temporal)
        m->temporality = 0; /* an unknown field, there */
    m->hash = hash_chain(hash_chain(in->resource_hash, m->name), m->unit);
    m->hash = hash_chain_u64(m->hash, m->type);
}

static int ingest_metric(struct ingest *in, struct str message)
{
    struct wire w = wire_of(message);
    struct str data = {0};
    unsigned field = 0;
    struct wire_field f;

    in->metric.name = in->metric.unit = STR("");
    while (wire_next(&w, &f))
        switch (f.number) {
        case METRIC_NAME:
            in->metric.name = f.bytes;
            break;
        case METRIC_UNIT:
            in->metric.unit = f.bytes;
            break;
        case METRIC_GAUGE:
        case METRIC_SUM:
        case METRIC_HISTOGRAM:
        case METRIC_EXPONENTIAL:
        case METRIC_SUMMARY:
            field = f.number;
            data = f.bytes;
            break;
        default:
            break;
        }
    if (!field)
        return 0;
    ingest_describe(in, field, data);
    return ingest_points(in, data);
}

static int ingest_scope(struct ingest *in, struct str message)
{
    struct wire w = wire_of(message);
    struct wire_field f;
    int r = 0;

    while (r == 0 && wire_next(&w, &f))
        if (f.number == SCOPE_METRICS_METRICS)
            r = ingest_metric(in, f.bytes);
    return r;
}

/* ---- Resources ---- */

static int ingest_resource(struct ingest *in, struct str message)
{
    struct wire w = wire_of(message);
    struct wire_field f;
    int r = 0;

    in->resource_message = STR("");
    while (wire_next(&w, &f))
        if (f.number == RESOURCE_METRICS_RESOURCE)
            in->resource_message = f.bytes;
    in->resource_hash = hash_bytes(in->resource_message);
    in->resource_time_ns = 0;
    in->resource_known = false;
    w = wire_of(message);
    while (r == 0 && wire_next(&w, &f))
        if (f.number == RESOURCE_METRICS_SCOPE_METRICS)
            r = ingest_scope(in, f.bytes);
    r = r ?: ingest_store_target_info(in);
    arena_done(&in->resource_arena);
    return r;
}

int ingest_request(struct ingest *in, struct str request, struct ingest_outcome *ret)
{
    struct wire w = wire_of(request);
    struct tsdb_stats stats;
    struct wire_field f;
    int r = 0;

    tsdb_stats(in->o.tsdb, &stats);
    in->known.max = (size_t)stats.max_series + SPARE_SERIES;
    *ret = (struct ingest_outcome){0};
    in->outcome = ret;
    in->now_ms = in->o.clock->wall(in->o.clock).ms;
    while (r == 0 && wire_next(&w, &f))
        if (f.number == EXPORT_RESOURCE_METRICS)
            r = ingest_resource(in, f.bytes);
    return r;
}
