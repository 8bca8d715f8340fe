/* Owns what is read of a request, with its texts, and what was refused. Called by the receiver, on its
 * thread.
 *
 * Walks through a request: resources, metrics, points. A point finds its series by the hash of the bytes that
 * name them, without an allocation. Only for one that is new, labels are made: what belongs to the resource,
 * the metric or the point once for each of these, and never while the store's lock is held. */
#include "exporter/otlp/ingest.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/labels.h"
#include "exporter/otlp/protobuf.h"
#include "exporter/otlp/series.h"
#include "exporter/otlp/translate.h"

#include <math.h>
#include <stdio.h>

enum {
    MAX_BUCKETS = 396,             /* or quantiles, of a point */
    MAX_SAMPLES = MAX_BUCKETS + 2, /* and count and sum; the last bucket is not among the bounds */
    NS_PER_MS = 1000000,
    WRITER_SILENT_MS = 5 * 60 * 1000,
    PROMOTED_BYTES = 1 << 10,
    REFUSALS = 1 << 16,
    /* What a request costs is the size of an ordinary one: of this many bytes for each sample, and a byte for
     * so many bytes of labels of new series. */
    SAMPLE_BYTES = 16,
    LABELS_PER_BYTE = 32,
};

/* Field numbers. */
enum { EXPORT_RESOURCE_METRICS = 1 };
enum { RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPE_METRICS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_METRICS_METRICS = 2 };
enum { METRIC_NAME = 1, METRIC_UNIT = 3 };
enum { METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9, METRIC_EXPONENTIAL = 10, METRIC_SUMMARY = 11 };
enum { DATA_POINTS = 1, DATA_TEMPORALITY = 2, DATA_MONOTONIC = 3 };
enum { POINT_START = 2, POINT_TIME = 3, POINT_COUNT = 4, POINT_SUM = 5 };
enum { NUMBER_DOUBLE = 4, NUMBER_INT = 6, NUMBER_ATTRIBUTES = 7, NUMBER_FLAGS = 8 };
enum { HISTOGRAM_COUNTS = 6, HISTOGRAM_BOUNDS = 7, HISTOGRAM_ATTRIBUTES = 9, HISTOGRAM_FLAGS = 10 };
enum { SUMMARY_QUANTILES = 6, SUMMARY_ATTRIBUTES = 7, SUMMARY_FLAGS = 8 };
enum { QUANTILE_QUANTILE = 1, QUANTILE_VALUE = 2 };
enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };
enum { FLAG_NO_RECORDED_VALUE = 1 };

/* The last field of each number, as protobuf wants it. Those without one stay as they are: zero. */
enum { WIRE_NUMBERS = 12 /* the largest number that is read this way, and 1 */ };

static void wire_read(struct str message, struct wire_field last[WIRE_NUMBERS])
{
    struct wire_field f;

    while (wire_next(&message, &f))
        if (f.number < WIRE_NUMBERS)
            last[f.number] = f;
}

/* The 8 bytes each of a repeated field. */
struct numbers {
    uint64_t *list; /* NULL without the field */
    size_t n;
};

/* A sample of a point; `bound` is that of a bucket or quantile. */
enum part { PART_VALUE, PART_COUNT, PART_SUM, PART_BUCKET, PART_QUANTILE };

struct part_sample {
    enum part part;
    double bound, value;
    uint64_t hash;         /* of the series */
    struct series *series; /* while the point is stored; held */
};

/* Made anew for each point, from zero: a member that a kind of metric does not set is empty. */
struct point {
    struct str message;
    struct wire_field last[WIRE_NUMBERS];
    uint64_t hash; /* of the metric and the attributes */
    uint64_t time_ns, start_ns;
    int64_t ms;                    /* time_ns in milliseconds */
    bool is_absent;                /* NoRecordedValue */
    struct numbers counts, bounds; /* of a histogram's buckets */
    uint64_t bounds_hash;
    struct part_sample *samples; /* in the ingest's room */
    size_t n_samples;
    bool has_labels; /* the ingest's labels are its own */
};

