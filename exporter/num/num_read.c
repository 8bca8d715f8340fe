/* Reading. The digits become a 64-bit integer w and a power of ten q. Small ones are exact in double
 * arithmetic (Clinger 1990); the others are multiplied by 128 bits of 10^q, which settles the nearest
 * double for every w and q (Lemire 2021; Mushtak and Lemire 2023 show that no case is left open). More
 * than 19 digits leave w between two integers: where both give one double, that is it, and otherwise
 * strtod() decides on a shortened copy. */
#include "exporter/num/num.h"

#include "exporter/base/def.h"
#include "exporter/num/num_pow10.h"

#include <endian.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

enum {
    FRACTION_BITS = 52,
    EXPONENT_MAX = 0x7ff,
    Q_MIN = NUM_POW10_FIRST, /* below it even 2^64 * 10^q is nearer to 0 than to any double */
    Q_MAX = 308,
    W_DIGITS = 19,    /* that always fit 64 bits */
    TIE_DIGITS = 768, /* no tie between two doubles has more, so what follows only matters as zero or not */
    CLINGER_MAX = 22  /* 10^22 is the last power of ten that a double holds exactly */
};

/* Far outside any double, and far inside int64_t: an exponent is not read further, but digits count
 * against it. */
static const int64_t EXPONENT_ENOUGH = 1000000000000000;

struct number {
    const char *digits, *digits_end; /* with the point among them, if there is one */
    int64_t q;                       /* power of ten of the last digit */
    uint64_t w;                      /* the digits as an integer, right while fits_w() */
    bool point, negative;
};

