#include "exporter/metric/deflate.h"

#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <zlib.h>

enum { HASH_BITS = 14, WINDOW = 32768, MIN_MATCH = 4, MAX_MATCH = 258 };

/* A Huffman code as it goes into the stream, least significant bit first. */
struct code {
    uint32_t bits;
    uint32_t n;
};

static struct code literal_code[257];          /* the last is "end of block" */
static struct code length_code[MAX_MATCH + 1]; /* with its extra bits */
static struct code distance_code[30];
static uint16_t distance_base[30];
static uint8_t distance_symbol[256 + 256]; /* of d - 1: below 256 directly, above by its upper bits */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static uint32_t reversed(uint32_t v, unsigned n)
{
    uint32_t r = 0;

    for (; n; n--, v >>= 1)
        r = r << 1 | (v & 1);
    return r;
}

/* RFC 1951, 3.2.6. */
static struct code fixed_code(unsigned symbol)
{
    if (symbol < 144)
        return (struct code){reversed(0x30 + symbol, 8), 8};
    if (symbol < 256)
        return (struct code){reversed(0x190 + symbol - 144, 9), 9};
    if (symbol < 280)
        return (struct code){reversed(symbol - 256, 7), 7};
    return (struct code){reversed(0xc0 + symbol - 280, 8), 8};
}

/* Length symbols 257..284 come in groups of four, each with one more extra bit; 285 is 258 exactly. */
static void make_length_codes(void)
{
    unsigned base = 3;

    for (unsigned symbol = 257; symbol < 285; symbol++) {
        unsigned extra = symbol < 265 ? 0 : (symbol - 261) / 4;
        struct code c = fixed_code(symbol);
        for (unsigned i = 0; i < 1u << extra && base + i <= MAX_MATCH; i++)
            length_code[base + i] = (struct code){c.bits | i << c.n, c.n + extra};
        base += 1u << extra;
    }
    length_code[MAX_MATCH] = fixed_code(285);
}

static unsigned distance_extra(unsigned symbol)
{
    return symbol < 4 ? 0 : symbol / 2 - 1;
}

static void make_distance_codes(void)
{
    unsigned base = 1;

    for (unsigned symbol = 0; symbol < 30; symbol++) {
        unsigned extra = distance_extra(symbol);
        distance_code[symbol] = (struct code){reversed(symbol, 5), 5};
        distance_base[symbol] = (uint16_t)base;
        for (unsigned d = base - 1; d < base - 1 + (1u << extra); d++)
            distance_symbol[d < 256 ? d : 256 + (d >> 7)] = (uint8_t)symbol;
        base += 1u << extra;
    }
}

static void make_tables(void)
{
    for (unsigned i = 0; i <= 256; i++)
        literal_code[i] = fixed_code(i);
    make_length_codes();
    make_distance_codes();
}

struct bits {
    uint64_t acc;
    unsigned n; /* bits in acc, below 8 after a flush */
    uint8_t *out;
};

static inline void put(struct bits *b, struct code c)
{
    b->acc |= (uint64_t)c.bits << b->n;
    b->n += c.n;
}

/* Writes eight bytes and advances by the whole ones: the caller has left room. */
static inline void flush(struct bits *b)
{
    memcpy(b->out, &b->acc, sizeof(b->acc));
    b->out += b->n >> 3;
    b->acc >>= b->n & ~7u;
    b->n &= 7;
}

static inline uint32_t load32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint32_t slot_of(const char *p)
{
    return (load32(p) * 0x9e3779b1u) >> (32 - HASH_BITS);
}

