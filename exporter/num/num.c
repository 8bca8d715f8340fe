/* From doubles to digits and back, without the C library's locale, and several times as fast. Owns the
 * table of powers of ten, which is made before main() and only read afterwards; any thread. */
#include "exporter/num/num.h"

#include <endian.h>
#include <math.h>

enum { FRACTION_BITS = 52 };

/* ---- Powers of ten, 128 significant bits each, the high half first; the top bit is set. Rounded up where
 * they are not exact ---- */

enum {
    POW10_FIRST = -292,
    POW10_LAST = 324,
    POW10_EXACT_LAST = 55, /* 0 to this are exact: 5^55 is the last power of five below 2^128 */
    LIMBS = 18             /* two zeros below, so that the top three always exist; 5^324 has 753 bits */
};

static uint64_t pow10_table[POW10_LAST - POW10_FIRST + 1][2];

static void pow10_put(int q, const uint64_t limbs[LIMBS])
{
    uint64_t *to = pow10_table[q - POW10_FIRST];
    unsigned __int128 top;
    int i = LIMBS - 1, zeros;

    while (!limbs[i])
        i--;
    zeros = __builtin_clzll(limbs[i]);
    top = (unsigned __int128)limbs[i] << 64 | limbs[i - 1];
    top = zeros ? top << zeros | limbs[i - 2] >> (64 - zeros) : top;
    top += q < 0 || q > POW10_EXACT_LAST;
    to[0] = (uint64_t)(top >> 64);
    to[1] = (uint64_t)top;
}

/* Before main(). Powers of five: 10^q differs from 5^q by a power of two alone. */
static __attribute__((constructor)) void pow10_make(void)
{
    uint64_t up[LIMBS] = {[2] = 1}, down[LIMBS] = {[LIMBS - 1] = 1ULL << 63};

    for (int q = 0; q <= POW10_LAST; q++) {
        unsigned __int128 product = 0;

        pow10_put(q, up);
        for (int i = 2; i < LIMBS; i++) {
            product = (unsigned __int128)up[i] * 5 + (uint64_t)(product >> 64);
            up[i] = (uint64_t)product;
        }
    }
    for (int q = -1; q >= POW10_FIRST; q--) {
        unsigned __int128 rest = 0;

        for (int i = LIMBS - 1; i >= 2; i--) {
            rest = rest << 64 | down[i];
            down[i] = (uint64_t)(rest / 5);
            rest %= 5;
        }
        pow10_put(q, down);
    }
}

/* ---- Printing ----
 *
 * A double stands for an interval of reals: all that round to it. Schubfach scales that interval
 * by a power of ten chosen so that it is between one and ten units wide; then either one multiple of ten
 * lies inside, or the shortest digits are those of one of the two integers next to the value. Three 64 by
 * 128 bit products, rounded to odd so that comparisons stay exact, decide it: no loops and no big numbers. */

enum {
    EXPONENT_MASK = 0x7ff,
    EXPONENT_BIAS = 1023 + FRACTION_BITS,
    MAX_DIGITS = 17,
    POINT_MIN = -4, /* decimal notation while the point stands from here, 1e-5, ... */
    POINT_MAX = 17  /* ... to here, below 1e17 */
};

static const uint64_t TEN_8 = 100000000, TEN_16 = 10000000000000000;

