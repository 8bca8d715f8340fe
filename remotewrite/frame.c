/* Makes frames and fills them in. Owns nothing but what it returns. Endpoint's thread, though nothing here
 * depends on that. The packer is a snappy compressor that knows where numbers are: it copies labels from
 * earlier series, and never a value or a timestamp, which change each round. */
#include "remotewrite/frame.h"

#include "exporter/base/alloc.h"
#include "exporter/num/num.h"
#include "remotewrite/format.h"
#include "remotewrite/labels.h"

enum {
    HASH_BITS = 14,
    WINDOW = 65535, /* the reach of a copy element of three bytes */
    SHORT_WINDOW = 2047,
    MATCH_MIN = 4,
    RAW_MAX = 48 << 20, /* compressed, it is smaller than RECORD_MAX in any case */
};

/* Where four bytes were seen, and the end of their labels, past which a copy must not read. */
struct seen {
    uint32_t at, end; /* end 0: unused */
};

/* Packs the message series by series. It is never whole in memory: what copies can reach is enough. */
struct packer {
    char *raw; /* the end of the message so far, from position `begin` on */
    uint32_t begin;
    char *out;        /* end of the block so far */
    uint32_t literal; /* start of the bytes not yet packed */
    struct seen *seen;
};

static const char *raw_at(const struct packer *k, uint32_t p)
{
    return k->raw + (p - k->begin);
}

/* Bytes that the length of a long literal takes. */
static size_t literal_length_bytes(size_t n)
{
    if (n <= 256)
        return 1;
    return n <= 65536 ? 2 : 4;
}

static char *put_literal(char *out, const char *p, size_t n)
{
    if (n == 0)
        return out;
    if (n <= 60) {
        *out++ = (char)((n - 1) << 2);
    } else {
        size_t bytes = literal_length_bytes(n);

        *out++ = (char)((59 + bytes) << 2);
        put_le(out, n - 1, bytes);
        out += bytes;
    }
    return mempcpy(out, p, n);
}

static char *put_copy(char *out, size_t back, size_t n)
{
    while (n > 64) {
        size_t some = n < 64 + MATCH_MIN ? 60 : 64;

        *out++ = (char)((some - 1) << 2 | 2);
        put_le(out, back, 2);
        out += 2;
        n -= some;
    }
    if (n >= MATCH_MIN && n < 12 && back <= SHORT_WINDOW) {
        *out++ = (char)((back >> 8) << 5 | (n - 4) << 2 | 1);
        *out++ = (char)back;
        return out;
    }
    *out++ = (char)((n - 1) << 2 | 2);
    put_le(out, back, 2);
    return out + 2;
}

/* Records p and returns the previous position with the same hash. */
static struct seen swap_seen(struct packer *k, uint32_t p, uint32_t end)
{
    struct seen *s = &k->seen[((uint32_t)get_le(raw_at(k, p), 4) * 0x1e35a7bdu) >> (32 - HASH_BITS)],
                was = *s;

    *s = (struct seen){p, end};
    return was;
}