/* What a kind of metric has: its field of the metric, and fields of its points. */
static const struct {
    unsigned metric;
    bool temporal;
    unsigned attributes, flags;
} kinds[] = {
    [OTLP_GAUGE] = {METRIC_GAUGE, false, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_COUNTER] = {METRIC_SUM, true, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_UP_DOWN_COUNTER] = {METRIC_SUM, true, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_HISTOGRAM] = {METRIC_HISTOGRAM, true, HISTOGRAM_ATTRIBUTES, HISTOGRAM_FLAGS},
    [OTLP_EXPONENTIAL] = {METRIC_EXPONENTIAL, false, 0, 0},
    [OTLP_SUMMARY] = {METRIC_SUMMARY, false, SUMMARY_ATTRIBUTES, SUMMARY_FLAGS},
};

/* A resource attribute that series get as a label. */
struct promoted {
    struct str attribute, label;
};

/* The first ones make up job and instance instead. */
enum { SERVICE_NAME, SERVICE_NAMESPACE, SERVICE_INSTANCE, IDENTITY };

/* Made anew for each resource. Its labels are made once, for the first of its series that is new. */
struct resource {
    struct str message;
    uint64_t hash, time_ns; /* time_ns: of its latest point that was stored; 0: none */
    bool has_labels;
    struct str job, instance; /* their p is NULL without one */
};

/* Made anew for each metric; its name as well is made for the first series that is new. */
struct otlp_metric {
    struct str name, unit;
    enum otlp_type type;
    uint64_t temporality;
    uint64_t hash; /* of resource, name, unit and type */
    bool has_text;
};

/* A series that was refused, so that it costs nothing again: its labels are not made as long as nothing
 * has changed. */
struct refusal {
    uint64_t hash;
    uint64_t version; /* of the store; nothing changes what bad labels are */
    unsigned result;  /* STORE_OK: none */
};

struct ingest {
    struct store *store;
    const struct clock *clock;
    struct promoted *promoted; /* the first IDENTITY ones have no label of their own */
    size_t n_promoted;
    struct arena arena;       /* of their names */
    struct refusal *refusals; /* by hash; NULL without any */
    int64_t now_ms;
    /* What is being read */
    struct resource resource;
    struct otlp_metric metric;
    /* Room for the numbers of the point being read, which alone knows how many there are. */
    uint64_t counts[MAX_BUCKETS], bounds[MAX_BUCKETS];
    struct part_sample samples[MAX_SAMPLES];
    /* Texts, valid where the resource, metric or point says that it has them */
    struct labels resource_labels, labels; /* labels: of a point, or of target_info */
    struct str *promoted_values;           /* of the resource; p is NULL without one */
    struct buf metric_text;
    struct buf series_text;
    /* Costs of the request so far */
    uint64_t samples_read, labels_written, max_cost;
    size_t locked_samples; /* since the lock was taken */
    struct ingest_outcome *outcome;
};

WORD_TABLE(otlp_result_word, unsigned, OTLP_RESULTS,
           {
               [STORE_OK] = "ok",
               [STORE_OUT_OF_ORDER] = "out_of_order",
               [STORE_DUPLICATE] = "duplicate",
               [STORE_TOO_OLD] = "too_old",
               [STORE_TOO_NEW] = "too_new",
               [STORE_SERIES_LIMIT] = "series_limit",
               [STORE_BYTES_LIMIT] = "bytes_limit",
               [STORE_BAD_LABELS] = "bad_labels",
               [OTLP_INVALID] = "invalid",
               [OTLP_TEMPORALITY] = "temporality",
               [OTLP_OVERLAP] = "overlap",
               [OTLP_UNSUPPORTED] = "unsupported",
           });

/* ---- Life ---- */

static void ingest_promote(struct ingest *in, struct str attribute, struct str label)
{
    in->promoted = xreallocarray(in->promoted, in->n_promoted + 1, sizeof(*in->promoted));
    in->promoted[in->n_promoted++] = (struct promoted){attribute, label};
}

/* The names of the flag, each under its translated name. */
static void ingest_promote_names(struct ingest *in, struct str names)
{
    while (names.n) {
        struct str name = str_trim(str_take(&names, ','));
        BUF_AUTO(label, SIZE_MAX);

        put_label_name(&label, name);
        ingest_promote(in, name, (struct str){arena_text(&in->arena, buf_str(&label)), label.n});
    }
}

