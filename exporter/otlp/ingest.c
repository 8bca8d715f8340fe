/* Walks through a request: resources, metrics, points. The first point of a series builds its labels; each
 * later one finds the series by the hash of the bytes that name it, without an allocation. */
#include "exporter/otlp/ingest.h"

#include "exporter/base/buf.h"
#include "exporter/base/map.h"
#include "exporter/base/memory.h"
#include "exporter/base/text.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/translate.h"

#include <math.h>
#include <stdio.h>

enum {
    MAX_BUCKETS = 396, /* or quantiles, of a point: all are stored while the lock is held */
    NS_PER_MS = 1000000,
    WRITER_SILENT_MS = 5 * 60 * 1000,
    LABELS_BYTES = 4 << 10,
};

/* The 8 bytes each of a repeated field. */
struct numbers {
    uint64_t list[MAX_BUCKETS];
    size_t n;
};

struct point {
    struct str message;
    uint64_t attributes_hash, start_ns, time_ns, flags, count;
    double value, sum;
    bool has_value, has_sum, is_invalid;
    size_t n_quantiles;
    struct numbers counts, bounds; /* of buckets */
};

/* What a kind of metric has. */
static const struct {
    bool temporal;
    unsigned attributes, flags; /* fields of its points */
} kinds[] = {
    [OTLP_GAUGE] = {false, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_COUNTER] = {true, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_UP_DOWN_COUNTER] = {true, NUMBER_ATTRIBUTES, NUMBER_FLAGS},
    [OTLP_HISTOGRAM] = {true, HISTOGRAM_ATTRIBUTES, HISTOGRAM_FLAGS},
    [OTLP_EXPONENTIAL] = {false, 0, 0},
    [OTLP_SUMMARY] = {false, SUMMARY_ATTRIBUTES, SUMMARY_FLAGS},
};

/* A label set that is being made. */
struct labels {
    struct series_label list[SERIES_MAX_LABELS];
    size_t n;
    bool is_bad;        /* too many, too long, or not UTF-8 */
    struct arena arena; /* of the strings */
    struct buf text;    /* of the string being written */
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
    struct point point;
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

void otlp_promote_k8s(struct otlp_promotion *p)
{
    static const struct str names[][2] = {{STR("k8s.node.name"), STR("node")},
                                          {STR("k8s.namespace.name"), STR("namespace")},
                                          {STR("k8s.pod.name"), STR("pod")},
                                          {STR("k8s.container.name"), STR("container")}};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++, p->n++) {
        p->list[p->n].attribute = names[i][0];
        p->list[p->n].label = names[i][1];
    }
}

static int promoted_order(const void *a, const void *b)
{
    const struct otlp_promoted *x = a, *y = b;

    return str_cmp(x->attribute, y->attribute);
}

