/* Walks through a request: resources, metrics, points. The first point of a series builds its labels; each
 * later one finds the series by the hash of the bytes that name it, without an allocation. */
#include "exporter/otlp/receiver.h"

#include "exporter/base/buf.h"
#include "exporter/base/map.h"
#include "exporter/base/text.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/series.h"

#include <math.h>
#include <stdio.h>

enum {
    SERIES_MAX_LABELS = 128,
    MAX_BUCKETS = 396, /* or quantiles, of a point: all are stored while the lock is held */
    NS_PER_MS = 1000000,
    WRITER_SILENT_MS = 5 * 60 * 1000,
    LABELS_BYTES = 4 << 10,
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

/* The last field of each number, as protobuf wants it; all zero without one. */
enum { WIRE_NUMBERS = 12 /* the largest number that is read this way, and 1 */ };

static void wire_read(struct str message, struct wire_field last[WIRE_NUMBERS])
{
    struct wire_field f;

    memset(last, 0, WIRE_NUMBERS * sizeof(*last));
    while (wire_next(&message, &f))
        if (f.number < WIRE_NUMBERS)
            last[f.number] = f;
}

/* The 8 bytes each of a repeated field. */
struct numbers {
    uint64_t *list; /* NULL without the field */
    size_t n;
};

/* Made anew for each point, from zero: a member that a kind of metric does not set is empty. */
struct point {
    struct str message;
    struct wire_field last[WIRE_NUMBERS];
    uint64_t attributes_hash, time_ns, start_ns;
    struct numbers counts, bounds; /* of a histogram's buckets */
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

/* A label set that is being made. */
struct labels {
    struct series_label list[SERIES_MAX_LABELS + 1]; /* with room for the first that is too many */
    size_t n;
    bool is_bad;        /* too many, too long, or not UTF-8 */
    struct arena arena; /* of the strings */
    struct buf text;    /* being written */
};

struct ingest {
    struct store *store;
    const struct clock *clock;
    struct otlp_promotion promotion;
    int64_t now_ms;
    struct labels labels; /* of the series being created */
    /* What is being read */
    struct str resource;
    uint64_t resource_hash, resource_time_ns;
    struct {
        struct str name, unit;
        enum otlp_type type;
        uint64_t temporality;
        uint64_t hash; /* of resource, name, unit and type */
    } metric;
    /* Room for the numbers of the point being read, which alone knows how many there are. */
    uint64_t counts[MAX_BUCKETS], bounds[MAX_BUCKETS];
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

struct ingest *ingest_new(struct store *store, const struct clock *clock,
                          const struct otlp_promotion *promotion)
{
    struct ingest *in = xcalloc(1, sizeof(*in));

    in->store = store;
    in->clock = clock;
    in->promotion = *promotion;
    in->labels.arena.chunk_bytes = LABELS_BYTES;
    in->labels.text.max = SIZE_MAX;
    return in;
}

struct ingest *ingest_free(struct ingest *in)
{
    if (!in)
        return NULL;
    arena_done(&in->labels.arena);
    buf_done(&in->labels.text);
    free(in);
    return NULL;
}

/* ---- Labels ---- */

/* Moves the text into the arena, and empties it. */
static struct str labels_keep(struct labels *l)
{
    struct str kept = {arena_text(&l->arena, buf_str(&l->text)), l->text.n};

    l->is_bad |= kept.n > SERIES_MAX_LABEL_BYTES || utf8_valid_prefix(kept) < kept.n;
    l->text.n = 0;
    return kept;
}

/* The text of an attribute's value, or its name as that of a label; empty if it is too long. */
static struct str labels_text(struct labels *l, struct str from, bool is_name)
{
    l->is_bad |= from.n > SERIES_MAX_LABEL_BYTES;
    if (!l->is_bad && is_name)
        put_label_name(&l->text, from);
    else if (!l->is_bad)
        put_any_value(&l->text, from, false);
    return labels_keep(l);
}

static struct str labels_join(struct labels *l, struct str a, char between, struct str b)
{
    put_str(&l->text, a);
    put_str(&l->text, (struct str){&between, 1});
    put_str(&l->text, b);
    return labels_keep(l);
}

/* The value of the label with this name; its p is NULL if the label is new. */
static struct str *labels_at(struct labels *l, struct str name)
{
    size_t i = 0;