struct ingest *ingest_new(struct store *store, const struct clock *clock,
                          const struct otlp_promotion *promotion)
{
    static const struct promoted identity[IDENTITY] = {
        [SERVICE_NAME] = {STR("service.name"), STR("")},
        [SERVICE_NAMESPACE] = {STR("service.namespace"), STR("")},
        [SERVICE_INSTANCE] = {STR("service.instance.id"), STR("")}};
    static const struct promoted k8s[] = {{STR("k8s.node.name"), STR("node")},
                                          {STR("k8s.namespace.name"), STR("namespace")},
                                          {STR("k8s.pod.name"), STR("pod")},
                                          {STR("k8s.container.name"), STR("container")}};
    struct ingest *in = xcalloc(1, sizeof(*in));

    in->store = store;
    in->clock = clock;
    in->arena.chunk_bytes = PROMOTED_BYTES;
    in->metric_text.max = SIZE_MAX;
    in->series_text.max = SIZE_MAX;
    labels_init(&in->resource_labels, &in->labels_written);
    labels_init(&in->labels, &in->labels_written);
    for (size_t i = 0; i < IDENTITY; i++)
        ingest_promote(in, identity[i].attribute, identity[i].label);
    for (size_t i = 0; i < ARRAY_SIZE(k8s) && promotion->k8s; i++)
        ingest_promote(in, k8s[i].attribute, k8s[i].label);
    ingest_promote_names(in, promotion->names);
    in->promoted_values = xcalloc(in->n_promoted, sizeof(*in->promoted_values));
    return in;
}

struct ingest *ingest_free(struct ingest *in)
{
    if (!in)
        return NULL;
    labels_done(&in->resource_labels);
    labels_done(&in->labels);
    buf_done(&in->metric_text);
    buf_done(&in->series_text);
    arena_done(&in->arena);
    free(in->promoted);
    free(in->promoted_values);
    free(in->refusals);
    free(in);
    return NULL;
}

/* ---- Labels ---- */

static bool is_identity(struct str key)
{
    return str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
           str_eq(key, STR("service.instance.id"));
}

/* Of several attributes with the same name the first one counts. */
static void resource_read_attribute(struct ingest *in, struct str key_value)
{
    struct str key = wire_last(key_value, KEY_VALUE_KEY).bytes;

    for (size_t i = 0; i < in->n_promoted; i++)
        if (!in->promoted_values[i].p && str_eq(key, in->promoted[i].attribute))
            in->promoted_values[i] =
                labels_text(&in->resource_labels, wire_last(key_value, KEY_VALUE_VALUE).bytes);
}

/* What the resource gives to each of its series. */
static void resource_read_labels(struct ingest *in)
{
    struct resource *r = &in->resource;
    struct str w = r->message, *values = in->promoted_values;
    struct labels *l = &in->resource_labels;
    struct wire_field f;

    if (r->has_labels)
        return;
    r->has_labels = true;
    labels_begin(l);
    memset(values, 0, in->n_promoted * sizeof(*values));
    while (wire_find(&w, RESOURCE_ATTRIBUTES, &f) && !l->is_bad)
        resource_read_attribute(in, f.bytes);
    r->job = values[SERVICE_NAME];
    if (r->job.p && values[SERVICE_NAMESPACE].p)
        r->job = labels_join(l, values[SERVICE_NAMESPACE], '/', r->job);
    r->instance = values[SERVICE_INSTANCE];
}

static void labels_set_identity(struct labels *l, const struct resource *r)
{
    if (r->job.p)
        *labels_at(l, STR("job")) = r->job;
    if (r->instance.p)
        *labels_at(l, STR("instance")) = r->instance;
}

/* What the point gives to each of its series; an attribute of its own wins over one of the resource. */
static void point_make_labels(struct ingest *in, struct point *pt)
{
    struct labels *l = &in->labels;

    if (pt->has_labels)
        return;
    pt->has_labels = true;
    resource_read_labels(in);
    labels_begin(l);
    l->is_bad = in->resource_labels.is_bad;
    labels_set_attributes(l, pt->message, kinds[in->metric.type].attributes, NULL);
    for (size_t i = IDENTITY; i < in->n_promoted && !l->is_bad; i++) {
        struct str value = in->promoted_values[i];
        struct str *label = value.p ? labels_at(l, in->promoted[i].label) : NULL;

        if (label && !label->p)
            *label = value;
    }
    labels_set_identity(l, &in->resource);
    labels_sort(l);
}

