#include "exporter/tsdb/chunk.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A residual is written as a Rice code: its quotient by 2^k in unary, then k bits. From this quotient on a
 * length and that many bits follow instead. */
enum { ESCAPE = 10, LENGTH_BITS = 7, MAX_RICE_BITS = 56 };
/* Instead of a length, in a decimal mode: a value that follows in 64 bits, or a new mode and such a value. */
enum { LENGTH_RAW = 65, LENGTH_MODE = 66 };
/* Values in a row that are no decimal numbers, from which on values are XORed. */
enum { MAX_RAWS = 2 };

enum { SIZE_T, SIZE_D1, SIZE_D2 };

static const double powers[CHUNK_MODE_XOR] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5, 1e6,
                                              1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

static double double_of(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static double unscale(int64_t i, unsigned mode)
{
    return mode ? (double)i / powers[mode] : (double)i;
}

/* Whether v is exactly i / 10^mode, as unscale() computes it. */
static bool scale(uint64_t v, unsigned mode, int64_t *ret)
{
    double scaled = double_of(v) * powers[mode];

    if (!(fabs(scaled) < 0x1p62))
        return false;
    *ret = llrint(scaled);
    return bits_of(unscale(*ret, mode)) == v;
}

static unsigned find_mode(uint64_t v, unsigned from, int64_t *ret)
{
    for (unsigned mode = from; mode < CHUNK_MODE_XOR; mode++)
        if (scale(v, mode, ret))
            return mode;
    return CHUNK_MODE_XOR;
}

/* NaN, stale markers among them, and infinities. */
static bool is_special(uint64_t v)
{
    return (v >> 52 & 0x7ff) == 0x7ff;
}

static uint64_t zigzag(int64_t d)
{
    return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

static int64_t unzigzag(uint64_t z)
{
    return (int64_t)(z >> 1 ^ -(z & 1));
}

/* a - b and a + b, wrapping around. */
static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static unsigned length_of(uint64_t z)
{
    return z ? 64 - (unsigned)__builtin_clzll(z) : 0;
}

static void size_update(uint16_t *size, uint64_t z)
{
    int now = (int)length_of(z) << 8;

    *size = (uint16_t)(*size == UINT16_MAX ? now : *size + ((now - *size) >> 3));
}

static unsigned rice_bits(uint16_t size)
{
    return size == UINT16_MAX ? 0 : size < MAX_RICE_BITS << 8 ? size / 256u : MAX_RICE_BITS;
}

static bool predicts_slope(const struct chunk_codec *c)
{
    return c->sizes[SIZE_D2] < c->sizes[SIZE_D1];
}

static void codec_take_t(struct chunk_codec *c, int64_t t)
{
    int64_t dt = minus(t, c->t);

    if (c->dt) /* the first difference says nothing about what follows */
        size_update(&c->sizes[SIZE_T], zigzag(minus(dt, c->dt)));
    c->dt = dt;
    c->t = t;
}

static void codec_take_i(struct chunk_codec *c, int64_t i)
{
    int64_t d = minus(i, c->i);

    size_update(&c->sizes[SIZE_D1], zigzag(d));
    size_update(&c->sizes[SIZE_D2], zigzag(minus(d, c->di)));
    c->i = i;
    c->di = d;
    c->raws = 0;
}

/* A value that follows in 64 bits, maybe after a change of mode. */
static void codec_take_raw(struct chunk_codec *c, unsigned mode, uint64_t v)
{
    if (mode == c->mode) {
        c->raws = (uint8_t)(c->raws + !is_special(v));
        return;
    }
    c->mode = (uint8_t)mode;
    c->di = 0;
    c->width = 0;
    if (mode < CHUNK_MODE_XOR)
        c->i = llrint(double_of(v) * powers[mode]);
}

/* --- writing --- */

static void bits_put(struct chunk_bits *b, uint64_t v, unsigned n)
{
    unsigned char *p = b->bytes + b->n / 8;
    uint64_t word;

    if (n > 56) {
        bits_put(b, v & UINT32_MAX, 32);
        bits_put(b, v >> 32, n - 32);
        return;
    }
    memcpy(&word, p, sizeof(word));
    word |= v << b->n % 8;
    memcpy(p, &word, sizeof(word));
    b->n += n;
}

static void put_escape(struct chunk_bits *b, unsigned length, uint64_t v, unsigned n)
{
    bits_put(b, ((UINT64_C(1) << ESCAPE) - 1) | (uint64_t)length << ESCAPE, ESCAPE + LENGTH_BITS);
    bits_put(b, v, n);
}

static void put_residual(struct chunk_bits *b, uint64_t z, uint16_t size)
{
    unsigned k = rice_bits(size);
    uint64_t quotient = z >> k;

    if (quotient >= ESCAPE) {
        put_escape(b, length_of(z), z, length_of(z));
        return;
    }
    bits_put(b, (UINT64_C(1) << quotient) - 1, (unsigned)quotient + 1);
    bits_put(b, z & ((UINT64_C(1) << k) - 1), k);
}

static void put_scaled(struct chunk_codec *c, struct chunk_bits *b, uint64_t v)
{
    unsigned mode = c->mode;
    bool slope = predicts_slope(c);
    int64_t i;

    if (LIKELY(scale(v, mode, &i))) {
        int64_t d = minus(i, c->i);

        put_residual(b, zigzag(slope ? minus(d, c->di) : d), c->sizes[slope ? SIZE_D2 : SIZE_D1]);
        codec_take_i(c, i);
        return;
    }
    if (!is_special(v)) {
        unsigned better = find_mode(v, mode + 1, &i);

        if (better < CHUNK_MODE_XOR || c->raws + 1 == MAX_RAWS)
            mode = better;
    }
    put_escape(b, mode == c->mode ? LENGTH_RAW : LENGTH_MODE + mode, v, 64);
    codec_take_raw(c, mode, v);
}

static void put_xor(struct chunk_codec *c, struct chunk_bits *b, uint64_t v)
{
    uint64_t x = v ^ c->v;
    unsigned lead, width;

    if (x == 0) {
        bits_put(b, 0, 1);
        return;
    }
    lead = (unsigned)__builtin_clzll(x);
    width = 64 - lead - (unsigned)__builtin_ctzll(x);
    /* The window of the value before, unless a new one saves more than it costs. */
    if (c->width && lead >= c->lead && 64 - lead - width >= 64u - c->lead - c->width &&
        c->width < width + 12) {
        bits_put(b, 1, 2);
    } else {
        bits_put(b, 3 | (uint64_t)lead << 2 | (uint64_t)(width - 1) << 8, 14);
        c->lead = (uint8_t)lead;
        c->width = (uint8_t)width;
    }
    bits_put(b, x >> (64 - c->lead - c->width), c->width);
}

void chunk_codec_init(struct chunk_codec *c)
{
    *c = (struct chunk_codec){.sizes = {UINT16_MAX, UINT16_MAX, UINT16_MAX}};
}

/* The state after the first sample. */
static void codec_start(struct chunk_codec *c, const struct chunk_head *head)
{
    *c = (struct chunk_codec){.t = head->t, .v = head->v, .mode = head->mode};
    for (size_t k = 0; k < ARRAY_SIZE(c->sizes); k++)
        c->sizes[k] = (uint16_t)(head->sizes[k] == UINT8_MAX ? UINT16_MAX : head->sizes[k] << 6);
    if (c->mode < CHUNK_MODE_XOR)
        c->i = llrint(double_of(head->v) * powers[c->mode]);
}

void chunk_start(struct chunk_head *head, struct chunk_codec *c, int64_t t, uint64_t v)
{
    int64_t i;

    *head = (struct chunk_head){.t = t, .v = v, .count = 1, .mode = (uint8_t)find_mode(v, 0, &i)};
    for (size_t k = 0; k < ARRAY_SIZE(c->sizes); k++)
        head->sizes[k] = c->sizes[k] >= UINT8_MAX << 6 ? UINT8_MAX : (uint8_t)(c->sizes[k] >> 6);
    codec_start(c, head);
}

void chunk_encode(struct chunk_codec *c, struct chunk_bits *out, int64_t t, uint64_t v)
{
    put_residual(out, zigzag(minus(minus(t, c->t), c->dt)), c->sizes[SIZE_T]);
    codec_take_t(c, t);
    if (c->mode < CHUNK_MODE_XOR)
        put_scaled(c, out, v);
    else
        put_xor(c, out, v);
    c->v = v;
}

/* --- reading --- */

/* The next n bits, at most 64. False past the end. */
static bool bits_get(struct chunk_reader *r, unsigned n, uint64_t *ret)
{
    const unsigned char *p = r->p + r->at / 8;
    unsigned shift = r->at % 8;
    uint64_t word;

    if (r->end - r->at < n)
        return false;
    memcpy(&word, p, sizeof(word));
    word >>= shift;
    if (shift + n > 64)
        word |= (uint64_t)p[8] << (64 - shift);
    *ret = n == 64 ? word : word & ((UINT64_C(1) << n) - 1);
    r->at += n;
    return true;
}

/* The number of ones before a zero, which is read, too; ESCAPE ones are not followed by a zero. */
static bool get_unary(struct chunk_reader *r, unsigned *ret)
{
    uint32_t word;

    memcpy(&word, r->p + r->at / 8, sizeof(word));
    *ret = (unsigned)__builtin_ctz(~(word >> r->at % 8) | 1u << ESCAPE);
    if (r->end - r->at < *ret + (*ret < ESCAPE))
        return false;
    r->at += *ret + (*ret < ESCAPE);
    return true;
}

/* Sets *ret_length to the length of an escaped residual, or what else stands in its place; 0 without one. */
static bool get_residual(struct chunk_reader *r, uint16_t size, uint64_t *ret, uint64_t *ret_length)
{
    unsigned k = rice_bits(size), quotient;

    *ret_length = 0;
    if (!get_unary(r, &quotient))
        return false;
    if (quotient == ESCAPE)
        return bits_get(r, LENGTH_BITS, ret_length) &&
               bits_get(r, *ret_length < 64 ? (unsigned)*ret_length : 64, ret);
    if (!bits_get(r, k, ret))
        return false;
    *ret |= (uint64_t)quotient << k;
    return true;
}

static bool get_t(struct chunk_reader *r)
{
    struct chunk_codec *c = &r->codec;
    uint64_t z, length;

    if (!get_residual(r, c->sizes[SIZE_T], &z, &length) || length > 64)
        return false;
    codec_take_t(c, plus(c->t, plus(c->dt, unzigzag(z))));
    return true;
}

static bool get_scaled(struct chunk_reader *r)
{
    struct chunk_codec *c = &r->codec;
    bool slope = predicts_slope(c);
    uint64_t z, length;

    if (!get_residual(r, c->sizes[slope ? SIZE_D2 : SIZE_D1], &z, &length))
        return false;
    if (length <= 64) {
        codec_take_i(c, plus(c->i, plus(slope ? c->di : 0, unzigzag(z))));
        c->v = bits_of(unscale(c->i, c->mode));
        return true;
    }
    c->v = z;
    if (length > LENGTH_MODE + CHUNK_MODE_XOR)
        return false;
    codec_take_raw(c, length == LENGTH_RAW ? c->mode : (unsigned)length - LENGTH_MODE, z);
    return true;
}

static bool get_xor(struct chunk_reader *r)
{
    struct chunk_codec *c = &r->codec;
    uint64_t x;

    if (!bits_get(r, 1, &x))
        return false;
    if (x == 0)
        return true;
    if (!bits_get(r, 1, &x))
        return false;
    if (x) {
        if (!bits_get(r, 12, &x) || (x & 63) + (x >> 6) + 1 > 64)
            return false;
        c->lead = x & 63;
        c->width = (uint8_t)((x >> 6) + 1);
    }
    if (c->width == 0 || !bits_get(r, c->width, &x))
        return false;
    c->v ^= x << (64 - c->lead - c->width);
    return true;
}

void chunk_reader_init(struct chunk_reader *r, const struct chunk_head *head, const unsigned char *p)
{
    *r = (struct chunk_reader){.p = p, .end = head->bits, .left = head->count, .first = true};
    codec_start(&r->codec, head);
}

int chunk_next(struct chunk_reader *r, int64_t *ret_t, uint64_t *ret_v)
{
    if (r->left == 0)
        return 0;
    if (!r->first && !(get_t(r) && (r->codec.mode < CHUNK_MODE_XOR ? get_scaled(r) : get_xor(r))))
        return -EBADMSG;
    r->first = false;
    r->left--;
    *ret_t = r->codec.t;
    *ret_v = r->codec.v;
    return 1;
}