static uint32_t match_length(const struct packer *k, struct seen from, uint32_t p, uint32_t end)
{
    const char *a, *b;
    uint32_t n = 0, most;

    if (from.end == 0 || p - from.at > WINDOW)
        return 0;
    a = raw_at(k, p);
    b = raw_at(k, from.at);
    most = (uint32_t)size_min(end - p, from.end - from.at);
    for (uint64_t differ; most - n >= 8; n += 8)
        if ((differ = get_le(a + n, 8) ^ get_le(b + n, 8)))
            return n + (uint32_t)__builtin_ctzll(differ) / 8;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

/* Packs labels [p, end), with copies of earlier labels where they repeat. Of the positions within a copy only
 * the last is recorded: a series mostly repeats the one before it, up to where that one was new. */
static void pack_labels(struct packer *k, uint32_t p, uint32_t end)
{
    while (p + MATCH_MIN <= end) {
        struct seen from = swap_seen(k, p, end);
        uint32_t n = match_length(k, from, p, end);

        if (n < MATCH_MIN) {
            p++;
            continue;
        }
        k->out = put_literal(k->out, raw_at(k, k->literal), p - k->literal);
        k->out = put_copy(k->out, p - from.at, n);
        p += n;
        k->literal = p;
        if (p - 1 + MATCH_MIN <= end)
            (void)swap_seen(k, p - 1, end);
    }
}

/* Writes a TimeSeries with the value zero. Returns its end; *ret_value points to the value. */
static char *put_series(char *p, struct str labels, size_t time_n, int64_t at, char **ret_value)
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

/* Sets the size of the message, and limits the series to what fits. Returns the size of the largest one. */
static size_t frame_measure(struct frame *f, const struct label_bytes *l, size_t first)
{
    size_t largest = 0;

    for (size_t i = 0; i < f->n; i++) {
        size_t n = label_bytes_at(l, first + i).n + 2 + SAMPLE_FIXED + f->time_n;

        n += 1 + varint_size(n);
        if (i && f->raw_n + n > RAW_MAX) {
            f->n = i;
        } else {
            f->raw_n += n;
            largest = size_max(largest, n);
        }
    }
    return largest;
}

/* Packs series by series. */
static void make_block(struct frame *f, struct packer *k, size_t largest, const struct label_bytes *l,
                       size_t first, int64_t at)
{
    char *p = k->raw, *end = k->raw + 2 * WINDOW + largest, *value;

    k->out = put_varint(f->block, f->raw_n);
    for (size_t i = 0; i < f->n; i++) {
        if ((size_t)(end - p) < largest) {
            k->begin += (uint32_t)(p - k->raw) - WINDOW;
            p = mempcpy(k->raw, p - WINDOW, WINDOW);
        }
        p = put_series(p, label_bytes_at(l, first + i), f->time_n, at, &value);
        pack_labels(k, k->literal, k->begin + (uint32_t)(value - k->raw));
        k->out = put_literal(k->out, raw_at(k, k->literal), (size_t)(p - raw_at(k, k->literal)));
        k->literal = k->begin + (uint32_t)(p - k->raw);
        f->value_at[i] = (uint32_t)(k->out - f->block - (p - value));
        f->series[i] = l->series ? l->series[first + i] : (uint32_t)(first + i);
    }
    f->block_n = (size_t)(k->out - f->block);
}

struct frame *frame_new(const struct label_bytes *l, size_t first, size_t n, int64_t at)
{
    struct frame *f = xcalloc(1, sizeof(*f));
    CLEANUP(cleanup_free) char *raw = NULL;
    CLEANUP(cleanup_free) struct seen *seen = NULL;
    struct packer k = {0};
    size_t largest;

    f->n = n;
    f->time_n = varint_size((uint64_t)at);
    largest = frame_measure(f, l, first);
    k.seen = seen = xcalloc(1u << HASH_BITS, sizeof(*seen));
    k.raw = raw = xmalloc(2 * WINDOW + largest);
    f->block = xmalloc(f->raw_n + f->raw_n / 6 + 8 * f->n + 32);
    f->value_at = xmalloc(f->n * sizeof(f->value_at[0]));
    f->series = xmalloc(f->n * sizeof(f->series[0]));
    make_block(f, &k, largest, l, first, at);
    f->block = xrealloc(f->block, f->block_n);
    return f;
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

void frames_add(struct frames *f, struct frame *one)
{
    f->list = xreallocarray(f->list, f->n + 1, sizeof(f->list[0]));
    f->list[f->n++] = one;
}

void frames_done(struct frames *f)
{
    for (size_t i = 0; i < f->n; i++)
        (void)frame_free(f->list[i]);
    free(f->list);
    *f = (struct frames){0};
}

static inline uint64_t value_bits(double v)
{
    /* A NaN with the bits of the stale marker would end the series. */
    return LIKELY(v == v) ? double_bits(v) : RW_NAN_BITS;
}

/* Stale markers if values is NULL. That and a constant time_n make each store one or two instructions. */
static inline __attribute__((always_inline)) void fill(const struct frame *f, char *out, const double *values,
                                                       const char *time, size_t time_n)
{
    for (size_t i = 0; i < f->n; i++) {
        char *to = out + f->value_at[i];

        put_le(to, values ? value_bits(values[f->series[i]]) : RW_STALE_BITS, 8);
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

void frame_fill_markers(const struct frame *f, char *out, int64_t at)
{
    char time[VARINT_MAX];

    (void)put_varint(time, (uint64_t)at);
    memcpy(out, f->block, f->block_n);
    fill(f, out, NULL, time, f->time_n);
}
