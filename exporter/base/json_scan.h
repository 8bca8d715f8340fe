/* Private to json*.c: scans many bytes at once.
 *
 * Every scanner takes a position and returns the position after what it read, or sets the error and returns
 * NULL. Nothing is read at or after j->end. With DS_NO_SIMD and without SSE2, 8-byte words are used. */
#ifndef DS_BASE_JSON_SCAN_H
#define DS_BASE_JSON_SCAN_H

#include "exporter/base/def.h"
#include "exporter/base/json.h"

#include <stdint.h>

#if defined(__SSE2__) && !defined(DS_NO_SIMD)
#include <emmintrin.h>

/* One bit for each of the 16 bytes at p that is not a digit. */
static inline uint32_t scan_not_digits(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    /* Moves '0'..'9' to the bottom of the signed range, so that one comparison finds them. */
    __m128i low = _mm_add_epi8(v, _mm_set1_epi8(128 - '0'));

    return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(low, _mm_set1_epi8(-128 + 9)));
}

static inline uint32_t scan_stops_half(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    /* As signed bytes, control characters and non-ASCII are below the space. */
    __m128i odd = _mm_cmplt_epi8(v, _mm_set1_epi8(' '));
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(odd, _mm_or_si128(quote, backslash)));
}

/* One bit for each of the 32 bytes at p that may end or interrupt a string: quote, backslash, control, not
 * ASCII. */
static inline uint32_t scan_stops(const char *p)
{
    return scan_stops_half(p) | scan_stops_half(p + 16) << 16;
}

#else
#include <endian.h>
#include <string.h>

static inline uint64_t scan_word(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

#define SCAN_EACH(byte) ((byte)*0x0101010101010101ULL)

/* The top bits of eight bytes as eight bits, the first byte lowest. */
static inline uint32_t scan_gather(uint64_t tops)
{
    return (uint32_t)(((tops & SCAN_EACH(0x80)) >> 7) * 0x0102040810204080ULL >> 56);
}

/* In both below, additions to bytes of seven bits never carry into the next byte. */
static inline uint32_t scan_not_digits_word(const char *p)
{
    uint64_t v = scan_word(p), seven = v & SCAN_EACH(0x7f);

    return scan_gather(v | ~(seven + SCAN_EACH(0x80 - '0')) | (seven + SCAN_EACH(0x80 - '9' - 1)));
}

static inline uint32_t scan_stops_word(const char *p)
{
    uint64_t v = scan_word(p), seven = v & SCAN_EACH(0x7f);
    uint64_t control = ~(seven + SCAN_EACH(0x80 - ' '));
    uint64_t quote = ~((seven ^ SCAN_EACH('"')) + SCAN_EACH(0x7f));
    uint64_t backslash = ~((seven ^ SCAN_EACH('\\')) + SCAN_EACH(0x7f));

    return scan_gather(v | control | quote | backslash);
}

static inline uint32_t scan_not_digits(const char *p)
{
    return scan_not_digits_word(p) | scan_not_digits_word(p + 8) << 8;
}

static inline uint32_t scan_stops(const char *p)
{
    return scan_stops_word(p) | scan_stops_word(p + 8) << 8 | scan_stops_word(p + 16) << 16 |
           scan_stops_word(p + 24) << 24;
}
#endif

enum { SCAN_STOPS = 32, SCAN_DIGITS = 16, SCAN_BLOCK = 64 };

/* Sets the error, which is "unexpected end" at the end of the text. Returns NULL. */
const char *jr_scan_fail(struct jr *j, const char *at, const char *why);
/* Reads to the closing quote, byte by byte where necessary. */
const char *jr_scan_string_rest(struct jr *j, const char *p);

/* The byte at p; at the end NUL, which no rule accepts. */
static inline char scan_at(const struct jr *j, const char *p)
{
    return p < j->end ? *p : '\0';
}

static inline bool scan_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline const char *scan_space(const struct jr *j, const char *p)
{
    if (LIKELY(p < j->end && (unsigned char)*p > ' '))
        return p;
    while (p < j->end && scan_is_space(*p))
        p++;
    return p;
}

static inline uint64_t scan_block(const char *p)
{
    return scan_stops(p) | (uint64_t)scan_stops(p + SCAN_STOPS) << SCAN_STOPS;
}

/* p is after the opening quote; returns the closing one. A block often holds several short strings; finding
 * the next quote in its bits takes a third of the time of scanning again. Blocks are consecutive, so that the
 * processor can scan one before p is known. */
static inline __attribute__((always_inline)) const char *scan_string(struct jr *j, const char *p)
{
    size_t at = (size_t)(p - j->block);
    uint64_t stops = at < SCAN_BLOCK ? j->stops >> at : 0;

    if (UNLIKELY(!stops)) {
        if (j->end - p < 2 * SCAN_BLOCK)
            return jr_scan_string_rest(j, p);
        j->block = at < 2 * SCAN_BLOCK ? j->block + SCAN_BLOCK : p;
        j->stops = scan_block(j->block);
        if (p < j->block)
            p = j->block;
        stops = j->stops >> (p - j->block);
        if (!stops)
            return jr_scan_string_rest(j, p);
    }
    p += __builtin_ctzll(stops);
    return LIKELY(*p == '"') ? p : jr_scan_string_rest(j, p);
}

/* Reads a member's name and the colon; *ret is the name raw between its quotes. */
static inline const char *scan_name(struct jr *j, const char *p, struct str *ret)
{
    const char *close;

    if (UNLIKELY(scan_at(j, p) != '"'))
        return jr_scan_fail(j, p, "expected a name in quotes");
    close = scan_string(j, p + 1);
    if (UNLIKELY(!close))
        return NULL;
    *ret = (struct str){p + 1, (size_t)(close - p - 1)};
    p = scan_space(j, close + 1);
    if (UNLIKELY(scan_at(j, p) != ':'))
        return jr_scan_fail(j, p, "expected ':'");
    return p + 1;
}

static inline bool scan_in_object(const struct jr *j)
{
    return j->kinds[(j->depth - 1) / 64] >> (j->depth - 1) % 64 & 1;
}

/* Enters the object or array that starts at p. */
static inline const char *scan_enter(struct jr *j, const char *p)
{
    uint64_t bit = 1ULL << j->depth % 64, *word;

    if (UNLIKELY(j->depth == JR_MAX_DEPTH))
        return jr_scan_fail(j, p, "nested deeper than 256 levels");
    word = &j->kinds[j->depth / 64];
    *word = *p == '{' ? *word | bit : *word & ~bit;
    j->depth++;
    return p + 1;
}

#endif