/* Whether eight bytes are all digits. */
static inline bool eight_are_digits(uint64_t v)
{
    return ((v & 0xf0f0f0f0f0f0f0f0) | ((v + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) ==
           0x3333333333333333;
}

/* Their value: digits are joined to pairs, pairs to fours, fours to eight. */
static inline uint32_t eight_value(uint64_t v)
{
    v = (v & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    v = (v & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (uint32_t)((v & 0x0000ffff0000ffff) * 42949672960001 >> 32);
}

/* Reads digits into *w, which wraps around, and returns where they end. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *w)
{
    uint64_t v;

    while (end - p >= 8) {
        memcpy(&v, p, sizeof v);
        v = le64toh(v);
        if (!eight_are_digits(v))
            break;
        *w = *w * 100000000 + eight_value(v);
        p += 8;
    }
    for (; p < end && (unsigned char)(*p - '0') < 10; p++)
        *w = *w * 10 + (unsigned char)(*p - '0');
    return p;
}

/* Reads what follows the letter e, into *ret. Returns where it ends, or NULL. */
static const char *read_exponent(const char *p, const char *end, int64_t *ret)
{
    int64_t e = 0;
    bool negative = p < end && *p == '-';
    const char *from;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (from = p; p < end && (unsigned char)(*p - '0') < 10; p++)
        if (e < EXPONENT_ENOUGH)
            e = e * 10 + (*p - '0');
    *ret = negative ? -e : e;
    return p > from ? p : NULL;
}

/* Takes the text apart; false when it is not JSON's grammar to the last byte. */
static inline bool read_number(struct str s, struct number *n)
{
    const char *p = s.p, *end = s.p + s.n, *from;
    int64_t e;

    n->negative = p < end && *p == '-';
    p += n->negative;
    n->w = 0;
    n->q = 0;
    n->digits = p;
    p = read_digits(p, end, &n->w);
    if (p == n->digits || (*n->digits == '0' && p - n->digits > 1))
        return false;
    n->point = p < end && *p == '.';
    if (n->point) {
        from = ++p;
        p = read_digits(p, end, &n->w);
        if (p == from)
            return false;
        n->q = from - p;
    }
    n->digits_end = p;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p = read_exponent(p + 1, end, &e);
        if (!p)
            return false;
        n->q += e;
    }
    return p == end;
}

static inline double from_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The upper 128 bits of w * 10^q, both with their top bit set, as far as they can matter: the low half of
 * the power is only multiplied when the bits below the rounding bit are all ones, where a carry could
 * reach it. */
static inline unsigned __int128 scaled(uint64_t w, int64_t q)
{
    const uint64_t *t = num_pow10[q - NUM_POW10_FIRST];
    unsigned __int128 product = (unsigned __int128)w * t[0];

    if (((uint64_t)(product >> 64) & 0x1ff) == 0x1ff)
        product += (uint64_t)((unsigned __int128)w * t[1] >> 64);
    return product;
}

/* A value below the normal range: fewer bits, rounded where they end. `m` has two bits more than a
 * fraction. */
static uint64_t subnormal_bits(uint64_t m, int64_t exponent)
{
    if (exponent <= -63)
        return 0;
    m >>= 1 - exponent;
    /* Rounding up into the lowest normal number gives its very bits. */
    return (m + (m & 1)) >> 1;
}

/* The bits of the double nearest to w * 10^q, ties to even. */
static uint64_t nearest_bits(uint64_t w, int64_t q)
{
    unsigned __int128 product;
    uint64_t high, m;
    int64_t exponent;
    int zeros, top;

    if (w == 0 || q < Q_MIN)
        return 0;
    if (q > Q_MAX)
        return (uint64_t)EXPONENT_MAX << FRACTION_BITS;
    zeros = __builtin_clzll(w);
    product = scaled(w << zeros, q);
    high = (uint64_t)(product >> 64);
    top = (int)(high >> 63);
    m = high >> (top + 64 - FRACTION_BITS - 3); /* 53 bits and one to round by */
    /* 217706 / 2^16 is log2(10), near enough over the range of q. */
    exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023;
    if (exponent <= 0)
        return subnormal_bits(m, exponent);

    /* A tie needs 10^q, or its inverse, to divide into few bits; only there may the rounding bit be all
     * that is left. */
    if ((uint64_t)product <= 1 && q >= -4 && q <= 23 && (m & 3) == 1 &&
        m << (top + 64 - FRACTION_BITS - 3) == high)
        m &= ~(uint64_t)1;
    m = (m + (m & 1)) >> 1;
    if (m >> (FRACTION_BITS + 1)) {
        m >>= 1;
        exponent++;
    }
    if (exponent >= EXPONENT_MAX)
        return (uint64_t)EXPONENT_MAX << FRACTION_BITS;
    return (m & ((1ULL << FRACTION_BITS) - 1)) | (uint64_t)exponent << FRACTION_BITS;
}

/* Copies the first `max` digits from the first that is not zero on. Returns how many there are in all;
 * *ret_rest says whether any digit that was left out is not zero. */
static size_t significant(const struct number *n, char *out, size_t max, bool *ret_rest)
{
    size_t count = 0;

    *ret_rest = false;
    for (const char *p = n->digits; p < n->digits_end; p++) {
        if (*p == '.' || (count == 0 && *p == '0'))
            continue;
        if (count < max)
            out[count] = *p;
        else if (*p != '0')
            *ret_rest = true;
        count++;
    }
    return count;
}

/* strtod() on digits and an exponent, with no point, which is the one thing there that depends on a
 * locale. */
static double read_long(const struct number *n)
{
    char text[TIE_DIGITS + 32];
    bool rest;
    size_t count = significant(n, text, TIE_DIGITS, &rest), used = size_min(count, TIE_DIGITS);
    int64_t q = n->q + (int64_t)(count - used);

    if (rest) {
        text[used++] = '1';
        q--;
    }
    (void)snprintf(text + used, sizeof(text) - used, "e%lld", (long long)q);
    return strtod(text, NULL);
}

/* The value without its sign, when there are too many digits for w. */
static double read_many(struct number *n)
{
    char head[W_DIGITS];
    bool rest;
    size_t count = significant(n, head, sizeof head, &rest), used = size_min(count, sizeof head);
    int64_t q = n->q + (int64_t)(count - used);
    uint64_t low;

    n->w = 0;
    (void)read_digits(head, head + used, &n->w);
    low = nearest_bits(n->w, q);
    if (rest && low != nearest_bits(n->w + 1, q))
        return read_long(n);
    return from_bits(low);
}

/* Whether there are so few digits, zeros in front left aside, that w did not wrap around. */
static inline bool fits_w(const struct number *n)
{
    ptrdiff_t count = n->digits_end - n->digits - n->point;

    for (const char *p = n->digits; count > W_DIGITS && (*p == '0' || *p == '.'); p++)
        count -= *p == '0';
    return count <= W_DIGITS;
}

static inline double read_value(struct number *n)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    if (UNLIKELY(!fits_w(n)))
        return read_many(n);
    if (FLT_EVAL_METHOD == 0 && n->w <= 1ULL << 53 && n->q >= -CLINGER_MAX && n->q <= CLINGER_MAX)
        return n->q < 0 ? (double)n->w / powers[-n->q] : (double)n->w * powers[n->q];
    return from_bits(nearest_bits(n->w, n->q));
}

enum num_result num_parse(struct str s, double *ret)
{
    struct number n;
    double v;

    if (!read_number(s, &n))
        return NUM_SYNTAX;
    v = read_value(&n);
    *ret = n.negative ? -v : v;
    return UNLIKELY(v > DBL_MAX) ? NUM_RANGE : NUM_OK;
}

enum num_result num_parse_word(struct str s, double *ret)
{
    if (s.n == 3 && memcmp(s.p, "NaN", 3) == 0) {
        *ret = (double)NAN;
        return NUM_OK;
    }
    if ((s.n == 3 && memcmp(s.p, "Inf", 3) == 0) || (s.n == 4 && memcmp(s.p, "+Inf", 4) == 0)) {
        *ret = HUGE_VAL;
        return NUM_OK;
    }
    if (s.n == 4 && memcmp(s.p, "-Inf", 4) == 0) {
        *ret = -HUGE_VAL;
        return NUM_OK;
    }
    /* After a plus only digits: "+-1" stays wrong. */
    if (s.n > 1 && s.p[0] == '+' && s.p[1] != '-')
        s = (struct str){s.p + 1, s.n - 1};
    return num_parse(s, ret);
}
