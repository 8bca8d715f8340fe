/* Printing. A double stands for an interval of reals: all that round to it. Schubfach scales that interval
 * by a power of ten chosen so that it is between one and ten units wide; then either one multiple of ten
 * lies inside, or the shortest digits are those of one of the two integers next to the value. Three 64 by
 * 128 bit products, rounded to odd so that comparisons stay exact, decide it: no loops and no big numbers. */
#include "exporter/num/num.h"

#include "exporter/base/def.h"
#include "exporter/num/num_pow10.h"

#include <endian.h>
#include <math.h>

enum {
    FRACTION_BITS = 52,
    EXPONENT_MASK = 0x7ff,
    EXPONENT_BIAS = 1023 + FRACTION_BITS,
    MAX_DIGITS = 17,
    POINT_MIN = -4, /* decimal notation while the point stands from here, 1e-5, ... */
    POINT_MAX = 17  /* ... to here, below 1e17 */
};

static const uint64_t TEN_8 = 100000000, TEN_16 = 10000000000000000;

/* floor(log10(2^e)), floor(log10(3/4 * 2^e)), floor(log2(10^e)); right over the whole range of doubles. */
static int log10_pow2(int e)
{
    return (e * 1262611) >> 22;
}

static int log10_three_quarters_pow2(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

static int log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* g * c / 2^128 with the last bit set when the quotient is not exact. */
static inline uint64_t mul_round_to_odd(const uint64_t g[2], uint64_t c)
{
    unsigned __int128 low = (unsigned __int128)g[1] * c;
    unsigned __int128 high = (unsigned __int128)g[0] * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* 10^k with 128 bits, rounded up where it is not exact. */
static void pow10_up(int k, uint64_t g[2])
{
    const uint64_t *t = num_pow10[k - NUM_POW10_FIRST];
    uint64_t up = k < NUM_POW10_UP_FIRST || k > NUM_POW10_EXACT_LAST;

    g[1] = t[1] + up;
    g[0] = t[0] + (g[1] < up);
}

/* The integer d for which d * 10^*ret_exp10 is the shortest spelling of the double c * 2^q, with zeros at
 * its end where that has fewer digits; below 10^17. `closer`: the next double below is only half as far as
 * the one above. The choices are computed, not branched on, for no processor can guess them. */
static uint64_t shortest(uint64_t c, int q, bool closer, int *ret_exp10)
{
    uint64_t odd = c & 1, g[2], low, mid, high, s, tens;
    int k = closer ? log10_three_quarters_pow2(q) : log10_pow2(q);
    int h = q + log2_pow10(-k) + 1;
    bool under, over, under_tens, over_tens;

    pow10_up(-k, g);
    mid = mul_round_to_odd(g, (4 * c) << h);
    /* An even c owns its interval's ends, an odd one does not. */
    low = mul_round_to_odd(g, (4 * c - 2 + closer) << h) + odd;
    high = mul_round_to_odd(g, (4 * c + 2) << h) - odd;

    s = mid / 4;
    tens = s / 10 * 10;
    under_tens = low <= 4 * tens;
    over_tens = 4 * tens + 40 <= high;
    under = low <= 4 * s;
    over = 4 * s + 4 <= high;
    over = under != over ? over : mid + (s & 1) > 4 * s + 2;
    *ret_exp10 = k;
    return under_tens != over_tens ? tens + 10 * (uint64_t)over_tens : s + over;
}

/* The eight digits of x < 10^8, one a byte (0 to 9, not ASCII), the first digit in the lowest byte. */
static inline uint64_t eight_digits(uint32_t x)
{
    uint64_t v = x / 10000 | (uint64_t)(x % 10000) << 32, q;

    q = (v * 10486 >> 20) & 0x0000007f0000007f; /* each half by 100 */
    v = q | (v - q * 100) << 16;
    q = (v * 103 >> 10) & 0x000f000f000f000f; /* each quarter by 10 */
    return q | (v - q * 10) << 8;
}

static inline void store_digits(char *out, uint64_t digits)
{
    uint64_t text = htole64(digits | 0x3030303030303030);

    memcpy(out, &text, sizeof text);
}

/* Seventeen digits in registers: they are stored where they belong, for reading back what was just stored
 * in other pieces stalls. */
struct digits {
    char first;               /* ASCII */
    unsigned __int128 others; /* sixteen, as eight_digits() gives them */
    int n;                    /* without the zeros at the end */
};

static inline struct digits split(uint64_t d)
{
    uint64_t rest = d % TEN_16;
    uint64_t high = eight_digits((uint32_t)(rest / TEN_8));
    uint64_t low = eight_digits((uint32_t)(rest % TEN_8));
    int zeros = low ? __builtin_clzll(low) / 8 : high ? 8 + __builtin_clzll(high) / 8 : 16;

    return (struct digits){
        .first = (char)('0' + d / TEN_16), .others = (unsigned __int128)low << 64 | high, .n = 17 - zeros};
}

static inline void store_others(char *out, unsigned __int128 others)
{
    store_digits(out, (uint64_t)others);
    store_digits(out + 8, (uint64_t)(others >> 64));
}

static char *put_exponent(char *out, int e)
{
    unsigned n = e < 0 ? (unsigned)-e : (unsigned)e;

    *out++ = 'e';
    *out++ = e < 0 ? '-' : '+';
    if (n >= 100)
        *out++ = (char)('0' + n / 100);
    if (n >= 10)
        *out++ = (char)('0' + n / 10 % 10);
    *out++ = (char)('0' + n % 10);
    return out;
}

/* Lays out digits whose decimal point stands after the first `point` of them (which may be negative or
 * past the end). All sixteen are stored each time; the length says how many count. */
static char *lay_out(char *out, struct digits d, int point)
{
    unsigned __int128 fraction;

    if (point > 0 && point <= POINT_MAX) {
        out[0] = d.first;
        store_others(out + 1, d.others);
        if (d.n <= point)
            return out + point;
        out[point] = '.';
        fraction = d.others >> 8 * (point - 1);
        /* Of what stands after the point eight digits are all, once nine stand before it; NUM_MAX has no
         * room for more. */
        if (point > 8)
            store_digits(out + point + 1, (uint64_t)fraction);
        else
            store_others(out + point + 1, fraction);
        return out + d.n + 1;
    }
    if (point <= 0 && point >= POINT_MIN) {
        memcpy(out, "0.0000", 6);
        out += 2 - point;
        out[0] = d.first;
        store_others(out + 1, d.others);
        return out + d.n;
    }
    out[0] = d.first;
    out[1] = '.';
    store_others(out + 2, d.others);
    return put_exponent(out + d.n + (d.n > 1), point - 1);
}

static char *put_word(char *out, bool negative, uint64_t fraction)
{
    memcpy(out, fraction ? "NaN" : negative ? "-Inf" : "+Inf", 4);
    return out + (fraction ? 3 : 4);
}

/* The digits of x < 10^8 without zeros in front. Writes eight bytes whatever the length. */
static size_t put_first_group(char *out, uint32_t x)
{
    uint64_t digits = eight_digits(x);
    int zeros = __builtin_ctzll(digits | 1ULL << 56) / 8;

    digits |= 0x3030303030303030;
    digits = htole64(digits >> 8 * zeros);
    memcpy(out, &digits, sizeof digits);
    return (size_t)(8 - zeros);
}

/* Eight decimals at most, the usual score: r / 10^8 that reads back as v (both r and 10^8 are exact
 * doubles, so the division is what any reader does) is the shortest spelling once its zeros are gone, for
 * no two decimals of 15 digits share a double. Returns the end, or NULL when v is not like that. */
static inline char *put_few_decimals(char *out, double v)
{
    uint64_t r, fraction;

    if (!(v >= 1e-5 && v < 1e7))
        return NULL;
    r = (uint64_t)(int64_t)(v * 1e8 + 0.5);
    if ((double)(int64_t)r / 1e8 != v)
        return NULL;
    out += put_first_group(out, (uint32_t)(r / TEN_8));
    fraction = eight_digits((uint32_t)(r % TEN_8));
    *out = '.';
    store_digits(out + 1, fraction);
    return out + 9 - __builtin_clzll(fraction) / 8;
}

static char *put_finite(char *out, uint64_t fraction, int exponent)
{
    int exp10;
    uint64_t d;

    if (LIKELY(exponent != 0)) {
        d = shortest(fraction | 1ULL << FRACTION_BITS, exponent - EXPONENT_BIAS,
                     fraction == 0 && exponent > 1, &exp10);
    } else {
        d = shortest(fraction, 1 - EXPONENT_BIAS, false, &exp10);
    }
    /* Without a branch for the two lengths that digits have above the subnormals. */
    exp10 -= d < TEN_16;
    d = d < TEN_16 ? d * 10 : d;
    for (; UNLIKELY(d < TEN_16); d *= 10)
        exp10--;
    return lay_out(out, split(d), MAX_DIGITS + exp10);
}

size_t num_put_double(char out[NUM_MAX], double v)
{
    uint64_t bits, fraction;
    int exponent;
    char *p = out, *end;

    memcpy(&bits, &v, sizeof bits);
    fraction = bits & ((1ULL << FRACTION_BITS) - 1);
    exponent = (int)(bits >> FRACTION_BITS & EXPONENT_MASK);
    if (UNLIKELY(exponent == EXPONENT_MASK))
        return (size_t)(put_word(out, bits >> 63, fraction) - out);

    *p = '-';
    p += bits >> 63;
    v = fabs(v);
    /* Integers that a double counts one by one have no shorter spelling than their own digits. */
    if (v < 9007199254740992.0 && (double)(int64_t)v == v)
        return (size_t)(p - out) + num_put_u64(p, (uint64_t)(int64_t)v);
    end = put_few_decimals(p, v);
    if (!end)
        end = put_finite(p, fraction, exponent);
    return (size_t)(end - out);
}

size_t num_put_u64(char out[NUM_MAX], uint64_t v)
{
    size_t n;

    if (v < TEN_8)
        return put_first_group(out, (uint32_t)v);
    if (v < TEN_16) {
        n = put_first_group(out, (uint32_t)(v / TEN_8));
    } else {
        n = put_first_group(out, (uint32_t)(v / TEN_16));
        store_digits(out + n, eight_digits((uint32_t)(v / TEN_8 % TEN_8)));
        n += 8;
    }
    store_digits(out + n, eight_digits((uint32_t)(v % TEN_8)));
    return n + 8;
}