/* How far a and b agree, b being the later; `most` bytes may be read from b. */
static inline unsigned match_length(const char *a, const char *b, size_t most)
{
    unsigned n = 0;

    most = size_min(most, MAX_MATCH);
    while (n + 8 <= most) {
        uint64_t x, y;
        memcpy(&x, a + n, 8);
        memcpy(&y, b + n, 8);
        if (x != y)
            return n + ((unsigned)__builtin_ctzll(x ^ y) >> 3);
        n += 8;
    }
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

static inline void put_match(struct bits *b, unsigned length, unsigned distance)
{
    unsigned d = distance - 1;
    unsigned symbol = distance_symbol[d < 256 ? d : 256 + (d >> 7)];
    unsigned extra = distance_extra(symbol);

    put(b, length_code[length]);
    put(b, distance_code[symbol]);
    put(b, (struct code){distance - distance_base[symbol], extra});
    flush(b);
}

static void put_text(struct bits *b, struct str text, uint32_t *head)
{
    const char *p = text.p;
    size_t i = 0;

    while (i + MIN_MATCH <= text.n) {
        uint32_t *slot = &head[slot_of(p + i)];
        size_t before = *slot; /* place + 1 */
        *slot = (uint32_t)i + 1;
        if (before && i + 1 - before < WINDOW && load32(p + before - 1) == load32(p + i)) {
            unsigned n = match_length(p + before - 1, p + i, text.n - i);
            put_match(b, n, (unsigned)(i + 1 - before));
            i += n;
        } else {
            put(b, literal_code[(uint8_t)p[i++]]);
            flush(b);
        }
    }
    for (; i < text.n; i++) {
        put(b, literal_code[(uint8_t)p[i]]);
        flush(b);
    }
}

int deflate_piece(struct buf *into, struct str text)
{
    CLEANUP(cleanup_free) uint32_t *head = NULL;
    struct bits b = {0};
    char *to;
    int r;

    if (text.n == 0)
        return 0;
    if (text.n >= UINT32_MAX)
        return -EFBIG;
    (void)pthread_once(&tables_once, make_tables);
    /* At worst nine bits a byte, two block headers, and the eight bytes that flush() writes at once. */
    r = buf_room(into, text.n + text.n / 8 + 32, &to);
    if (r < 0)
        return r;
    head = calloc((size_t)1 << HASH_BITS, sizeof(*head));
    if (!head)
        return -ENOMEM;
    b.out = (uint8_t *)to;
    put(&b, (struct code){2, 3}); /* not the last block; fixed codes */
    put_text(&b, text, head);
    put(&b, literal_code[256]);
    put(&b, (struct code){0, 3}); /* an empty stored block, whose length starts on a byte border */
    b.n = (b.n + 7) & ~7u;
    flush(&b);
    memcpy(b.out, "\0\0\xff\xff", 4);
    into->n += (size_t)((char *)b.out + 4 - to);
    return 0;
}

/* Deflate, no name, no time, fastest, Unix. */
const struct str gzip_begin = {"\x1f\x8b\x08\0\0\0\0\0\x04\x03", 10};

void gzip_end(char out[GZIP_END_BYTES], uint32_t crc, uint64_t text_bytes)
{
    uint32_t n = (uint32_t)text_bytes;

    out[0] = 3; /* last block, fixed codes, its end at once */
    out[1] = 0;
    for (unsigned i = 0; i < 4; i++) {
        out[2 + i] = (char)(crc >> (8 * i));
        out[6 + i] = (char)(n >> (8 * i));
    }
}

uint32_t gzip_crc(struct str text)
{
    return text.n ? libdeflate_crc32(0, text.p, text.n) : 0;
}

uint32_t gzip_crc_join(uint32_t first, uint32_t second, uint64_t second_bytes)
{
    return gzip_crc_join_shifted(first, second, gzip_crc_shift(second_bytes));
}

uint32_t gzip_crc_shift(uint64_t bytes)
{
    return (uint32_t)crc32_combine_gen64((z_off64_t)bytes);
}

uint32_t gzip_crc_join_shifted(uint32_t first, uint32_t second, uint32_t second_shift)
{
    return (uint32_t)crc32_combine_op(first, second, second_shift);
}