    while (i < l->n && !str_eq(l->list[i].name, name))
        i++;
    if (i == l->n) {
        l->list[i] = (struct series_label){.name = name};
        l->is_bad |= i == SERIES_MAX_LABELS;
        l->n += i < SERIES_MAX_LABELS;
    }
    return &l->list[i].value;
}

static bool is_identity(struct str key)
{
    return str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
           str_eq(key, STR("service.instance.id"));
}

/* Values of attributes whose names become the same are joined by a semicolon. */
static void labels_set_attributes(struct labels *l, struct str message, unsigned number, bool skip_identity)
{
    CLEANUP(cleanup_free) struct attribute *list = NULL;
    size_t n = read_attributes(&list, message, number, SERIES_MAX_LABELS);

    l->is_bad |= n > SERIES_MAX_LABELS;
    for (size_t i = 0; i < n && !l->is_bad; i++) {
        struct str name, value, *label;

        if (skip_identity && is_identity(list[i].key))
            continue;
        name = labels_text(l, list[i].key, true);
        value = labels_text(l, list[i].value, false);
        label = labels_at(l, name);
        *label = label->p ? labels_join(l, *label, ';', value) : value;
    }
}

/* The text of the first attribute with this name; NULL without one. */
static struct str labels_attribute(struct labels *l, struct str resource, struct str name)
{
    struct wire_field f;

    while (wire_find(&resource, RESOURCE_ATTRIBUTES, &f))
        if (str_eq(wire_last(f.bytes, KEY_VALUE_KEY).bytes, name))
            return labels_text(l, wire_last(f.bytes, KEY_VALUE_VALUE).bytes, false);
    return (struct str){0};
}

/* Returns whether there is any. */
static bool labels_set_identity(struct labels *l, struct str resource)
{
    struct str service = labels_attribute(l, resource, STR("service.name"));
    struct str space = labels_attribute(l, resource, STR("service.namespace"));
    struct str instance = labels_attribute(l, resource, STR("service.instance.id"));

    if (service.p)
        *labels_at(l, STR("job")) = space.p ? labels_join(l, space, '/', service) : service;
    if (instance.p)
        *labels_at(l, STR("instance")) = instance;
    return service.p || instance.p;
}

static void labels_promote(struct labels *l, struct str resource, struct str attribute, struct str label)
{
    struct str value = labels_attribute(l, resource, attribute), *own = value.p ? labels_at(l, label) : NULL;

    if (own && !own->p)
        *own = value;
}

static void labels_set_promoted(struct labels *l, struct str resource, const struct otlp_promotion *p)
{
    static const struct str k8s[][2] = {{STR("k8s.node.name"), STR("node")},
                                        {STR("k8s.namespace.name"), STR("namespace")},
                                        {STR("k8s.pod.name"), STR("pod")},
                                        {STR("k8s.container.name"), STR("container")}};
    struct str names = p->names;

    for (size_t i = 0; i < ARRAY_SIZE(k8s) && p->k8s; i++)
        labels_promote(l, resource, k8s[i][0], k8s[i][1]);
    while (names.n && !l->is_bad) {
        struct str name = str_trim(str_take(&names, ','));

        labels_promote(l, resource, name, labels_text(l, name, true));
    }
}

static void labels_begin(struct labels *l)
{
    arena_done(&l->arena);
    l->text.n = l->n = 0;
    l->is_bad = false;
}

DEFINE_ORDER(label_order, struct series_label, str_cmp(a->name, b->name))

/* Enters the series with these labels and this name. */
static unsigned labels_enter(struct labels *l, struct store *store, struct str name, uint64_t hash,
                             struct series **ret)
{
    static const char end = LABEL_END;