/* The metric's name without the suffix of a part; empty if it cannot be one. */
static void metric_make_text(struct ingest *in)
{
    struct otlp_metric *m = &in->metric;

    if (m->has_text)
        return;
    m->has_text = true;
    buf_clear(&in->metric_text);
    if (m->name.n <= SERIES_MAX_LABEL_BYTES && m->unit.n <= SERIES_MAX_LABEL_BYTES)
        put_metric_name(&in->metric_text, m->name, m->unit, m->type);
    in->labels_written += in->metric_text.n;
}

/* ---- Series that were refused ---- */

static struct refusal *refusal_of(const struct ingest *in, uint64_t hash)
{
    return &in->refusals[hash & (REFUSALS - 1)];
}

/* Lock not held. */
static void ingest_remember_refusal(struct ingest *in, uint64_t hash, unsigned result)
{
    uint64_t version;

    if (!in->refusals)
        in->refusals = xcalloc(REFUSALS, sizeof(*in->refusals));
    store_lock(in->store);
    version = store_version(in->store);
    store_unlock(in->store);
    *refusal_of(in, hash) = (struct refusal){hash, version, result};
}

/* Why a series that the store does not know would be refused as it was the last time; STORE_OK if that must
 * be tried. Its labels might have become known in another form, but not while no series was added. Lock
 * held. */
static unsigned ingest_recall_refusal(const struct ingest *in, uint64_t hash)
{
    const struct refusal *past = in->refusals ? refusal_of(in, hash) : NULL;

    if (!past || past->result == STORE_OK || past->hash != hash)
        return STORE_OK;
    if (past->result == STORE_BAD_LABELS)
        return STORE_BAD_LABELS;
    return past->version == store_version(in->store) ? store_refuses(in->store) : STORE_OK;
}

/* ---- Reading a point ---- */

/* The numbers of a field, packed or not. False if there are too many. */
static bool numbers_read(struct numbers *to, uint64_t room[MAX_BUCKETS], struct str message, unsigned number)
{
    struct wire_field f;

    *to = (struct numbers){.list = room};
    while (wire_find(&message, number, &f)) {
        size_t n = f.type == WIRE_BYTES ? f.bytes.n / 8 : 1;

        if (n > MAX_BUCKETS - to->n)
            return false;
        if (f.type != WIRE_BYTES)
            to->list[to->n++] = f.value;
        else
            for (size_t i = 0; i < n; i++)
                to->list[to->n++] = wire_fixed(f.bytes.p + 8 * i, 8);
    }
    return true;
}

/* Bounds must increase, with one more bucket than bounds, or none. Counts must add up to the count; they are
 * added up in place. */
static bool point_read_histogram(struct ingest *in, struct point *pt)
{
    const struct numbers *bounds = &pt->bounds;
    uint64_t *counts = in->counts;

    if (!numbers_read(&pt->counts, in->counts, pt->message, HISTOGRAM_COUNTS) ||
        !numbers_read(&pt->bounds, in->bounds, pt->message, HISTOGRAM_BOUNDS))
        return false;
    for (size_t i = 0; i < bounds->n; i++)
        if (isnan(double_of(bounds->list[i])) ||
            (i > 0 && double_of(bounds->list[i]) <= double_of(bounds->list[i - 1])))
            return false;
    for (size_t i = 1; i < pt->counts.n; i++)
        if (__builtin_add_overflow(counts[i], counts[i - 1], &counts[i]))
            return false;
    return pt->counts.n == 0 ||
           (pt->counts.n == bounds->n + 1 && counts[bounds->n] == pt->last[POINT_COUNT].value);
}

static void point_add_sample(struct point *pt, enum part part, double bound, double value)
{
    struct part_sample *sample = &pt->samples[pt->n_samples++];

    invariant(pt->n_samples <= MAX_SAMPLES);
    *sample = (struct part_sample){.part = part, .bound = bound, .value = value, .hash = pt->hash};
    if (part != PART_VALUE)
        sample->hash = hash_chain_u64(pt->hash, double_bits(bound) ^ (uint64_t)part << 52);
}

static void point_add_count(struct point *pt)
{
    point_add_sample(pt, PART_COUNT, 0, (double)pt->last[POINT_COUNT].value);
}

static void point_add_sum(struct point *pt)
{
    point_add_sample(pt, PART_SUM, 0, double_of(pt->last[POINT_SUM].value));
}

