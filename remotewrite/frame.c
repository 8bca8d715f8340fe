#include "remotewrite/frame.h"

#include "exporter/base/varint.h"
#include "remotewrite/bytes.h"

#include <errno.h>

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
    CLEANUP(cleanup_frame_free) struct frame *f = calloc(1, sizeof(*f));
    CLEANUP(cleanup_free) char *raw = NULL;
    CLEANUP(cleanup_free) struct seen *seen = calloc(1u << HASH_BITS, sizeof(*seen));
    struct packer k = {0};
    char *shrunk;

    if (!f || !seen)
        return -ENOMEM;
    f->n = n;
    f->time_n = frame_time_bytes(at);
    f->raw_n = raw_size(f, l, pick, first);
    if (f->raw_n > RAW_MAX)
        return -EFBIG;
    raw = malloc(f->raw_n + 1);
    f->block = malloc(f->raw_n + f->raw_n / 6 + 8 * n + 32);
    f->value_at = malloc((n + 1) * sizeof(f->value_at[0]));
    f->series = malloc((n + 1) * sizeof(f->series[0]));
    if (!raw || !f->block || !f->value_at || !f->series)
        return -ENOMEM;
    k = (struct packer){.raw = raw, .seen = seen};
    make_block(f, &k, raw, l, pick, first, at);
    shrunk = realloc(f->block, f->block_n);
    f->block = shrunk ? shrunk : f->block;
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