/* g * c / 2^128 with the last bit set when the quotient is not exact. */
static inline uint64_t mul_round_to_odd(const uint64_t g[2], uint64_t c)
{
    unsigned __int128 low = (unsigned __int128)g[1] * c;
    unsigned __int128 high = (unsigned __int128)g[0] * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The integer d for which d * 10^*ret_exp10 is the shortest spelling of the double c * 2^q, with zeros at
 * its end where that has fewer digits; below 10^17. `closer`: the next double below is only half as far as
 * the one above. The choices are computed, not branched on, for no processor can guess them. */
static uint64_t shortest(uint64_t c, int q, bool closer, int *ret_exp10)
{
    uint64_t odd = c & 1, low, mid, high, s, tens;
    /* floor(log10(2^q)), or if closer floor(log10(3/4 * 2^q)), and floor(log2(10^-k)); right over the whole
     * range of doubles. */
    int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;
    int h = q + ((-k * 1741647) >> 19) + 1;
    const uint64_t *g = pow10_table[-k - POW10_FIRST];
    bool under, over, under_tens, over_tens;

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

static inline void store_others(char *out, unsigned __int128 others)
{
    store_digits(out, (uint64_t)others);
    store_digits(out + 8, (uint64_t)(others >> 64));
}

/* The digits of x < 10^8 without zeros in front. Writes eight bytes whatever the length. */
static size_t put_first_group(char *out, uint32_t x)
{
    uint64_t digits = eight_digits(x);
    int zeros = __builtin_ctzll(digits | 1ULL << 56) / 8;

    store_digits(out, digits >> 8 * zeros);
    return (size_t)(8 - zeros);
}

static char *put_exponent(char *out, int e)
{
    *out++ = 'e';
    *out++ = e < 0 ? '-' : '+';
    return out + put_first_group(out, (uint32_t)abs(e));
}

/* Lays out the seventeen digits of d, without the zeros at their end; the decimal point stands after the
 * first `point` of them (which may be negative or past the end). All are stored each time, from registers:
 * reading back what was just stored in other pieces stalls. The length says how many count. */
static char *lay_out(char *out, uint64_t d, int point)
{
    uint64_t high = eight_digits((uint32_t)(d % TEN_16 / TEN_8)), low = eight_digits((uint32_t)(d % TEN_8));
    unsigned __int128 others = (unsigned __int128)low << 64 | high, fraction; /* all but the first */
    int n = low ? 17 - __builtin_clzll(low) / 8 : high ? 9 - __builtin_clzll(high) / 8 : 1;
    char first = (char)('0' + d / TEN_16);

    if (point > 0 && point <= POINT_MAX) {
        out[0] = first;
        store_others(out + 1, others);
        if (n <= point)
            return out + point;
        out[point] = '.';
        fraction = others >> 8 * (point - 1);
        /* Of what stands after the point eight digits are all, once nine stand before it; NUM_MAX has no
         * room for more. */
        if (point > 8)
            store_digits(out + point + 1, (uint64_t)fraction);
        else
            store_others(out + point + 1, fraction);
        return out + n + 1;
    }
    if (point <= 0 && point >= POINT_MIN) {
        memcpy(out, "0.0000", 6);
        out += 2 - point;
        out[0] = first;
        store_others(out + 1, others);
        return out + n;
    }
    return put_exponent(lay_out(out, d, 1), point - 1);
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

    /* Subnormals have the exponent of the lowest normal numbers, without the leading one. */
    d = shortest(exponent ? fraction | 1ULL << FRACTION_BITS : fraction, (exponent ?: 1) - EXPONENT_BIAS,
                 fraction == 0 && exponent > 1, &exp10);
    /* Without a branch for the two lengths that digits have above the subnormals. */
    exp10 -= d < TEN_16;
    d = d < TEN_16 ? d * 10 : d;
    for (; UNLIKELY(d < TEN_16); d *= 10)
        exp10--;
    return lay_out(out, d, MAX_DIGITS + exp10);
}

size_t num_put_double(char out[NUM_MAX], double v)
{
    uint64_t bits = double_bits(v), fraction;
    int exponent;
    char *p = out, *end;

    fraction = bits & ((1ULL << FRACTION_BITS) - 1);
    exponent = (int)(bits >> FRACTION_BITS & EXPONENT_MASK);
    if (UNLIKELY(exponent == EXPONENT_MASK)) {
        memcpy(out, fraction ? "NaN" : bits >> 63 ? "-Inf" : "+Inf", 4);
        return fraction ? 3 : 4;
    }

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
    n = num_put_u64(out, v / TEN_8);
    store_digits(out + n, eight_digits((uint32_t)(v % TEN_8)));
    return n + 8;
}

/* ---- Reading ----
 *
 * The digits become a 64-bit integer w and a power of ten q. 128 bits of their product settle the nearest
 * double, unless it lies halfway between two or nearly so (Lemire 2021); there, and for all other numbers,
 * strtod() decides. */

enum {
    Q_MAX = 308,
    W_DIGITS = 19,      /* that always fit 64 bits */
    SLACK = 4,          /* more than the product's error, in units of its last bit */
    TEXT_MAX = 64 << 10 /* a longer number is out of range if it needs strtod(), for which it is copied */
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

/* Whether there are so few digits, zeros in front left aside, that w did not wrap around. */
static inline bool fits_w(const struct number *n)
{
    ptrdiff_t count = n->digits_end - n->digits - n->point;

    for (const char *p = n->digits; count > W_DIGITS && (*p == '0' || *p == '.'); p++)
        count -= *p == '0';
    return count <= W_DIGITS;
}

/* The double nearest to w * 10^q; false where 128 bits do not settle it, or it is not a normal one. */
static inline bool read_nearest(const struct number *n, double *ret)
{
    /* The powers of ten that are doubles: a quotient of two exact doubles is rounded once (Clinger 1990). */
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const unsigned __int128 half = (unsigned __int128)1 << (127 - FRACTION_BITS - 1);
    unsigned __int128 product, rest;
    const uint64_t *t;
    uint64_t w = n->w, m;
    int64_t exponent;
    int zeros, top;

    if (n->q < POW10_FIRST || n->q > Q_MAX || !fits_w(n))
        return false;
    if (w >> (FRACTION_BITS + 1) == 0 && n->q <= 0 && n->q > -(int64_t)ARRAY_SIZE(exact)) {
        *ret = (double)w / exact[-n->q];
        return true;
    }
    *ret = 0;
    if (w == 0)
        return true;
    t = pow10_table[n->q - POW10_FIRST];
    zeros = __builtin_clzll(w);
    w <<= zeros;
    product = (unsigned __int128)w * t[0] + (uint64_t)((unsigned __int128)w * t[1] >> 64);
    top = (int)(product >> 127);
    product <<= !top;
    m = (uint64_t)(product >> (127 - FRACTION_BITS));
    rest = product & (2 * half - 1);
    if (rest - half + SLACK <= 2 * SLACK)
        return false;
    m += rest > half;
    /* 217706 / 2^16 is log2(10), near enough over the range of q. */
    exponent = ((217706 * n->q) >> 16) + 63 + top - zeros + 1023 + (int64_t)(m >> (FRACTION_BITS + 1));
    if (exponent <= 0 || exponent >= EXPONENT_MASK)
        return false;
    m = (m & ((1ULL << FRACTION_BITS) - 1)) | (uint64_t)exponent << FRACTION_BITS;
    memcpy(ret, &m, sizeof m);
    return true;
}

enum num_result num_parse(struct str s, double *ret)
{
    CLEANUP(cleanup_free) char *text = NULL;
    struct number n;
    double v;

    if (!read_number(s, &n))
        return NUM_SYNTAX;
    if (LIKELY(read_nearest(&n, &v))) {
        *ret = n.negative ? -v : v;
        return NUM_OK;
    }
    if (s.n > TEXT_MAX) {
        *ret = n.negative ? -HUGE_VAL : HUGE_VAL;
        return NUM_RANGE;
    }
    text = str_dup(s);
    *ret = strtod(text, NULL); /* the program sets no locale */
    return isinf(*ret) ? NUM_RANGE : NUM_OK;
}

enum num_result num_parse_word(struct str s, double *ret)
{
    static const struct {
        struct str word;
        double v;
    } words[] = {
        {STR("NaN"), NAN}, {STR("Inf"), HUGE_VAL}, {STR("+Inf"), HUGE_VAL}, {STR("-Inf"), -HUGE_VAL}};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq(s, words[i].word)) {
            *ret = words[i].v;
            return NUM_OK;
        }
    /* After a plus only digits: "+-1" stays wrong. */
    if (s.n > 1 && s.p[0] == '+' && s.p[1] != '-')
        s = (struct str){s.p + 1, s.n - 1};
    return num_parse(s, ret);
}