static bool point_read_buckets(struct ingest *in, struct point *pt)
{
    if (!point_read_histogram(in, pt))
        return false;
    pt->bounds_hash = hash_bytes((struct str){(const char *)pt->bounds.list, pt->bounds.n * 8});
    point_add_count(pt);
    if (pt->last[POINT_SUM].from)
        point_add_sum(pt);
    for (size_t i = 0; i < pt->bounds.n && i < pt->counts.n; i++)
        if (double_of(pt->bounds.list[i]) != HUGE_VAL)
            point_add_sample(pt, PART_BUCKET, double_of(pt->bounds.list[i]), (double)pt->counts.list[i]);
    point_add_sample(pt, PART_BUCKET, HUGE_VAL, (double)pt->last[POINT_COUNT].value);
    return true;
}

/* False if there are too many quantiles, or one is not a number. */
static bool point_read_quantiles(struct point *pt)
{
    struct str w = pt->message;
    struct wire_field f;

    point_add_count(pt);
    point_add_sum(pt);
    while (wire_find(&w, SUMMARY_QUANTILES, &f)) {
        double quantile = double_of(wire_last(f.bytes, QUANTILE_QUANTILE).value);

        if (isnan(quantile) || pt->n_samples == MAX_SAMPLES)
            return false;
        point_add_sample(pt, PART_QUANTILE, quantile, double_of(wire_last(f.bytes, QUANTILE_VALUE).value));
    }
    return true;
}

/* Of both fields the last one counts. */
static bool point_read_number(struct point *pt)
{
    const struct wire_field *i = &pt->last[NUMBER_INT], *d = &pt->last[NUMBER_DOUBLE];
    bool is_int = i->from > d->from || !d->from;

    if (!i->from && !d->from && !pt->is_absent)
        return false;
    point_add_sample(pt, PART_VALUE, 0, is_int ? (double)(int64_t)i->value : double_of(d->value));
    return true;
}

static bool point_read_samples(struct ingest *in, struct point *pt)
{
    switch (in->metric.type) {
    case OTLP_HISTOGRAM:
        return point_read_buckets(in, pt);
    case OTLP_SUMMARY:
        return point_read_quantiles(pt);
    default:
        return point_read_number(pt);
    }
}

/* When the writer started; 0: not known. A start after the point itself, or in the future, says nothing: once
 * remembered, it would make each restart look like an older writer. */
static uint64_t point_start(const struct point *pt, int64_t now_ms)
{
    uint64_t start_ns = pt->last[POINT_START].value;

    return start_ns <= pt->time_ns && start_ns / NS_PER_MS <= (uint64_t)now_ms ? start_ns : 0;
}

static unsigned point_read(struct ingest *in, struct point *pt, struct str message)
{
    enum otlp_type type = in->metric.type;
    struct str w = message;
    uint64_t attributes = 1;
    struct wire_field f;

    *pt = (struct point){.message = message, .samples = in->samples};
    wire_read(message, pt->last);
    pt->time_ns = pt->last[POINT_TIME].value;
    pt->ms = (int64_t)(pt->time_ns / NS_PER_MS);
    pt->start_ns = point_start(pt, in->now_ms);
    if (type == OTLP_EXPONENTIAL)
        return OTLP_UNSUPPORTED;
    if (kinds[type].temporal && in->metric.temporality != TEMPORALITY_CUMULATIVE &&
        in->metric.temporality != TEMPORALITY_DELTA)
        return OTLP_TEMPORALITY;
    while (wire_find(&w, kinds[type].attributes, &f))
        attributes = hash_chain(attributes, f.bytes);
    pt->hash = hash_chain_u64(in->metric.hash, attributes);
    pt->is_absent = pt->last[kinds[type].flags].value & FLAG_NO_RECORDED_VALUE;
    return point_read_samples(in, pt) ? STORE_OK : OTLP_INVALID;
}

/* ---- Storing a point: as a whole or not at all. The lock is let go every STORE_TURN samples; the series of
 * the point are held meanwhile ---- */

static void ingest_lock(struct ingest *in)
{
    in->locked_samples = 0;
    store_lock(in->store);
}

/* Lock held, before each sample. */
static void ingest_take_turns(struct ingest *in)
{
    if (in->locked_samples == STORE_TURN) {
        store_unlock(in->store);
        ingest_lock(in);
    }
    in->locked_samples++;
}

