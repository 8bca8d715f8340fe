/* Looks at many bytes of JSON at once. */
#pragma once

#include <endian.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SCAN_STOPS = 32 };

typedef signed char scan_bytes __attribute__((vector_size(16)));

/* A bit for each of the bytes, whose bits are all alike. */
static inline uint32_t scan_bits(scan_bytes mask)
{
#if defined(__SSE2__) && !defined(DS_NO_SIMD)
    return (uint32_t)_mm_movemask_epi8((__m128i)mask);
#else
    uint64_t half[2];

    memcpy(half, &mask, sizeof(half));
    for (int i = 0; i < 2; i++) /* moves the top bit of each byte into the top byte */
        half[i] = ((le64toh(half[i]) & 0x8080808080808080u) >> 7) * 0x0102040810204080u >> 56;
    return (uint32_t)(half[0] | half[1] << 8);
#endif
}

/* One bit for each of the 16 bytes at p that is not a digit. */
static inline uint32_t scan_not_digits(const char *p)
{
    scan_bytes v;

    memcpy(&v, p, sizeof(v));
    return scan_bits((v < '0') | (v > '9'));
}

/* One bit for each of the 32 bytes at p that may end or interrupt a string: quote, backslash, control, not
 * ASCII. As signed bytes, the latter two are below the space. */
static inline uint32_t scan_stops(const char *p)
{
    scan_bytes a, b;

    memcpy(&a, p, sizeof(a));
    memcpy(&b, p + sizeof(a), sizeof(b));
    return scan_bits((a < ' ') | (a == '"') | (a == '\\')) | scan_bits((b < ' ') | (b == '"') | (b == '\\'))
                                                                 << 16;
}

/* The next byte that may end or interrupt a string, or the end. */
static inline const char *scan_plain(const char *p, const char *end)
{
    uint32_t stops;

    for (; end - p >= SCAN_STOPS; p += SCAN_STOPS) {
        stops = scan_stops(p);
        if (stops)
            return p + __builtin_ctz(stops);
    }
    while (p < end && (unsigned char)(*p - ' ') < 0x80 - ' ' && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* -1 if it is none. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
