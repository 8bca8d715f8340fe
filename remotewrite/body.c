/* Reads and makes request bodies: joins payloads, unpacks and prints them, and makes other forms from their
 * series. Owns nothing but what it returns. Any thread; payloads may come from a damaged file, and are
 * checked. */
#include "remotewrite/body.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/strset.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/families.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/packer.h"
#include "remotewrite/relabel.h"

#include <errno.h>
#include <snappy-c.h>
#include <zstd.h>

/* ---- Messages ---- */

enum { ZSTD_LEVEL = 1 };
enum { SERIES_LABEL = 1, SERIES_SAMPLE = 2 }; /* fields of prometheus.TimeSeries */

/* Takes a length-delimited field from the beginning of `rest`; *ret is its content. False without one. */
static bool field_take(struct str *rest, uint64_t *ret_number, struct str *ret)
{
    const char *end = rest->p + rest->n, *p;
    uint64_t tag, n;

    if (rest->n == 0 || !(p = get_varint(rest->p, end, &tag)) || (tag & 7) != 2 ||
        !(p = get_varint(p, end, &n)) || n > (uint64_t)(end - p))
        return false;
    *ret_number = tag >> 3;
    *ret = (struct str){p, n};
    *rest = (struct str){p + n, (size_t)(end - p) - n};
    return true;
}

/* Takes a label from the beginning of a TimeSeries, if it begins with one. */
static bool label_take(struct str *rest, struct label *ret)
{
    struct str after = *rest, label;
    uint64_t number;

    if (!field_take(&after, &number, &label) || number != SERIES_LABEL ||
        !field_take(&label, &number, &ret->name) || !field_take(&label, &number, &ret->value))
        return false;
    *rest = after;
    return true;
}

/* The content of an encoded series: its labels, then its one sample. Empty if there is none. */
static struct str series_content(struct str series)
{
    struct str content = STR("");
    uint64_t number;

    return field_take(&series, &number, &content) ? content : STR("");
}

/* Reads the sample that begins `rest`; *ret is the message. */
static bool sample_take(struct str rest, uint64_t *ret_bits, int64_t *ret_at, struct str *ret)
{
    uint64_t number, at;

    if (!field_take(&rest, &number, ret) || number != SERIES_SAMPLE || ret->n < SAMPLE_FIXED ||
        ret->p[0] != 0x09 || ret->p[9] != 0x10 || !get_varint(ret->p + SAMPLE_FIXED, ret->p + ret->n, &at))
        return false;
    *ret_bits = get_le(ret->p + 1, 8);
    *ret_at = (int64_t)at;
    return true;
}