/* Sorted, as by Prometheus: where two give the same label, the first one wins. */
bool otlp_promote(struct otlp_promotion *p, struct str names)
{
    size_t from = p->n;

    while (names.n) {
        const char *comma = memchr(names.p, ',', names.n);
        size_t n = comma ? (size_t)(comma - names.p) : names.n;
        struct str name = str_trim((struct str){names.p, n});

        if (name.n && p->n == OTLP_MAX_PROMOTED)
            return false;
        if (name.n)
            p->list[p->n++].attribute = name;
        names = (struct str){names.p + n + !!comma, names.n - n - !!comma};
    }
    qsort(p->list + from, p->n - from, sizeof(p->list[0]), promoted_order);
    return true;
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

static struct series_label *labels_find(struct labels *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

/* Takes the text as the value of a label; `replace` decides about one that is there already. */
static void labels_put(struct labels *l, struct str name, bool replace)
{
    struct series_label *old = labels_find(l, name);
    struct str value = labels_keep(l);

    if (old)
        old->value = replace ? value : old->value;
    else if (l->n == ARRAY_SIZE(l->list))
        l->is_bad = true;
    else
        l->list[l->n++] = (struct series_label){name, value};
}

static void labels_write(struct labels *l, struct str s)
{
    if (s.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    else if (buf_put_str(&l->text, s) < 0)
        memory_exhausted(s.n); /* it has no ceiling */
}

static void labels_write_value(struct labels *l, struct str any_value)
{
    if (any_value.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    else
        put_any_value(&l->text, any_value, false);
}

static struct str labels_name(struct labels *l, struct str attribute)
{
    if (attribute.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    else
        put_label_name(&l->text, attribute);
    return labels_keep(l);
}

static bool is_identity(struct str key)
{
    return str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
           str_eq(key, STR("service.instance.id"));
}

/* Values of attributes whose names become the same are joined by a semicolon. */
static void labels_put_attributes(struct labels *l, struct str message, unsigned number, bool skip_identity)
{
    CLEANUP(cleanup_free) struct attribute *list = NULL;
    size_t n = read_attributes(&list, message, number, SERIES_MAX_LABELS);

    l->is_bad |= n > SERIES_MAX_LABELS;
    for (size_t i = 0; i < n && !l->is_bad; i++) {
        const struct series_label *old;
        struct str name;

        if (skip_identity && is_identity(list[i].key))
            continue;
        name = labels_name(l, list[i].key);
        old = labels_find(l, name);
        if (old) {
            labels_write(l, old->value);
            labels_write(l, STR(";"));
        }
        labels_write_value(l, list[i].value);
        labels_put(l, name, true);
    }
}

/* Writes the text of the first attribute with this name; false without one. */
static bool labels_write_attribute(struct labels *l, struct str resource, struct str name)
{
    struct wire w = wire_of(resource);
    struct wire_field f;

    while (wire_find(&w, RESOURCE_ATTRIBUTES, &f))
        if (str_eq(wire_last(f.bytes, KEY_VALUE_KEY).bytes, name)) {
            labels_write_value(l, wire_last(f.bytes, KEY_VALUE_VALUE).bytes);
            return true;
        }
    return false;
}

/* Returns whether there is any. */
static bool labels_put_identity(struct labels *l, struct str resource)
{
    bool named = labels_write_attribute(l, resource, STR("service.name")), has_instance;
    struct str service = labels_keep(l);

    if (named) {
        if (labels_write_attribute(l, resource, STR("service.namespace")))
            labels_write(l, STR("/"));
        labels_write(l, service);
        labels_put(l, STR("job"), true);
    }
    has_instance = labels_write_attribute(l, resource, STR("service.instance.id"));
    if (has_instance)
        labels_put(l, STR("instance"), true);
    return named || has_instance;
}

static void labels_put_promoted(struct labels *l, struct str resource, const struct otlp_promotion *p)
{
    for (size_t i = 0; i < p->n && !l->is_bad; i++) {
        struct str name = p->list[i].label.n ? p->list[i].label : labels_name(l, p->list[i].attribute);

        if (labels_write_attribute(l, resource, p->list[i].attribute))
            labels_put(l, name, false);
    }
}

static void labels_begin(struct labels *l)
{
    arena_done(&l->arena);
    l->text.n = l->n = 0;
    l->is_bad = false;
}

static int label_order(const void *a, const void *b)
{
    return str_cmp(((const struct series_label *)a)->name, ((const struct series_label *)b)->name);
}

/* Enters the series with these labels and this name. */
static unsigned labels_enter(struct labels *l, struct store *store, struct str name, uint64_t hash,
                             struct series **ret)
{
    static const char end = LABEL_END;

    labels_write(l, name);
    labels_put(l, STR("__name__"), true);
    if (l->is_bad)
        return STORE_BAD_LABELS;
    qsort(l->list, l->n, sizeof(*l->list), label_order);
    for (size_t i = 0; i < l->n && l->text.n <= SERIES_MAX_LABEL_BYTES; i++) {
        struct series_label label = l->list[i];

        if (label.name.n == 0 || label.value.n == 0)
            continue;
        labels_write(l, label.name);
        labels_write(l, (struct str){&end, 1});
        labels_write(l, label.value);
        labels_write(l, (struct str){&end, 1});
    }
    return store_enter(store, buf_str(&l->text), hash, ret);
}

/* ---- Reading a point ---- */

/* Appends numbers of a field, packed or not. False if there are too many. */
static bool numbers_add(struct numbers *to, const struct wire_field *f)
{
    size_t n = f->type == WIRE_BYTES ? f->bytes.n / 8 : 1;

    if (n > MAX_BUCKETS - to->n)
        return false;
    memcpy(to->list + to->n, f->type == WIRE_BYTES ? f->bytes.p : (const char *)&f->value, n * 8);
    to->n += n;
    return true;
}

/* Bounds must increase, with one more bucket than bounds, or none. Counts must add up to the count; they are
 * added up in place. */
static bool point_check_histogram(struct point *pt)
{
    const struct numbers *bounds = &pt->bounds;
    uint64_t *counts = pt->counts.list;

    for (size_t i = 0; i < bounds->n; i++)
        if (isnan(wire_double(bounds->list[i])) ||
            (i > 0 && wire_double(bounds->list[i]) <= wire_double(bounds->list[i - 1])))
            return false;
    for (size_t i = 1; i < pt->counts.n; i++)
        if (__builtin_add_overflow(counts[i], counts[i - 1], &counts[i]))
            return false;
    return pt->counts.n == 0 || (pt->counts.n == bounds->n + 1 && counts[bounds->n] == pt->count);
}

/* Fields that only points of this type have. */
static void point_read_field(struct point *pt, const struct wire_field *f, enum otlp_type type)
{
    bool is_number = type != OTLP_HISTOGRAM && type != OTLP_SUMMARY;

    if (is_number && (f->number == NUMBER_DOUBLE || f->number == NUMBER_INT)) {
        pt->value = f->number == NUMBER_INT ? (double)(int64_t)f->value : wire_double(f->value);
        pt->has_value = true;
    } else if (!is_number && f->number == POINT_COUNT) {
        pt->count = f->value;
    } else if (!is_number && f->number == POINT_SUM) {
        pt->sum = wire_double(f->value);
        pt->has_sum = true;
    } else if (type == OTLP_SUMMARY && f->number == SUMMARY_QUANTILES) {
        pt->is_invalid |= ++pt->n_quantiles > MAX_BUCKETS ||
                          isnan(wire_double(wire_last(f->bytes, QUANTILE_QUANTILE).value));
    } else if (type == OTLP_HISTOGRAM && f->number == HISTOGRAM_COUNTS) {
        pt->is_invalid |= !numbers_add(&pt->counts, f);
    } else if (type == OTLP_HISTOGRAM && f->number == HISTOGRAM_BOUNDS) {
        pt->is_invalid |= !numbers_add(&pt->bounds, f);
    }
}

static unsigned point_read(struct point *pt, struct str message, enum otlp_type type, uint64_t temporality)
{
    struct wire w = wire_of(message);
    struct wire_field f;

    pt->message = message;
    pt->attributes_hash = 1;
    pt->start_ns = pt->time_ns = pt->flags = pt->count = 0;
    pt->value = pt->sum = 0;
    pt->has_value = pt->has_sum = pt->is_invalid = false;
    pt->counts.n = pt->bounds.n = pt->n_quantiles = 0;
    if (type == OTLP_EXPONENTIAL)
        return OTLP_UNSUPPORTED;
    while (wire_next(&w, &f)) {
        if (f.number == kinds[type].attributes)
            pt->attributes_hash = hash_chain(pt->attributes_hash, f.bytes);
        else if (f.number == POINT_START)
            pt->start_ns = f.value;
        else if (f.number == POINT_TIME)
            pt->time_ns = f.value;
        else if (f.number == kinds[type].flags)
            pt->flags = f.value;
        else
            point_read_field(pt, &f, type);
    }
    if (kinds[type].temporal && temporality != TEMPORALITY_CUMULATIVE && temporality != TEMPORALITY_DELTA)
        return OTLP_TEMPORALITY;
    if (type == OTLP_HISTOGRAM)
        pt->is_invalid |= !point_check_histogram(pt);
    else if (type != OTLP_SUMMARY)
        pt->is_invalid |= !pt->has_value && !(pt->flags & FLAG_NO_RECORDED_VALUE);
    return pt->is_invalid ? OTLP_INVALID : STORE_OK;
}

/* ---- Storing a point. Lock of the store held ---- */

/* A sample of a point; `bound` is that of a bucket or quantile. */
enum part { PART_VALUE, PART_COUNT, PART_SUM, PART_BUCKET, PART_QUANTILE };

static unsigned ingest_enter(struct ingest *in, enum part part, double bound, uint64_t hash,
                             struct series **ret)
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
    labels_put_attributes(l, in->point.message, kinds[in->metric.type].attributes, false);
    labels_put_promoted(l, in->resource, &in->promotion);
    (void)labels_put_identity(l, in->resource);
    if (part == PART_BUCKET || part == PART_QUANTILE) {
        labels_write(l, (struct str){text, translate_decimal(bound, text)});
        labels_put(l, part == PART_BUCKET ? STR("le") : STR("quantile"), true);
    }
    if (name.n <= SERIES_MAX_LABEL_BYTES && unit.n <= SERIES_MAX_LABEL_BYTES)
        put_metric_name(&l->text, name, unit, in->metric.type);
    if (l->text.n == 0)
        return STORE_BAD_LABELS;
    return labels_enter(l, in->store, str_of(suffixes[part]), hash, ret);
}

/* A series has one writer. Two cumulative ones look like a counter that is reset at each point, and their
 * deltas like overlapping intervals. The writer that started last is heard, until it has been silent for a
 * while. */
static unsigned ingest_check_writer(const struct ingest *in, struct series_writer *s)
{
    const struct point *pt = &in->point;
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

static unsigned ingest_append(struct ingest *in, enum part part, double bound, double value)
{
    uint64_t hash = hash_chain_u64(in->metric.hash, in->point.attributes_hash), bits;
    unsigned result = STORE_OK;
    struct series *x;

    memcpy(&bits, &bound, sizeof(bits));
    if (part != PART_VALUE)
        hash = hash_chain_u64(hash, bits ^ (uint64_t)part << 52);
    x = store_find(in->store, hash);
    if (!x)
        result = ingest_enter(in, part, bound, hash, &x);
    if (result == STORE_OK && (part == PART_VALUE || part == PART_COUNT))
        result = ingest_check_writer(in, series_writer(x));
    if (result != STORE_OK)
        return result;
    if (in->metric.temporality == TEMPORALITY_DELTA)
        value = series_writer(x)->total += value;
    if (in->point.flags & FLAG_NO_RECORDED_VALUE)
        value = value_absent();
    return store_append(in->store, x, (int64_t)(in->point.time_ns / NS_PER_MS), value);
}

/* The samples behind the count. */
static unsigned ingest_append_rest(struct ingest *in)
{
    const struct point *pt = &in->point;
    struct wire w = wire_of(pt->message);
    unsigned result = STORE_OK;
    struct wire_field f;

    if (pt->has_sum || in->metric.type == OTLP_SUMMARY)
        result = ingest_append(in, PART_SUM, 0, pt->sum);
    for (size_t i = 0; i < pt->bounds.n && i < pt->counts.n; i++)
        if (wire_double(pt->bounds.list[i]) != HUGE_VAL)
            result =
                ingest_append(in, PART_BUCKET, wire_double(pt->bounds.list[i]), (double)pt->counts.list[i])
                    ?: result;
    if (in->metric.type == OTLP_HISTOGRAM)
        return ingest_append(in, PART_BUCKET, HUGE_VAL, (double)pt->count) ?: result;
    while (wire_find(&w, SUMMARY_QUANTILES, &f))
        result = ingest_append(in, PART_QUANTILE, wire_double(wire_last(f.bytes, QUANTILE_QUANTILE).value),
                               wire_double(wire_last(f.bytes, QUANTILE_VALUE).value))
                     ?: result;
    return result;
}

/* A point whose first sample belongs to another writer is left out. */
static unsigned ingest_store_point(struct ingest *in)
{
    bool is_number = in->metric.type != OTLP_HISTOGRAM && in->metric.type != OTLP_SUMMARY;
    unsigned result;

    if ((int64_t)(in->point.time_ns / NS_PER_MS) > in->now_ms + STORE_MAX_AHEAD_MS)
        return STORE_TOO_NEW; /* before the time is remembered as that of the last point */
    store_lock(in->store);
    if (is_number)
        result = ingest_append(in, PART_VALUE, 0, in->point.value);
    else
        result = ingest_append(in, PART_COUNT, 0, (double)in->point.count) ?: ingest_append_rest(in);
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
        labels_put_attributes(l, in->resource, RESOURCE_ATTRIBUTES, true);
        if (l->n && labels_put_identity(l, in->resource))
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

static void ingest_points(struct ingest *in, struct str data)
{
    struct wire w = wire_of(data);
    struct wire_field f;

    while (wire_find(&w, DATA_POINTS, &f)) {
        struct point *pt = &in->point;
        unsigned result = point_read(pt, f.bytes, in->metric.type, in->metric.temporality);
        if (pt->time_ns > in->resource_time_ns)
            in->resource_time_ns = pt->time_ns;
        if (result == STORE_OK)
            result = ingest_store_point(in);
        ingest_count(in, result);
    }
}

static void ingest_metric(struct ingest *in, struct str message)
{
    static const struct {
        unsigned field;
        enum otlp_type type;
    } types[] = {{METRIC_GAUGE, OTLP_GAUGE},
                 {METRIC_SUM, OTLP_UP_DOWN_COUNTER},
                 {METRIC_HISTOGRAM, OTLP_HISTOGRAM},
                 {METRIC_EXPONENTIAL, OTLP_EXPONENTIAL},
                 {METRIC_SUMMARY, OTLP_SUMMARY}};
    struct wire_field data = {0};

    in->metric.name = wire_last(message, METRIC_NAME).bytes;
    in->metric.unit = wire_last(message, METRIC_UNIT).bytes;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct wire_field f = wire_last(message, types[i].field);

        if (f.from > data.from || !data.from) { /* of several the last one counts */
            data = f;
            in->metric.type = types[i].type;
        }
    }
    if (!data.from)
        return;
    if (in->metric.type == OTLP_UP_DOWN_COUNTER && wire_last(data.bytes, DATA_MONOTONIC).value)
        in->metric.type = OTLP_COUNTER;
    in->metric.temporality =
        kinds[in->metric.type].temporal ? wire_last(data.bytes, DATA_TEMPORALITY).value : 0;
    in->metric.hash = hash_chain(hash_chain(in->resource_hash, in->metric.name), in->metric.unit);
    in->metric.hash = hash_chain_u64(in->metric.hash, in->metric.type);
    ingest_points(in, data.bytes);
}

static void ingest_resource(struct ingest *in, struct str message)
{
    struct wire w = wire_of(message), scope;
    struct wire_field f;

    in->resource = wire_last(message, RESOURCE_METRICS_RESOURCE).bytes;
    in->resource_hash = hash_bytes(in->resource);
    in->resource_time_ns = 0;
    while (wire_find(&w, RESOURCE_METRICS_SCOPE_METRICS, &f)) {
        scope = wire_of(f.bytes);
        while (wire_find(&scope, SCOPE_METRICS_METRICS, &f))
            ingest_metric(in, f.bytes);
    }
    ingest_store_target_info(in);
}

void ingest_request(struct ingest *in, struct str request, struct ingest_outcome *ret)
{
    struct wire w = wire_of(request);
    struct wire_field f;

    *ret = (struct ingest_outcome){0};
    in->outcome = ret;
    in->now_ms = in->clock->wall(in->clock).ms;
    while (wire_find(&w, EXPORT_RESOURCE_METRICS, &f))
        ingest_resource(in, f.bytes);
}
