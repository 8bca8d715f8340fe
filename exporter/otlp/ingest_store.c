/* Stores the samples of a point. The first point of a series builds its labels; each later one finds the
 * series by the hash of the bytes that name it. */
#include "exporter/base/arena.h"
#include "exporter/base/hash.h"
#include "exporter/otlp/ingest_internal.h"

#include <errno.h>

enum { NS_PER_MS = 1000000, WRITER_SILENT_MS = 5 * 60 * 1000 };

/* ---- Series ---- */

static const char *const suffixes[] = {[PART_VALUE] = "",
                                       [PART_COUNT] = "_count",
                                       [PART_SUM] = "_sum",
                                       [PART_BUCKET] = "_bucket",
                                       [PART_QUANTILE] = ""};

/* The text of a bucket's or quantile's label; empty for other parts. */
static int part_label(const struct ingest_part *p, struct buf *text, struct tsdb_label *ret)
{
    int r;

    *ret = (struct tsdb_label){0};
    if (p->kind != PART_BUCKET && p->kind != PART_QUANTILE)
        return 0;
    r = translate_bound(p->bound, text);
    *ret = (struct tsdb_label){p->kind == PART_BUCKET ? STR("le") : STR("quantile"), buf_str(text)};
    return r;
}

static uint64_t hash_labels(const struct labels *l)
{
    uint64_t h = 2;

    for (size_t i = 0; i < l->n; i++)
        h = hash_chain(hash_chain(h, l->list[i].name), l->list[i].value);
    return h | !h;
}

/* Finds or creates the series in the tsdb and remembers it by `hash`. */
static int ingest_enter(struct ingest *in, uint64_t hash, unsigned *ret_result, uint32_t *ret)
{
    uint64_t ref = 0;

    *ret_result = tsdb_ref(in->o.tsdb, in->labels.list, in->labels.n, &ref);
    if (*ret_result == TSDB_NO_MEMORY)
        return -ENOMEM;
    if (*ret_result != TSDB_OK)
        return 0;
    return known_enter(&in->known, hash, hash_labels(&in->labels), ref, ret);
}

static int ingest_know_resource(struct ingest *in)
{
    int r = in->resource_known ? 0
                               : labels_resource_read(&in->resource, in->resource_message, &in->o.promotion,
                                                      &in->resource_arena);
    in->resource_known = r == 0;
    return r;
}

/* -EFBIG and -EILSEQ if there is no such label set. */
static int ingest_build_labels(struct ingest *in, const struct ingest_point *pt, const struct ingest_part *p)
{
    BUF_AUTO(name, TSDB_MAX_LABEL_BYTES);
    BUF_AUTO(text, 1024);
    struct labels_source source = {
        .resource = &in->resource, .message = pt->message, .attributes = pt->attributes};
    int r = ingest_know_resource(in);

    r = r ?: translate_metric_name(in->metric.name, in->metric.unit, in->metric.type, &name);
    if (r == 0 && name.n == 0)
        return -EILSEQ;
    r = r ?: buf_puts(&name, suffixes[p->kind]);
    r = r ?: part_label(p, &text, &source.extra);
    source.name = buf_str(&name);
    return r ?: labels_build(&in->labels, &source, &in->point_arena);
}

static int ingest_create(struct ingest *in, const struct ingest_point *pt, const struct ingest_part *p,
                         uint64_t hash, unsigned *ret_result, uint32_t *ret)
{
    int r = ingest_build_labels(in, pt, p);

    if (r == 0)
        r = ingest_enter(in, hash, ret_result, ret);
    else if (r == -EFBIG || r == -EILSEQ)
        *ret_result = TSDB_BAD_LABELS, r = 0;
    arena_done(&in->point_arena);
    return r;
}

static uint64_t hash_part(const struct ingest *in, const struct ingest_point *pt, const struct ingest_part *p)
{
    uint64_t h = hash_chain_u64(in->metric.hash, pt->attributes_hash), bound;

    if (p->kind != PART_VALUE) {
        memcpy(&bound, &p->bound, sizeof(bound));
        h = hash_chain_u64(h, bound ^ (uint64_t)p->kind << 52);
    }
    return h | !h;
}

/* ---- Writers ---- */

/* A series has one writer. Two cumulative ones look like a counter that is reset at each point, and their
 * deltas like overlapping intervals. The writer that started last is heard, until it has been silent for a
 * while. */
static unsigned check_cumulative(struct known_series *s, const struct ingest_point *pt)
{
    uint64_t silent = (uint64_t)WRITER_SILENT_MS * NS_PER_MS;

    if (pt->start_ns && pt->start_ns < s->start_ns && pt->time_ns < s->last_ns + silent)
        return OTLP_OVERLAP;
    if (pt->start_ns)
        s->start_ns = pt->start_ns;
    return TSDB_OK;
}

static unsigned check_delta(const struct known_series *s, const struct ingest_point *pt)
{
    if (pt->time_ns <= s->last_ns)
        return pt->time_ns == s->last_ns ? OTLP_OVERLAP : TSDB_OUT_OF_ORDER;
    return pt->start_ns && pt->start_ns < s->last_ns ? OTLP_OVERLAP : TSDB_OK;
}