int body_unpack(struct str block, struct buf *into)
{
    size_t n;
    char *room;
    int r;

    if (snappy_uncompressed_length(block.p, block.n, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (n > BODY_MAX)
        return -EFBIG;
    r = buf_reserve(into, n, &room);
    if (r < 0)
        return r;
    if (snappy_uncompress(block.p, block.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    into->n += n;
    return 0;
}

int body_series(struct str message, struct str **ret, size_t *ret_n)
{
    CLEANUP(cleanup_free) struct str *list = NULL;
    size_t n = 0, cap = 0;
    struct str content;
    uint64_t number;

    while (message.n) {
        const char *begin = message.p;

        if (!field_take(&message, &number, &content))
            return -EBADMSG;
        if (number != 1)
            continue;
        if (n == cap)
            list = xrealloc(list, (cap = size_max(64, cap * 2)) * sizeof(*list));
        list[n++] = (struct str){begin, (size_t)(message.p - begin)};
    }
    *ret = TAKE_PTR(list);
    *ret_n = n;
    return 0;
}

/* The labels of an encoded series, as they stand there. */
static struct str series_labels_field(struct str series)
{
    struct str rest = series_content(series), labels = rest;
    struct label label;

    while (label_take(&rest, &label))
        ;
    return (struct str){labels.p, (size_t)(rest.p - labels.p)};
}

uint64_t body_series_hash(struct str series)
{
    return hash_bytes(series_labels_field(series));
}

int body_labels(struct str block, struct label_bytes *into)
{
    BUF_AUTO(message, BODY_MAX);
    CLEANUP(cleanup_free) struct str *series = NULL;
    size_t n = 0;
    int r = body_unpack(block, &message) ?: body_series(buf_str(&message), &series, &n);

    if (r < 0)
        return r;
    into->at = xreallocarray(into->at, into->n + n + 1, sizeof(into->at[0]));
    into->at[0] = 0;
    for (size_t i = 0; i < n; i++) {
        buf_put_str(&into->bytes, series_labels_field(series[i]));
        r = buf_failed(&into->bytes);
        if (r < 0)
            return r;
        into->at[++into->n] = into->bytes.n;
    }
    return 0;
}

int body_join(const struct str *blocks, size_t n, struct buf *into)
{
    uint64_t total = 0, length;
    char head[VARINT_MAX];

    for (size_t i = 0; i < n; i++) {
        if (!get_varint(blocks[i].p, blocks[i].p + blocks[i].n, &length))
            return -EBADMSG;
        total += length;
    }
    buf_put(into, head, (size_t)(put_varint(head, total) - head));
    for (size_t i = 0; i < n; i++) {
        const char *end = blocks[i].p + blocks[i].n, *rest = get_varint(blocks[i].p, end, &length);

        buf_put(into, rest, (size_t)(end - rest));
    }
    return buf_failed(into);
}

/* ---- 2.0 ---- */

/* In 1.0, and with the same numbers in 2.0. */
static const Rw__V1__MetricMetadata__Type wire_types[] = {
    [METRIC_TYPE_COUNTER] = RW__V1__METRIC_METADATA__TYPE__COUNTER,
    [METRIC_TYPE_GAUGE] = RW__V1__METRIC_METADATA__TYPE__GAUGE,
    [METRIC_TYPE_HISTOGRAM] = RW__V1__METRIC_METADATA__TYPE__HISTOGRAM,
};

enum {
    V2_REF_MAX = 5,     /* bytes of a reference to a symbol */
    V2_SERIES_MAX = 64, /* of a series without its references */
    V2_SYMBOLS = 4,     /* fields of io.prometheus.write.v2.Request */
    V2_TIMESERIES = 5,
};

/* A label, and its references to symbols. */
struct v2_label {
    struct str field; /* as 1.0 has it */
    struct str name, value;
    size_t name_ref, value_ref;
};

struct v2_message {
    struct strset symbols;
    struct buf series;
    const struct families *own;
    struct v2_label last[LABELS_MAX]; /* at each place, the one seen last: most series repeat most of it */
};

static void v2_message_done(struct v2_message *m)
{
    strset_done(&m->symbols);
    buf_done(&m->series);
}

/* Type and help, unless they are unknown: of own metrics from before a restart that relabelling renamed. */
static char *v2_put_metadata(char *p, struct v2_message *m, const struct family *f)
{
    size_t help;

    if (!f)
        return p;
    help = strset_add(&m->symbols, str_of(f->help));
    p = put_tag(p, 5, 3 + varint_size(help));
    *p++ = 1 << 3;
    p = put_varint(p, wire_types[f->type]);
    *p++ = 3 << 3;
    return put_varint(p, help);
}

/* The sample of 1.0 has the same fields. Those of own counters also get the start of the process, unless they
 * are of an earlier one. */
static char *v2_put_sample(char *p, const struct v2_message *m, const struct family *f, struct str sample,
                           int64_t at)
{
    int64_t start =
        m->own && f && f->type != METRIC_TYPE_GAUGE && m->own->started_ms <= at ? m->own->started_ms : 0;

    p = put_tag(p, 2, sample.n + (start ? 1 + varint_size((uint64_t)start) : 0));
    p = mempcpy(p, sample.p, sample.n);
    if (start) {
        *p++ = 3 << 3;
        p = put_varint(p, (uint64_t)start);
    }
    return p;
}

/* Takes the next label, at its place, from the beginning of `rest`. */
static bool v2_label_take(struct v2_message *m, struct v2_label *l, struct str *rest)
{
    struct str after = *rest;
    struct label label;

    if (l->field.n && l->field.n <= rest->n && memcmp(l->field.p, rest->p, l->field.n) == 0) {
        *rest = (struct str){rest->p + l->field.n, rest->n - l->field.n};
        return true;
    }
    if (!label_take(&after, &label))
        return false;
    if (!str_eq(label.name, l->name))
        l->name_ref = strset_add(&m->symbols, label.name);
    l->value_ref = strset_add(&m->symbols, label.value);
    l->field = (struct str){rest->p, rest->n - after.n};
    l->name = label.name;
    l->value = label.value;
    *rest = after;
    return true;
}

static int v2_add_series(struct v2_message *m, struct str rest)
{
    static const struct family score_family = {.type = METRIC_TYPE_GAUGE, .help = SCORE_HELP};
    const struct family *family = m->own ? NULL : &score_family;
    char refs[2 * LABELS_MAX * V2_REF_MAX], more[V2_SERIES_MAX], *end = refs, *p = more, *to;
    struct str sample;
    uint64_t bits;
    int64_t at;
    size_t refs_n, n;

    for (struct v2_label *l = m->last; l < m->last + LABELS_MAX && v2_label_take(m, l, &rest); l++) {
        end = put_varint(put_varint(end, l->name_ref), l->value_ref);
        if (m->own && str_eq(l->name, STR("__name__")))
            family = families_find(m->own, l->value);
    }
    if (!sample_take(rest, &bits, &at, &sample) || sample.n > SAMPLE_FIXED + VARINT_MAX)
        return -EBADMSG;
    p = v2_put_metadata(v2_put_sample(p, m, family, sample, at), m, family);
    refs_n = (size_t)(end - refs);
    n = 1 + varint_size(refs_n) + refs_n + (size_t)(p - more);
    if (buf_reserve(&m->series, 1 + VARINT_MAX + n, &to) < 0)
        return -EFBIG;
    end = put_tag(put_tag(to, V2_TIMESERIES, n), 1, refs_n);
    end = mempcpy(mempcpy(end, refs, refs_n), more, (size_t)(p - more));
    m->series.n += (size_t)(end - to);
    return 0;
}

/* Appends the 2.0 message of series of a 1.0 message, with type and help. */
static int v2_message_put(const struct str *series, size_t n, const struct families *own, struct buf *into)
{
    CLEANUP(v2_message_done) struct v2_message m = {.series = {.max = BODY_MAX}, .own = own};
    int r = 0;

    (void)strset_add(&m.symbols, STR("")); /* the first symbol is empty */
    for (size_t i = 0; i < n && r == 0; i++)
        r = v2_add_series(&m, series_content(series[i]));
    if (r < 0)
        return r;
    for (size_t i = 0; i < m.symbols.n; i++) {
        char head[1 + VARINT_MAX];

        buf_put(into, head, (size_t)(put_tag(head, V2_SYMBOLS, m.symbols.list[i].n) - head));
        buf_put_str(into, m.symbols.list[i]);
    }
    buf_put_str(into, buf_str(&m.series));
    return buf_failed(into);
}

/* ---- Bodies from payloads ---- */

static int put_compressed(struct str message, bool zstd, struct buf *into)
{
    size_t n = zstd ? ZSTD_compressBound(message.n) : snappy_max_compressed_length(message.n);
    char *room;
    int r = buf_reserve(into, n, &room);

    if (r < 0)
        return r;
    if (zstd)
        n = ZSTD_compress(room, n, message.p, message.n, ZSTD_LEVEL);
    else if (snappy_compress(message.p, message.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (zstd && ZSTD_isError(n))
        return -EBADMSG;
    into->n += n;
    return 0;
}

int body_make(enum rw_form form, const struct str *series, size_t n, const struct families *own,
              struct buf *into)
{
    BUF_AUTO(made, BODY_MAX);
    struct str message = {n ? series->p : NULL, 0};
    size_t i = 0;
    int r = 0;

    /* Most often the series follow each other in one message, which needs no copy. */
    for (; i < n && series[i].p == message.p + message.n; i++)
        message.n += series[i].n;
    if (form == RW_FORM_V2) {
        r = v2_message_put(series, n, own, &made);
    } else if (i < n) {
        for (i = 0; i < n; i++)
            buf_put_str(&made, series[i]);
        r = buf_failed(&made);
    }
    return r ?: put_compressed(made.n ? buf_str(&made) : message, form == RW_FORM_VM, into);
}

static int put_family(const struct family *f, struct buf *message)
{
    CLEANUP(cleanup_free) char *stem = str_dup((struct str){f->name, f->stem_n});
    Rw__V1__MetricMetadata m = RW__V1__METRIC_METADATA__INIT, *place = &m;
    Rw__V1__WriteRequest rq = RW__V1__WRITE_REQUEST__INIT;
    char *room;

    m.type = wire_types[f->type];
    m.metric_family_name = stem;
    m.help = (char *)(uintptr_t)f->help;
    rq.metadata = &place;
    rq.n_metadata = 1;
    if (buf_reserve(message, rw__v1__write_request__get_packed_size(&rq), &room) < 0)
        return -EFBIG;
    message->n += rw__v1__write_request__pack(&rq, (uint8_t *)room);
    return 0;
}

int metadata_body(enum rw_form form, const struct families *families, struct buf *into)
{
    BUF_AUTO(message, BODY_MAX);
    int r = 0;

    for (size_t i = 0; i < families->names.n && r == 0; i++) {
        const struct family *f = families->list[i];
        const char *suffix = f->name + f->stem_n;

        /* Of a histogram's names, the one that ends with _count stands for the family. */
        if (!*suffix || strcmp(suffix, "_count") == 0)
            r = put_family(f, &message);
    }
    return r < 0 || message.n == 0 ? r : put_compressed(buf_str(&message), form == RW_FORM_VM, into);
}

/* ---- Text ---- */

/* Appends `name{label="value",...}` of the labels, and takes them from `rest`. */
static void put_name(struct str *rest, struct buf *into)
{
    struct str labels = *rest;
    const char *before = "{";
    struct label label;

    while (label_take(rest, &label))
        if (str_eq(label.name, STR("__name__")))
            buf_put_str(into, label.value);
    while (label_take(&labels, &label)) {
        if (str_eq(label.name, STR("__name__")))
            continue;
        buf_puts(into, before);
        buf_put_str(into, label.name);
        buf_puts(into, "=\"");
        buf_put_label_value(into, label.value);
        buf_putc(into, '"');
        before = ",";
    }
    if (*before == ',')
        buf_putc(into, '}');
}

int body_series_name(struct str series, struct buf *into)
{
    struct str content = series_content(series);

    if (content.n == 0)
        return -EBADMSG;
    put_name(&content, into);
    return buf_failed(into);
}

int body_print(struct str block, struct buf *into)
{
    BUF_AUTO(message, BODY_MAX);
    CLEANUP(cleanup_free) struct str *series = NULL;
    size_t n = 0;
    int r = body_unpack(block, &message) ?: body_series(buf_str(&message), &series, &n);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        struct str rest = series_content(series[i]), sample;
        uint64_t bits;
        int64_t at;

        put_name(&rest, into);
        if (!sample_take(rest, &bits, &at, &sample))
            return -EBADMSG;
        if (bits == RW_STALE_BITS)
            buf_puts(into, " stale");
        else
            buf_printf(into, " %.17g", double_of(bits));
        buf_printf(into, " %lld\n", (long long)at);
    }
    return buf_failed(into);
}
