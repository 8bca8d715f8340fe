/* Owns the window of a packer and its table of what was seen there. */
#include "remotewrite/packer.h"

#include "exporter/base/alloc.h"
#include "exporter/num/num.h"
#include "remotewrite/format.h"

enum {
    HASH_BITS = 14,
    RAW_ROOM = 2 * PACKER_WINDOW + 4096, /* so that the window is moved once in as many bytes */
    POSITION_MAX = 1 << 30,              /* after which a packer that learns again and again begins anew */
    SHORT_WINDOW = 2047,
    MATCH_MIN = 4,
};

static const char *raw_at(const struct packer *k, uint32_t p)
{
    return k->raw + (p - k->begin);
}

static uint32_t raw_end(const struct packer *k)
{
    return k->begin + (uint32_t)(k->end - k->raw);
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

char *packer_put_copy(char *out, size_t back, size_t n)
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
static struct packer_seen swap_seen(struct packer *k, uint32_t p, uint32_t end)
{
    struct packer_seen *s = &k->seen[((uint32_t)get_le(raw_at(k, p), 4) * 0x1e35a7bdu) >> (32 - HASH_BITS)],
                       was = *s;

    *s = (struct packer_seen){p, end};
    return was;
}

static uint32_t match_length(const struct packer *k, struct packer_seen from, uint32_t p, uint32_t end)
{
    const char *a, *b;
    uint32_t n = 0, most;

    if (from.end == 0 || from.at < k->oldest || p - from.at > PACKER_WINDOW)
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
        struct packer_seen from = swap_seen(k, p, end);
        uint32_t n = match_length(k, from, p, end);

        if (n < MATCH_MIN) {
            p++;
            continue;
        }
        k->out = put_literal(k->out, raw_at(k, k->literal), p - k->literal);
        k->out = packer_put_copy(k->out, p - from.at, n);
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
    return put_varint(p + VALUE_TO_TIME, (uint64_t)at);
}

void packer_init(struct packer *k)
{
    *k = (struct packer){.raw_cap = RAW_ROOM};
    k->raw = k->end = xmalloc(k->raw_cap);
    k->seen = xcalloc(1u << HASH_BITS, sizeof(*k->seen));
}

void packer_done(struct packer *k)
{
    free(TAKE_PTR(k->raw));
    free(TAKE_PTR(k->seen));
}

/* Makes room for n more bytes of the message, and keeps what copies can reach. */
static void packer_expect(struct packer *k, size_t n)
{
    size_t used = (size_t)(k->end - k->raw), keep = size_min(used, PACKER_WINDOW);

    if (k->raw_cap - used >= n)
        return;
    memmove(k->raw, k->end - keep, keep);
    k->begin += (uint32_t)(used - keep);
    if (k->raw_cap - keep < n) {
        k->raw_cap = keep + n;
        k->raw = xrealloc(k->raw, k->raw_cap);
    }
    k->end = k->raw + keep;
}

char *packer_put(struct packer *k, struct str labels, size_t time_n, int64_t at)
{
    char *value;

    packer_expect(k, packer_series_size(labels.n, time_n));
    k->end = put_series(k->end, labels, time_n, at, &value);
    pack_labels(k, k->literal, k->begin + (uint32_t)(value - k->raw));
    k->out = put_literal(k->out, raw_at(k, k->literal), (size_t)(k->end - raw_at(k, k->literal)));
    k->literal = raw_end(k);
    return k->out - (k->end - value);
}

void packer_learn(struct packer *k, struct str labels, size_t time_n, int64_t at)
{
    char *value;

    if (k->begin > POSITION_MAX) {
        memset(k->seen, 0, sizeof(*k->seen) << HASH_BITS);
        k->begin = 0;
    }
    k->begin = k->oldest = raw_end(k);
    k->end = value = k->raw;
    if (labels.n > 0) {
        packer_expect(k, packer_series_size(labels.n, time_n));
        k->end = put_series(k->raw, labels, time_n, at, &value);
    }
    for (const char *p = k->raw; p + MATCH_MIN <= value; p++)
        (void)swap_seen(k, k->begin + (uint32_t)(p - k->raw), k->begin + (uint32_t)(value - k->raw));
    k->literal = raw_end(k);
}