/* The text of the labels of a sample's series. False if a series may not have them. */
static bool ingest_write_labels(struct ingest *in, struct point *pt, const struct part_sample *s)
{
    static const char *const suffixes[] = {[PART_VALUE] = "",
                                           [PART_COUNT] = "_count",
                                           [PART_SUM] = "_sum",
                                           [PART_BUCKET] = "_bucket",
                                           [PART_QUANTILE] = ""};
    struct series_label own[2] = {{.name = STR("__name__")}};
    size_t n = 1, plain;
    char text[DECIMAL_MAX];
    bool valid;

    point_make_labels(in, pt);
    metric_make_text(in);
    plain = in->metric_text.n;
    if (in->labels.is_bad || plain == 0)
        return false;
    put_str(&in->metric_text, str_of(suffixes[s->part]));
    own[0].value = buf_str(&in->metric_text);
    if (s->part == PART_BUCKET)
        own[n++] = (struct series_label){STR("le"), {text, translate_decimal(s->bound, text)}};
    if (s->part == PART_QUANTILE)
        own[n++] = (struct series_label){STR("quantile"), {text, translate_decimal(s->bound, text)}};
    valid = labels_write(&in->labels, own, n, &in->series_text);
    buf_truncate(&in->metric_text, plain);
    return valid;
}

/* Enters the series with the labels that were written, unless they are not valid. Lock not held. */
static unsigned ingest_enter(struct ingest *in, bool valid, uint64_t hash, struct series **ret)
{
    unsigned result = STORE_BAD_LABELS;

    if (valid)
        result = store_enter(in->store, buf_str(&in->series_text), hash, ret);
    if (result != STORE_OK)
        ingest_remember_refusal(in, hash, result);
    return result;
}

/* Finds the series of all samples. Lock held, as in all the next ones. */
static unsigned ingest_find_series(struct ingest *in, const struct point *pt)
{
    unsigned result = STORE_OK;

    for (size_t i = 0; i < pt->n_samples && result == STORE_OK; i++) {
        struct part_sample *s = &pt->samples[i];

        ingest_take_turns(in);
        s->series = store_find(in->store, s->hash);
        if (!s->series)
            result = store_check_time(in->store, pt->ms) ?: ingest_recall_refusal(in, s->hash);
    }
    return result;
}

/* Enters those that were not found. */
static unsigned ingest_enter_series(struct ingest *in, struct point *pt)
{
    unsigned result = STORE_OK;

    for (size_t i = 0; i < pt->n_samples && result == STORE_OK; i++) {
        struct part_sample *s = &pt->samples[i];

        if (!s->series)
            s->series = store_find(in->store, s->hash); /* another sample of the point may have entered it */
        if (s->series)
            continue;
        store_unlock(in->store);
        result = ingest_enter(in, ingest_write_labels(in, pt, s), s->hash, &s->series);
        ingest_lock(in);
    }
    return result;
}

/* A series has one writer. Two cumulative ones look like a counter that is reset at each point, and their
 * deltas like overlapping intervals. The writer that started last is heard, until it has been silent for a
 * while. */
static unsigned ingest_check_writer(const struct ingest *in, const struct point *pt,
                                    const struct series_writer *w)
{
    bool overlaps;

    if (in->metric.type == OTLP_GAUGE)
        return STORE_OK;
    if (in->metric.temporality == TEMPORALITY_DELTA) {
        if (pt->time_ns < w->last_ns)
            return STORE_OUT_OF_ORDER;
        overlaps = pt->time_ns == w->last_ns || (pt->start_ns && pt->start_ns < w->last_ns);
    } else {
        overlaps = pt->start_ns && pt->start_ns < w->start_ns &&
                   pt->time_ns < w->last_ns + (uint64_t)WRITER_SILENT_MS * NS_PER_MS;
    }
    return overlaps ? OTLP_OVERLAP : STORE_OK;
}

static void ingest_accept_writer(const struct ingest *in, const struct point *pt, struct series_writer *w)
{
    if (in->metric.type == OTLP_GAUGE)
        return;
    if (in->metric.temporality != TEMPORALITY_DELTA && pt->start_ns)
        w->start_ns = pt->start_ns;
    if (!pt->is_absent)
        w->bounds_hash = pt->bounds_hash;
    if (pt->time_ns > w->last_ns)
        w->last_ns = pt->time_ns;
}

