#include "remotewrite/body.h"

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/varint.h"
#include "exporter/metric/series.h"
#include "remote_v1.pb-c.h"
#include "remote_v2.pb-c.h"
#include "remotewrite/bytes.h"
#include "remotewrite/labels.h"
#include "remotewrite/metadata.h"

#include <errno.h>
#include <snappy-c.h>
#include <zstd.h>

/* ---- Frames ---- */

enum {
    HASH_BITS = 14,
    WINDOW = 65535, /* the reach of a copy element of three bytes */
    SHORT_WINDOW = 2047,
    MATCH_MIN = 4,
    SAMPLE_FIXED = 10, /* tag, value, tag */
    RAW_MAX = 128 << 20,
};

/* Where four bytes were seen, and the end of their labels, past which a copy must not read. */
struct seen {
    uint32_t at, end; /* end 0: unused */
};

struct packer {
    const char *raw;
    char *out;        /* end of the block so far */
    uint32_t literal; /* start of the bytes not yet packed */
    struct seen *seen;
};

static char *put_literal(char *out, const char *p, size_t n)
{
    if (n == 0)
        return out;
    if (n <= 60) {
        *out++ = (char)((n - 1) << 2);
    } else if (n <= 256) {
        *out++ = (char)(60 << 2);
        *out++ = (char)(n - 1);
    } else if (n <= 65536) {
        *out++ = (char)(61 << 2);
        put_u16(out, (uint16_t)(n - 1));
        out += 2;
    } else {
        *out++ = (char)(63 << 2);
        put_u32(out, (uint32_t)(n - 1));
        out += 4;
    }
    return mempcpy(out, p, n);
}

static char *put_copy(char *out, size_t back, size_t n)
{
    while (n > 64) {
        size_t some = n < 64 + MATCH_MIN ? 60 : 64;

        *out++ = (char)((some - 1) << 2 | 2);
        put_u16(out, (uint16_t)back);
        out += 2;
        n -= some;
    }
    if (n >= MATCH_MIN && n < 12 && back <= SHORT_WINDOW) {
        *out++ = (char)((back >> 8) << 5 | (n - 4) << 2 | 1);
        *out++ = (char)back;
        return out;
    }
    *out++ = (char)((n - 1) << 2 | 2);
    put_u16(out, (uint16_t)back);
    return out + 2;
}

/* Records p and returns the previous position with the same hash. */
static struct seen swap_seen(struct packer *k, uint32_t p, uint32_t end)
{
    struct seen *s = &k->seen[(get_u32(k->raw + p) * 0x1e35a7bdu) >> (32 - HASH_BITS)], was = *s;

    *s = (struct seen){p, end};
    return was;
}

static uint32_t match_length(const struct packer *k, struct seen from, uint32_t p, uint32_t end)
{
    uint32_t n = 0;

    if (from.end == 0 || p - from.at > WINDOW)
        return 0;
    while (p + n < end && from.at + n < from.end && k->raw[p + n] == k->raw[from.at + n])
        n++;
    return n;
}

/* Packs labels [p, end), with copies of earlier labels where they repeat. */
static void pack_labels(struct packer *k, uint32_t p, uint32_t end)
{
    while (p + MATCH_MIN <= end) {
        struct seen from = swap_seen(k, p, end);
        uint32_t n = match_length(k, from, p, end);

        if (n < MATCH_MIN) {
            p++;
            continue;
        }
        k->out = put_literal(k->out, k->raw + k->literal, p - k->literal);
        k->out = put_copy(k->out, p - from.at, n);
        for (uint32_t i = p + 1; i < p + n && i + MATCH_MIN <= end; i++)
            (void)swap_seen(k, i, end);
        p += n;
        k->literal = p;
    }
}

/* Packs the rest up to `end`, the end of a sample, as one literal. */
static void pack_sample(struct packer *k, uint32_t end)
{
    k->out = put_literal(k->out, k->raw + k->literal, end - k->literal);
    k->literal = end;
}

unsigned frame_time_bytes(int64_t at)
{
    return (unsigned)varint_size((uint64_t)at);
}