static unsigned check_writer(const struct ingest *in, struct known_series *s, const struct ingest_point *pt)
{
    unsigned result;

    if (in->metric.type == OTLP_GAUGE)
        return TSDB_OK;
    result = in->metric.temporality == TEMPORALITY_DELTA ? check_delta(s, pt) : check_cumulative(s, pt);
    if (result == TSDB_OK && pt->time_ns > s->last_ns)
        s->last_ns = pt->time_ns;
    return result;
}

/* ---- Samples ---- */

static double stale_marker(void)
{
    uint64_t bits = TSDB_STALE_BITS;
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static double ingest_value(const struct ingest *in, struct known_series *s, const struct ingest_point *pt,
                           double value)
{
    if (pt->flags & FLAG_NO_RECORDED_VALUE)
        return stale_marker();
    if (in->metric.temporality != TEMPORALITY_DELTA)
        return value;
    s->total += value;
    return s->total;
}

/* A series that has expired in the tsdb is entered again. */
static int ingest_append_again(struct ingest *in, const struct ingest_point *pt, size_t i,
                               const size_t *part_of)
{
    const struct ingest_part *p = &in->parts[part_of[i]];
    unsigned result;
    uint32_t at;
    int r = ingest_create(in, pt, p, hash_part(in, pt, p), &result, &at);

    if (r < 0)
        return r;
    in->results[i] = (enum tsdb_result)result;
    if (result != TSDB_OK)
        return 0;
    in->samples[i].ref = in->known.series[at].ref;
    (void)tsdb_append(in->o.tsdb, &in->samples[i], 1, &in->results[i]);
    return 0;
}

static int ingest_append(struct ingest *in, const struct ingest_point *pt, size_t n, const size_t *part_of,
                         unsigned *ret)
{
    int r = 0;

    if (tsdb_append(in->o.tsdb, in->samples, n, in->results) == 0) {
        in->outcome->samples += n;
        return 0;
    }
    for (size_t i = 0; i < n && r == 0; i++) {
        if (in->results[i] == TSDB_NO_SERIES)
            r = ingest_append_again(in, pt, i, part_of);
        if (r == 0 && in->results[i] == TSDB_NO_MEMORY)
            r = -ENOMEM;
        in->outcome->samples += in->results[i] == TSDB_OK;
        if (in->results[i] != TSDB_OK && *ret == TSDB_OK)
            *ret = in->results[i];
    }
    return r;
}

int ingest_store(struct ingest *in, const struct ingest_point *pt, unsigned *ret)
{
    int64_t t_ms = (int64_t)(pt->time_ns / NS_PER_MS);
    size_t part_of[INGEST_MAX_PARTS], n = 0;
    int r;

    if (t_ms > in->now_ms + TSDB_MAX_AHEAD_MS) {
        *ret = TSDB_TOO_NEW; /* before the time is remembered as that of the last point */
        return 0;
    }
    for (size_t i = 0; i < in->n_parts; i++) {
        const struct ingest_part *p = &in->parts[i];
        uint64_t hash = hash_part(in, pt, p);
        uint32_t at = known_find(&in->known, hash);
        unsigned result = TSDB_OK;
        r = at == KNOWN_NONE ? ingest_create(in, pt, p, hash, &result, &at) : 0;
        if (r < 0)
            return r;
        if (result == TSDB_OK && i == 0)
            result = check_writer(in, &in->known.series[at], pt);
        if (result != TSDB_OK && *ret == TSDB_OK)
            *ret = result;
        if (result != TSDB_OK && i == 0)
            return 0;
        if (result != TSDB_OK)
            continue;
        part_of[n] = i;
        in->samples[n++] = (struct tsdb_sample){
            .ref = in->known.series[at].ref,
            .t_ms = t_ms,
            .v = ingest_value(in, &in->known.series[at], pt, p->value),
        };
    }
    return n ? ingest_append(in, pt, n, part_of, ret) : 0;
}

int ingest_store_target_info(struct ingest *in)
{
    uint64_t hash = hash_chain(in->resource_hash, STR("target_info"));
    uint32_t at = known_find(&in->known, hash | !hash);
    unsigned result = TSDB_OK;
    int r = 0;

    if (in->resource_time_ns == 0)
        return 0;
    for (unsigned attempt = 0; attempt < 2 && r == 0; attempt++) {
        if (at == KNOWN_NONE) {
            r = ingest_know_resource(in) ?: labels_target_info(&in->labels, &in->resource, &in->point_arena);
            if (r == 0 && in->labels.n)
                r = ingest_enter(in, hash | !hash, &result, &at);
            arena_done(&in->point_arena);
        }
        if (r < 0 || at == KNOWN_NONE)
            return r == -EFBIG || r == -EILSEQ ? 0 : r;
        in->samples[0] = (struct tsdb_sample){
            .ref = in->known.series[at].ref, .t_ms = (int64_t)(in->resource_time_ns / NS_PER_MS), .v = 1};
        if (tsdb_append(in->o.tsdb, in->samples, 1, in->results) == 0)
            in->outcome->samples++;
        if (in->results[0] != TSDB_NO_SERIES)
            return 0;
        at = KNOWN_NONE;
    }
    return r;
}