/* Deltas are added up to totals. With other bounds, all series of a histogram begin again at zero: its old
 * count has no place among the new buckets. Queries see that as the restart of a counter. */
static bool ingest_adds_up(const struct ingest *in, const struct point *pt)
{
    return in->metric.temporality == TEMPORALITY_DELTA &&
           series_writer(pt->samples[0].series)->bounds_hash == pt->bounds_hash;
}

/* What is no number would stay in the total for good. */
static bool sample_spoils_total(const struct ingest *in, const struct point *pt, const struct part_sample *s)
{
    return in->metric.temporality == TEMPORALITY_DELTA && !pt->is_absent && !isfinite(s->value);
}

/* Whether all samples can be stored; their values become totals. Nothing is remembered of the point yet. */
static unsigned ingest_check_samples(struct ingest *in, struct point *pt)
{
    unsigned result = ingest_check_writer(in, pt, series_writer(pt->samples[0].series));
    bool adds_up = ingest_adds_up(in, pt);

    for (size_t i = 0; i < pt->n_samples && result == STORE_OK; i++) {
        struct part_sample *s = &pt->samples[i];

        ingest_take_turns(in);
        if (adds_up)
            s->value += series_writer(s->series)->total;
        if (sample_spoils_total(in, pt, s))
            return OTLP_INVALID;
        result = store_reserve(in->store, s->series, pt->ms, pt->is_absent ? value_absent() : s->value);
    }
    return result;
}

/* Only a summary with the same quantile twice gives a result other than STORE_OK. */
static unsigned ingest_push_samples(struct ingest *in, const struct point *pt)
{
    unsigned result = STORE_OK;

    ingest_accept_writer(in, pt, series_writer(pt->samples[0].series));
    for (size_t i = 0; i < pt->n_samples; i++) {
        const struct part_sample *s = &pt->samples[i];
        double value = pt->is_absent ? value_absent() : s->value;

        ingest_take_turns(in);
        result = store_push(in->store, s->series, pt->ms, value) ?: result;
        if (in->metric.temporality == TEMPORALITY_DELTA && !pt->is_absent)
            series_writer(s->series)->total = s->value;
    }
    return result;
}

static void ingest_release_series(struct ingest *in, struct point *pt)
{
    for (size_t i = 0; i < pt->n_samples; i++) {
        if (!pt->samples[i].series)
            continue;
        ingest_take_turns(in);
        store_release(in->store, TAKE_PTR(pt->samples[i].series));
    }
}

/* Lock not held. */
static unsigned ingest_store_point(struct ingest *in, struct point *pt)
{
    unsigned result;

    if (pt->ms > in->now_ms + STORE_MAX_AHEAD_MS)
        return STORE_TOO_NEW; /* before the time is remembered as that of the last point */
    ingest_lock(in);
    result = ingest_find_series(in, pt);
    if (result == STORE_OK)
        result = ingest_enter_series(in, pt);
    if (result == STORE_OK)
        result = ingest_check_samples(in, pt);
    if (result == STORE_OK)
        result = ingest_push_samples(in, pt);
    ingest_release_series(in, pt);
    store_unlock(in->store);
    return result;
}

/* The labels of target_info: all attributes of the resource but those that make up job and instance. False
 * without others, or without job and instance. */
static bool target_info_write_labels(struct ingest *in)
{
    const struct series_label name = {STR("__name__"), STR("target_info")};
    const struct resource *r = &in->resource;
    struct labels *l = &in->labels;

    resource_read_labels(in);
    if (!r->job.p && !r->instance.p)
        return false;
    labels_begin(l);
    labels_set_attributes(l, r->message, RESOURCE_ATTRIBUTES, is_identity);
    if (l->n == 0)
        return false;
    labels_set_identity(l, r);
    if (l->is_bad || in->resource_labels.is_bad)
        return false;
    labels_sort(l);
    return labels_write(l, &name, 1, &in->series_text);
}

