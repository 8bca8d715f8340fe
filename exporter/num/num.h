/* Doubles as text: the shortest form that reads back the same (Schubfach, Giulietti 2020), and back again,
 * with strtod() for the rare inputs that the fast path cannot decide. Both are exact. */
#pragma once

#include "exporter/base/str.h"

enum { NUM_MAX = 32 };

/* Writes v and returns the length (at most 24, no NUL); the rest of `out` is scratch. The digits are the
 * shortest that read back as v, and among those the nearest to it. Decimal notation ("0.00001",
 * "123456789", "-0") for 1e-5 <= |v| < 1e17 and zero, otherwise scientific notation with sign and no
 * padding: "1e+22", "1.5e-7". "NaN", "+Inf", "-Inf" as the exposition formats write them. */
size_t num_put_double(char out[NUM_MAX], double v);
/* Decimal digits of v; returns the length (at most 20). The rest of `out` is scratch. */
size_t num_put_u64(char out[NUM_MAX], uint64_t v);

enum num_result { NUM_OK, NUM_SYNTAX, NUM_RANGE };

/* Reads a number in JSON's grammar (RFC 8259) that fills s exactly. NUM_RANGE when it overflows to infinity,
 * or has more than 64 KiB and no short form (*ret is then +-HUGE_VAL); underflow gives the nearest subnormal
 * or a signed zero and NUM_OK. */
enum num_result num_parse(struct str s, double *ret);
/* As num_parse(), and the words that Prometheus writes into JSON strings: NaN, Inf, +Inf, -Inf; a leading
 * '+' is taken too. No surrounding white space. */
enum num_result num_parse_word(struct str s, double *ret);

/* ---- Varints, as in protobuf and snappy ---- */

enum { VARINT_MAX = 10 };

static inline size_t varint_size(uint64_t v)
{
    return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}

static inline char *put_varint(char *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (char)(v | 0x80);
    *p++ = (char)v;
    return p;
}

/* Returns the end of the number, or NULL if it is incomplete or too long. */
static inline const char *get_varint(const char *p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        unsigned char c = (unsigned char)*p++;

        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *ret = v;
            return p;
        }
    }
    return NULL;
}