/* Writes a TimeSeries with the value zero. Returns its end; *ret_value points to the value. */
static char *put_series(char *p, struct str labels, unsigned time_n, int64_t at, char **ret_value)
{
    size_t sample = SAMPLE_FIXED + time_n;

    *p++ = 0x0a;
    p = put_varint(p, labels.n + 2 + sample);
    p = mempcpy(p, labels.p, labels.n);
    *p++ = 0x12;
    *p++ = (char)sample;
    *p++ = 0x09;
    *ret_value = p;
    memset(p, 0, 8);
    p[8] = 0x10;
    return put_varint(p + 9, (uint64_t)at);
}

static size_t raw_size(const struct frame *f, const struct label_bytes *l, const uint32_t *pick, size_t first)
{
    size_t total = 0;

    for (size_t i = 0; i < f->n; i++) {
        size_t n = label_bytes_at(l, pick ? pick[i] : first + i).n + 2 + SAMPLE_FIXED + f->time_n;
        total += 1 + varint_size(n) + n;
    }
    return total;
}

/* Writes the message to raw and packs it series by series. */
static void make_block(struct frame *f, struct packer *k, char *raw, const struct label_bytes *l,
                       const uint32_t *pick, size_t first, int64_t at)
{
    char *p = raw, *value;

    k->out = put_varint(f->block, f->raw_n);
    for (size_t i = 0; i < f->n; i++) {
        size_t place = pick ? pick[i] : first + i;
        uint32_t begin = (uint32_t)(p - raw);

        p = put_series(p, label_bytes_at(l, place), f->time_n, at, &value);
        pack_labels(k, begin, (uint32_t)(value - raw));
        pack_sample(k, (uint32_t)(p - raw));
        f->value_at[i] = (uint32_t)(k->out - f->block - (p - value));
        f->series[i] = l->series ? l->series[place] : (uint32_t)place;
    }
    f->block_n = (size_t)(k->out - f->block);
}

int frame_new(struct frame **ret, const struct label_bytes *l, const uint32_t *pick, size_t first, size_t n,
              int64_t at)
{
    CLEANUP(cleanup_frame_free) struct frame *f = xcalloc(1, sizeof(*f));
    CLEANUP(cleanup_free) char *raw = NULL;
    CLEANUP(cleanup_free) struct seen *seen = xcalloc(1u << HASH_BITS, sizeof(*seen));
    struct packer k = {.seen = seen};

    f->n = n;
    f->time_n = frame_time_bytes(at);
    f->raw_n = raw_size(f, l, pick, first);
    if (f->raw_n > RAW_MAX)
        return -EFBIG;
    k.raw = raw = xmalloc(f->raw_n + 1);
    f->block = xmalloc(f->raw_n + f->raw_n / 6 + 8 * n + 32);
    f->value_at = xmalloc(n * sizeof(f->value_at[0]));
    f->series = xmalloc(n * sizeof(f->series[0]));
    make_block(f, &k, raw, l, pick, first, at);
    f->block = xrealloc(f->block, f->block_n);
    *ret = TAKE_PTR(f);
    return 0;
}

struct frame *frame_free(struct frame *f)
{
    if (!f)
        return NULL;
    free(f->block);
    free(f->value_at);
    free(f->series);
    free(f);
    return NULL;
}