static void ingest_store_target_info(struct ingest *in)
{
    uint64_t hash = hash_chain(in->resource.hash, STR("target_info"));
    unsigned result = STORE_OK;
    struct series *x;

    if (in->resource.time_ns == 0)
        return;
    ingest_lock(in);
    x = store_find(in->store, hash);
    if (!x)
        result = ingest_recall_refusal(in, hash);
    if (!x && result == STORE_OK) {
        store_unlock(in->store);
        (void)ingest_enter(in, target_info_write_labels(in), hash, &x);
        ingest_lock(in);
    }
    if (x) {
        (void)store_append(in->store, x, (int64_t)(in->resource.time_ns / NS_PER_MS), 1);
        store_release(in->store, x);
    }
    store_unlock(in->store);
}

/* ---- Points, metrics, resources ---- */

/* Each counts, also if several metrics of the request have the same name. The name of the first that is
 * rejected goes into the response, where text is UTF-8. */
static void ingest_count(struct ingest *in, unsigned result)
{
    struct ingest_outcome *o = in->outcome;
    struct str name = in->metric.name;

    o->results[result]++;
    if (result == STORE_OK || o->first[0])
        return;
    name = utf8_cut((struct str){name.p, utf8_valid_prefix(name)}, sizeof(o->first) - 1);
    (void)snprintf(o->first, sizeof(o->first), "%.*s", STR_ARG(name));
}

/* Ends the reading if the request costs more than it may. */
static void ingest_charge(struct ingest *in)
{
    uint64_t cost = size_max(in->samples_read * SAMPLE_BYTES, in->labels_written / LABELS_PER_BYTE);

    in->outcome->cost = cost;
    if (cost > in->max_cost)
        in->outcome->is_cut = true;
}

static void ingest_point(struct ingest *in, struct str message)
{
    struct point pt;
    unsigned result = point_read(in, &pt, message);

    in->samples_read += pt.n_samples;
    if (result == STORE_OK)
        result = ingest_store_point(in, &pt);
    if (result == STORE_OK && pt.time_ns > in->resource.time_ns)
        in->resource.time_ns = pt.time_ns;
    ingest_count(in, result);
    ingest_charge(in);
}

static void ingest_metric(struct ingest *in, struct str message)
{
    struct wire_field fields[WIRE_NUMBERS] = {0}, of_data[WIRE_NUMBERS] = {0}, data = {0}, f;
    struct otlp_metric *m = &in->metric;

    wire_read(message, fields);
    *m = (struct otlp_metric){.name = fields[METRIC_NAME].bytes, .unit = fields[METRIC_UNIT].bytes};
    for (unsigned type = 0; type < ARRAY_SIZE(kinds); type++)
        if (fields[kinds[type].metric].from > data.from) { /* of several the last one counts */
            data = fields[kinds[type].metric];
            m->type = (enum otlp_type)type;
        }
    if (!data.from)
        return;
    wire_read(data.bytes, of_data);
    if (m->type == OTLP_COUNTER && !of_data[DATA_MONOTONIC].value)
        m->type = OTLP_UP_DOWN_COUNTER;
    m->temporality = kinds[m->type].temporal ? of_data[DATA_TEMPORALITY].value : 0;
    m->hash = hash_chain(hash_chain(in->resource.hash, m->name), m->unit);
    m->hash = hash_chain_u64(m->hash, m->type);
    while (!in->outcome->is_cut && wire_find(&data.bytes, DATA_POINTS, &f))
        ingest_point(in, f.bytes);
}

static void ingest_resource(struct ingest *in, struct str message)
{
    struct str resource = wire_last(message, RESOURCE_METRICS_RESOURCE).bytes;
    struct wire_field f, metric;

    in->resource = (struct resource){.message = resource, .hash = hash_bytes(resource)};
    while (wire_find(&message, RESOURCE_METRICS_SCOPE_METRICS, &f))
        while (!in->outcome->is_cut && wire_find(&f.bytes, SCOPE_METRICS_METRICS, &metric))
            ingest_metric(in, metric.bytes);
    if (!in->outcome->is_cut)
        ingest_store_target_info(in);
    ingest_charge(in);
}

void ingest_request(struct ingest *in, struct str request, uint64_t max_cost, struct ingest_outcome *ret)
{
    struct wire_field f;

    *ret = (struct ingest_outcome){0};
    in->outcome = ret;
    in->max_cost = max_cost;
    in->samples_read = 0;
    in->labels_written = 0;
    in->now_ms = in->clock->wall(in->clock).ms;
    while (!ret->is_cut && wire_find(&request, EXPORT_RESOURCE_METRICS, &f))
        ingest_resource(in, f.bytes);
}