    *labels_at(l, STR("__name__")) = name;
    if (l->is_bad)
        return STORE_BAD_LABELS;
    qsort(l->list, l->n, sizeof(*l->list), label_order);
    for (size_t i = 0; i < l->n && l->text.n <= SERIES_MAX_LABEL_BYTES; i++) {
        const struct str parts[] = {l->list[i].name, {&end, 1}, l->list[i].value, {&end, 1}};

        for (size_t k = 0; parts[0].n && parts[2].n && k < ARRAY_SIZE(parts); k++)
            put_str(&l->text, parts[k]);
    }
    return store_enter(store, buf_str(&l->text), hash, ret);
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
        memcpy(to->list + to->n, f.type == WIRE_BYTES ? f.bytes.p : (const char *)&f.value, n * 8);
        to->n += n;
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

static bool point_check_summary(const struct point *pt)
{
    struct str w = pt->message;
    struct wire_field f;
    size_t n = 0;

    while (wire_find(&w, SUMMARY_QUANTILES, &f))
        if (++n > MAX_BUCKETS || isnan(double_of(wire_last(f.bytes, QUANTILE_QUANTILE).value)))
            return false;
    return true;
}

static bool point_is_absent(const struct point *pt, enum otlp_type type)
{
    return pt->last[kinds[type].flags].value & FLAG_NO_RECORDED_VALUE;
}

static bool point_is_valid(struct ingest *in, struct point *pt)
{
    switch (in->metric.type) {
    case OTLP_HISTOGRAM:
        return point_read_histogram(in, pt);
    case OTLP_SUMMARY:
        return point_check_summary(pt);
    default:
        return pt->last[NUMBER_DOUBLE].from || pt->last[NUMBER_INT].from ||
               point_is_absent(pt, in->metric.type);
    }
}

static unsigned point_read(struct ingest *in, struct point *pt, struct str message)
{
    enum otlp_type type = in->metric.type;
    struct str w = message;
    struct wire_field f;

    *pt = (struct point){.message = message, .attributes_hash = 1};
    wire_read(message, pt->last);
    pt->time_ns = pt->last[POINT_TIME].value;
    pt->start_ns = pt->last[POINT_START].value;
    if (type == OTLP_EXPONENTIAL)
        return OTLP_UNSUPPORTED;
    if (kinds[type].temporal && in->metric.temporality != TEMPORALITY_CUMULATIVE &&
        in->metric.temporality != TEMPORALITY_DELTA)
        return OTLP_TEMPORALITY;
    while (wire_find(&w, kinds[type].attributes, &f))
        pt->attributes_hash = hash_chain(pt->attributes_hash, f.bytes);
    return point_is_valid(in, pt) ? STORE_OK : OTLP_INVALID;
}

/* Of both fields the last one counts. */
static double point_value(const struct point *pt)
{
    const struct wire_field *i = &pt->last[NUMBER_INT], *d = &pt->last[NUMBER_DOUBLE];

    return i->from > d->from || !d->from ? (double)(int64_t)i->value : double_of(d->value);
}

/* ---- Storing a point. Lock of the store held ---- */

/* A sample of a point; `bound` is that of a bucket or quantile. */
enum part { PART_VALUE, PART_COUNT, PART_SUM, PART_BUCKET, PART_QUANTILE };

static unsigned ingest_enter(struct ingest *in, const struct point *pt, enum part part, double bound,
                             uint64_t hash, struct series **ret)
{
    static const char *const suffixes[] = {[PART_VALUE] = "",
                                           [PART_COUNT] = "_count",
                                           [PART_SUM] = "_sum",
                                           [PART_BUCKET] = "_bucket",
                                           [PART_QUANTILE] = ""};
    struct str name = in->metric.name, unit = in->metric.unit;
    struct labels *l = &in->labels;
    char text[DECIMAL_MAX];

    labels_begin(l);
    labels_set_attributes(l, pt->message, kinds[in->metric.type].attributes, false);
    labels_set_promoted(l, in->resource, &in->promotion);
    (void)labels_set_identity(l, in->resource);
    if (part == PART_BUCKET || part == PART_QUANTILE)
        *labels_at(l, part == PART_BUCKET ? STR("le") : STR("quantile")) =
            (struct str){text, translate_decimal(bound, text)};
    if (name.n <= SERIES_MAX_LABEL_BYTES && unit.n <= SERIES_MAX_LABEL_BYTES)
        put_metric_name(&l->text, name, unit, in->metric.type);
    if (l->text.n == 0)
        return STORE_BAD_LABELS;
    put_str(&l->text, str_of(suffixes[part]));
    return labels_enter(l, in->store, labels_keep(l), hash, ret);
}

/* A series has one writer. Two cumulative ones look like a counter that is reset at each point, and their
 * deltas like overlapping intervals. The writer that started last is heard, until it has been silent for a
 * while. */
static unsigned ingest_check_writer(const struct ingest *in, const struct point *pt, struct series_writer *s)
{
    bool overlaps;

    if (in->metric.type == OTLP_GAUGE)
        return STORE_OK;
    if (in->metric.temporality == TEMPORALITY_DELTA) {
        if (pt->time_ns < s->last_ns)
            return STORE_OUT_OF_ORDER;
        overlaps = pt->time_ns == s->last_ns || (pt->start_ns && pt->start_ns < s->last_ns);
    } else {
        overlaps = pt->start_ns && pt->start_ns < s->start_ns &&
                   pt->time_ns < s->last_ns + (uint64_t)WRITER_SILENT_MS * NS_PER_MS;
        s->start_ns = pt->start_ns && !overlaps ? pt->start_ns : s->start_ns;
    }
    if (!overlaps && pt->time_ns > s->last_ns)
        s->last_ns = pt->time_ns;
    return overlaps ? OTLP_OVERLAP : STORE_OK;
}

static unsigned ingest_append(struct ingest *in, const struct point *pt, enum part part, double bound,
                              double value)
{
    uint64_t hash = hash_chain_u64(in->metric.hash, pt->attributes_hash);
    unsigned result = STORE_OK;
    struct series *x;

    if (part != PART_VALUE)
        hash = hash_chain_u64(hash, double_bits(bound) ^ (uint64_t)part << 52);
    x = store_find(in->store, hash);
    if (!x)
        result = ingest_enter(in, pt, part, bound, hash, &x);
    if (result == STORE_OK && (part == PART_VALUE || part == PART_COUNT))
        result = ingest_check_writer(in, pt, series_writer(x));
    if (result != STORE_OK)
        return result;
    if (in->metric.temporality == TEMPORALITY_DELTA)
        value = series_writer(x)->total += value;
    if (point_is_absent(pt, in->metric.type))
        value = value_absent();
    return store_append(in->store, x, (int64_t)(pt->time_ns / NS_PER_MS), value);
}

/* The samples behind the count. */
static unsigned ingest_append_rest(struct ingest *in, const struct point *pt)
{
    struct str w = pt->message;
    unsigned result = STORE_OK;
    struct wire_field f;

    if (pt->last[POINT_SUM].from || in->metric.type == OTLP_SUMMARY)
        result = ingest_append(in, pt, PART_SUM, 0, double_of(pt->last[POINT_SUM].value));
    for (size_t i = 0; i < pt->bounds.n && i < pt->counts.n; i++)
        if (double_of(pt->bounds.list[i]) != HUGE_VAL)
            result =
                ingest_append(in, pt, PART_BUCKET, double_of(pt->bounds.list[i]), (double)pt->counts.list[i])
                    ?: result;
    if (in->metric.type == OTLP_HISTOGRAM)
        return ingest_append(in, pt, PART_BUCKET, HUGE_VAL, (double)pt->last[POINT_COUNT].value) ?: result;
    while (wire_find(&w, SUMMARY_QUANTILES, &f))
        result = ingest_append(in, pt, PART_QUANTILE, double_of(wire_last(f.bytes, QUANTILE_QUANTILE).value),
                               double_of(wire_last(f.bytes, QUANTILE_VALUE).value))
                     ?: result;
    return result;
}

/* A point whose first sample belongs to another writer is left out. */
static unsigned ingest_store_point(struct ingest *in, const struct point *pt)
{
    unsigned result;

    if ((int64_t)(pt->time_ns / NS_PER_MS) > in->now_ms + STORE_MAX_AHEAD_MS)
        return STORE_TOO_NEW; /* before the time is remembered as that of the last point */
    store_lock(in->store);
    if (in->metric.type != OTLP_HISTOGRAM && in->metric.type != OTLP_SUMMARY)
        result = ingest_append(in, pt, PART_VALUE, 0, point_value(pt));
    else
        result = ingest_append(in, pt, PART_COUNT, 0, (double)pt->last[POINT_COUNT].value)
                     ?: ingest_append_rest(in, pt);
    store_unlock(in->store);
    return result;
}

/* Has all attributes of a resource but those that make up job and instance; none without others, or without
 * job and instance. */
static void ingest_store_target_info(struct ingest *in)
{
    uint64_t hash = hash_chain(in->resource_hash, STR("target_info"));
    struct labels *l = &in->labels;
    struct series *x;

    if (in->resource_time_ns == 0)
        return;
    store_lock(in->store);
    x = store_find(in->store, hash);
    if (!x) {
        labels_begin(l);
        labels_set_attributes(l, in->resource, RESOURCE_ATTRIBUTES, true);
        if (l->n && labels_set_identity(l, in->resource))
            (void)labels_enter(l, in->store, STR("target_info"), hash, &x);
    }
    if (x)
        (void)store_append(in->store, x, (int64_t)(in->resource_time_ns / NS_PER_MS), 1);
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

static void ingest_metric(struct ingest *in, struct str message)
{
    struct wire_field fields[WIRE_NUMBERS], data = {0}, f;

    wire_read(message, fields);
    in->metric.name = fields[METRIC_NAME].bytes;
    in->metric.unit = fields[METRIC_UNIT].bytes;
    for (unsigned type = 0; type < ARRAY_SIZE(kinds); type++)
        if (fields[kinds[type].metric].from > data.from) { /* of several the last one counts */
            data = fields[kinds[type].metric];
            in->metric.type = (enum otlp_type)type;
        }
    if (!data.from)
        return;
    wire_read(data.bytes, fields);
    if (in->metric.type == OTLP_COUNTER && !fields[DATA_MONOTONIC].value)
        in->metric.type = OTLP_UP_DOWN_COUNTER;
    in->metric.temporality = kinds[in->metric.type].temporal ? fields[DATA_TEMPORALITY].value : 0;
    in->metric.hash = hash_chain(hash_chain(in->resource_hash, in->metric.name), in->metric.unit);
    in->metric.hash = hash_chain_u64(in->metric.hash, in->metric.type);
    while (wire_find(&data.bytes, DATA_POINTS, &f)) {
        struct point pt;
        unsigned result = point_read(in, &pt, f.bytes);

        if (pt.time_ns > in->resource_time_ns)
            in->resource_time_ns = pt.time_ns;
        ingest_count(in, result == STORE_OK ? ingest_store_point(in, &pt) : result);
    }
}

static void ingest_resource(struct ingest *in, struct str message)
{
    struct wire_field f, metric;

    in->resource = wire_last(message, RESOURCE_METRICS_RESOURCE).bytes;
    in->resource_hash = hash_bytes(in->resource);
    in->resource_time_ns = 0;
    while (wire_find(&message, RESOURCE_METRICS_SCOPE_METRICS, &f))
        while (wire_find(&f.bytes, SCOPE_METRICS_METRICS, &metric))
            ingest_metric(in, metric.bytes);
    ingest_store_target_info(in);
}

void ingest_request(struct ingest *in, struct str request, struct ingest_outcome *ret)
{
    struct wire_field f;

    *ret = (struct ingest_outcome){0};
    in->outcome = ret;
    in->now_ms = in->clock->wall(in->clock).ms;
    while (wire_find(&request, EXPORT_RESOURCE_METRICS, &f))
        ingest_resource(in, f.bytes);
}