static inline uint64_t value_bits(double v)
{
    uint64_t bits = RW_NAN_BITS;

    /* A NaN with the bits of the stale marker would end the series. */
    if (LIKELY(v == v))
        memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* A constant time_n makes each store one or two instructions. */
static inline __attribute__((always_inline)) void fill(const struct frame *f, char *out, const double *values,
                                                       const char *time, size_t time_n)
{
    for (size_t i = 0; i < f->n; i++) {
        char *to = out + f->value_at[i];

        put_u64(to, values ? value_bits(values[f->series[i]]) : RW_STALE_BITS);
        memcpy(to + 9, time, time_n);
    }
}

void frame_fill(const struct frame *f, char *out, const double *values, int64_t at)
{
    char time[VARINT_MAX];

    (void)put_varint(time, (uint64_t)at);
    memcpy(out, f->block, f->block_n);
    if (LIKELY(f->time_n == 6))
        fill(f, out, values, time, 6);
    else
        fill(f, out, values, time, f->time_n);
}

/* ---- 2.0 ---- */

enum { CHUNK_BYTES = 256 << 10 };

/* Memory for the message read: protobuf-c allocates a dozen pieces per series, all freed at once. */
static void *message_alloc(void *arg, size_t n)
{
    return arena_alloc(arg, n);
}

static void message_free(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

/* The parts of a 2.0 message; strings stay where protobuf-c put them. */
struct v2_message {
    struct arena memory; /* of all below */
    Rw__V1__WriteRequest *v1;
    char **symbols;
    size_t n_symbols;
    uint32_t *slots; /* indices of symbols by hash; 0: free, because the empty string is never looked up */
    size_t mask;
    uint32_t *refs;
    Rw__V2__TimeSeries *series, **series_places;
    Rw__V2__Sample *samples, **sample_places;
    Rw__V2__Metadata *metadata; /* one per series; refer to help */
    const struct families *own;
};

static void v2_message_done(struct v2_message *m)
{
    arena_done(&m->memory);
}

static int v2_message_reserve(struct v2_message *m)
{
    size_t labels = 0, samples = 0, slots = 16, n = m->v1->n_timeseries;

    for (size_t i = 0; i < n; i++) {
        labels += m->v1->timeseries[i]->n_labels;
        samples += m->v1->timeseries[i]->n_samples;
    }
    while (slots < (2 * labels + n + 2) * 2)
        slots *= 2;
    m->mask = slots - 1;
    if (!(m->slots = arena_alloc(&m->memory, slots * sizeof(m->slots[0]))) ||
        !(m->symbols = arena_alloc(&m->memory, (2 * labels + n + 2) * sizeof(char *))) ||
        !(m->refs = arena_alloc(&m->memory, 2 * labels * sizeof(m->refs[0]))) ||
        !(m->series = arena_alloc(&m->memory, n * sizeof(m->series[0]))) ||
        !(m->series_places = arena_alloc(&m->memory, n * sizeof(m->series_places[0]))) ||
        !(m->samples = arena_alloc(&m->memory, samples * sizeof(m->samples[0]))) ||
        !(m->metadata = arena_alloc(&m->memory, n * sizeof(m->metadata[0]))) ||
        !(m->sample_places = arena_alloc(&m->memory, samples * sizeof(m->sample_places[0]))))
        return -ENOMEM;
    memset(m->slots, 0, slots * sizeof(m->slots[0]));
    return 0;
}

static uint32_t v2_symbol(struct v2_message *m, char *text)
{
    size_t i;

    if (!*text)
        return 0;
    i = hash_bytes(str_of(text)) & m->mask;
    while (m->slots[i]) {
        if (strcmp(m->symbols[m->slots[i]], text) == 0)
            return m->slots[i];
        i = (i + 1) & m->mask;
    }
    m->symbols[m->n_symbols] = text;
    return m->slots[i] = (uint32_t)m->n_symbols++;
}

static const struct family score_family = {.type = FAMILY_GAUGE, .help = SCORE_HELP};

/* NULL if unknown: of own metrics from before a restart that relabelling renamed. */
static const struct family *v2_family(const struct v2_message *m, const Rw__V1__TimeSeries *s)
{
    if (!m->own)
        return &score_family;
    for (size_t i = 0; i < s->n_labels; i++)
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            return families_find(m->own, str_of(s->labels[i]->value));
    return NULL;
}

static void v2_set_metadata(struct v2_message *m, const struct family *f, Rw__V2__TimeSeries *to,
                            Rw__V2__Metadata *metadata)
{
    rw__v2__metadata__init(metadata);
    metadata->has_type = metadata->has_help_ref = true;
    metadata->type = (Rw__V2__Metadata__Type)f->type;
    metadata->help_ref = v2_symbol(m, (char *)(uintptr_t)f->help);
    to->metadata = metadata;
}

static void v2_set_sample(const struct v2_message *m, const struct family *f, const Rw__V1__Sample *from,
                          Rw__V2__Sample *to)
{
    rw__v2__sample__init(to);
    to->has_value = to->has_timestamp = true;
    to->value = from->value;
    to->timestamp = from->timestamp;
    /* Samples from before are of an earlier process. */
    if (m->own && f && f->type != FAMILY_GAUGE && m->own->started_ms &&
        m->own->started_ms <= from->timestamp) {
        to->has_start_timestamp = true;
        to->start_timestamp = m->own->started_ms;
    }
}

/* Adds series i; refs and samples come from the shared arrays, from *refs and *samples on. */
static void v2_message_add(struct v2_message *m, size_t i, size_t *refs, size_t *samples)
{
    const Rw__V1__TimeSeries *from = m->v1->timeseries[i];
    Rw__V2__TimeSeries *to = m->series_places[i] = &m->series[i];
    const struct family *family = v2_family(m, from);

    rw__v2__time_series__init(to);
    to->labels_refs = m->refs + *refs;
    to->n_labels_refs = 2 * from->n_labels;
    for (size_t k = 0; k < from->n_labels; k++) {
        m->refs[(*refs)++] = v2_symbol(m, from->labels[k]->name);
        m->refs[(*refs)++] = v2_symbol(m, from->labels[k]->value);
    }
    if (family)
        v2_set_metadata(m, family, to, &m->metadata[i]);
    to->samples = m->sample_places + *samples;
    to->n_samples = from->n_samples;
    for (size_t k = 0; k < from->n_samples; k++, (*samples)++) {
        m->sample_places[*samples] = &m->samples[*samples];
        v2_set_sample(m, family, from->samples[k], &m->samples[*samples]);
    }
}

/* Appends the 2.0 message with type and help. Counters of `own` metrics get a start timestamp too. -EBADMSG,
 * -ENOMEM, -EFBIG. */
static int v2_message_put(struct str v1, const struct families *own, struct buf *into)
{
    static char empty[] = "";
    CLEANUP(v2_message_done) struct v2_message m = {.memory = {.chunk_bytes = CHUNK_BYTES}, .own = own};
    ProtobufCAllocator memory = {.alloc = message_alloc, .free = message_free, .allocator_data = &m.memory};
    Rw__V2__Request rq = RW__V2__REQUEST__INIT;
    size_t refs = 0, samples = 0;
    char *room;
    int r;

    m.v1 = rw__v1__write_request__unpack(&memory, v1.n, (const uint8_t *)v1.p);
    if (!m.v1)
        return -EBADMSG;
    r = v2_message_reserve(&m);
    if (r < 0)
        return r;
    m.symbols[m.n_symbols++] = empty;
    for (size_t i = 0; i < m.v1->n_timeseries; i++)
        v2_message_add(&m, i, &refs, &samples);
    rq.symbols = m.symbols;
    rq.n_symbols = m.n_symbols;
    rq.timeseries = m.series_places;
    rq.n_timeseries = m.v1->n_timeseries;
    r = buf_room(into, rw__v2__request__get_packed_size(&rq), &room);
    if (r == 0)
        into->n += rw__v2__request__pack(&rq, (uint8_t *)room);
    return r;
}

/* ---- Bodies from payloads ---- */

enum { ZSTD_LEVEL = 1 };

int body_unpack(struct str block, struct buf *into)
{
    size_t n;
    char *room;
    int r;

    if (snappy_uncompressed_length(block.p, block.n, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (n > BODY_MAX)
        return -EFBIG;
    r = buf_room(into, n, &room);
    if (r < 0)
        return r;
    if (snappy_uncompress(block.p, block.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    into->n += n;
    return 0;
}

/* Skips a field, which must be length-delimited; *ret_field is its number. NULL if there is none. */
static const char *next_field(const char *p, const char *end, uint64_t *ret_field)
{
    uint64_t tag, n;

    p = get_varint(p, end, &tag);
    if (!p || (tag & 7) != 2)
        return NULL;
    p = get_varint(p, end, &n);
    if (!p || n > (uint64_t)(end - p))
        return NULL;
    *ret_field = tag >> 3;
    return p + n;
}

int body_series(struct str message, struct str **ret, size_t *ret_n)
{
    CLEANUP(cleanup_free) struct str *list = NULL;
    const char *p = message.p, *end = message.p + message.n, *next;
    size_t n = 0, cap = 0;
    uint64_t field;

    for (; p < end; p = next) {
        next = next_field(p, end, &field);
        if (!next)
            return -EBADMSG;
        if (field != 1)
            continue;
        if (n == cap) {
            struct str *more = xrealloc(list, (cap = size_max(64, cap * 2)) * sizeof(*list));

            list = more;
        }
        list[n++] = (struct str){p, (size_t)(next - p)};
    }
    *ret = TAKE_PTR(list);
    *ret_n = n;
    return 0;
}

static int put_compressed(struct str message, bool zstd, struct buf *into)
{
    size_t n = zstd ? ZSTD_compressBound(message.n) : snappy_max_compressed_length(message.n);
    char *room;
    int r = buf_room(into, n, &room);

    if (r < 0)
        return r;
    if (zstd)
        n = ZSTD_compress(room, n, message.p, message.n, ZSTD_LEVEL);
    else if (snappy_compress(message.p, message.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (zstd && ZSTD_isError(n))
        return -ENOMEM;
    into->n += n;
    return 0;
}

int body_put(enum rw_form form, struct str message, const struct families *own, struct buf *into)
{
    BUF_AUTO(v2, BODY_MAX);
    int r = form == RW_FORM_V2 ? v2_message_put(message, own, &v2) : 0;

    return r ?: put_compressed(form == RW_FORM_V2 ? buf_str(&v2) : message, form == RW_FORM_VM, into);
}

uint64_t body_series_hash(struct str series)
{
    const char *end = series.p + series.n, *labels, *p, *next;
    uint64_t field;

    /* A tag of one byte and the length, then the labels, then the samples. */
    p = labels = get_varint(series.p + 1, end, &field);
    while (p && p < end && (next = next_field(p, end, &field)) && field == 1)
        p = next;
    return p ? hash_bytes((struct str){labels, (size_t)(p - labels)}) : 0;
}

/* The series of the part, which are contiguous, unless some are skipped. */
static int part_message(const struct str *series, const struct body_part *part, struct buf *kept,
                        struct str *ret)
{
    struct str first = series[part->from], last = series[part->to - 1];
    int r = 0;

    *ret = (struct str){first.p, (size_t)(last.p + last.n - first.p)};
    if (!part->skip)
        return 0;
    for (size_t i = part->from; i < part->to && r == 0; i++)
        if (!part->skip[i])
            r = buf_put_str(kept, series[i]);
    *ret = buf_str(kept);
    return r;
}

int body_make(enum rw_form form, struct str block, const struct body_part *part, struct buf *into)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    BUF_AUTO(kept, BODY_MAX);
    struct str content;
    size_t n;
    int r = body_unpack(block, &message) ?: body_series(buf_str(&message), &series, &n);

    if (r < 0)
        return r;
    if (part->from >= part->to || part->to > n)
        return -EBADMSG;
    r = part_message(series, part, &kept, &content);
    return r < 0 ? r : body_put(form, content, part->own, into);
}

static int put_name(const Rw__V1__TimeSeries *s, struct buf *into)
{
    const char *before = "{";
    int r = 0;

    for (size_t i = 0; i < s->n_labels && r == 0; i++)
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            r = buf_puts(into, s->labels[i]->value);
    for (size_t i = 0; i < s->n_labels && r == 0; i++) {
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            continue;
        r = buf_printf(into, "%s%s=\"", before, s->labels[i]->name);
        r = r ?: buf_put_label_value(into, str_of(s->labels[i]->value)) ?: buf_putc(into, '"');
        before = ",";
    }
    return r == 0 && *before == ',' ? buf_putc(into, '}') : r;
}

static void request_free(Rw__V1__WriteRequest **rq)
{
    rw__v1__write_request__free_unpacked(*rq, NULL);
}

int body_series_name(struct str series, struct buf *into)
{
    CLEANUP(request_free)
    Rw__V1__WriteRequest *rq = rw__v1__write_request__unpack(NULL, series.n, (const uint8_t *)series.p);

    if (!rq || rq->n_timeseries != 1)
        return -EBADMSG;
    return put_name(rq->timeseries[0], into);
}

static int print_series(const Rw__V1__TimeSeries *s, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; i < s->n_samples && r == 0; i++) {
        uint64_t bits;

        memcpy(&bits, &s->samples[i]->value, sizeof(bits));
        r = put_name(s, into);
        if (r == 0 && bits == RW_STALE_BITS)
            r = buf_puts(into, " stale");
        else if (r == 0)
            r = buf_printf(into, " %.17g", s->samples[i]->value);
        r = r ?: buf_printf(into, " %lld\n", (long long)s->samples[i]->timestamp);
    }
    return r;
}

int body_print(struct str block, struct buf *into)
{
    CLEANUP(request_free) Rw__V1__WriteRequest *rq = NULL;
    BUF_AUTO(message, BODY_MAX);
    int r = body_unpack(block, &message);

    if (r < 0)
        return r;
    rq = rw__v1__write_request__unpack(NULL, message.n, (const uint8_t *)message.p);
    if (!rq)
        return -EBADMSG;
    for (size_t i = 0; i < rq->n_timeseries && r == 0; i++)
        r = print_series(rq->timeseries[i], into);
    return r;
}
