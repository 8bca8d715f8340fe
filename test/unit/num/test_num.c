#include "exporter/num/num.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PATTERNS = 1000000 };

static uint64_t random_u64(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static double from_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* num_parse() of a copy with no byte to spare. */
static enum num_result parse(const char *text, size_t n, double *ret)
{
    char *copy = malloc(n ? n : 1);
    enum num_result r;

    assert_non_null(copy);
    memcpy(copy, text, n);
    r = num_parse((struct str){copy, n}, ret);
    free(copy);
    return r;
}

static void same_as_strtod(const char *text)
{
    double want = strtod(text, NULL), got = -1;
    enum num_result r = parse(text, strlen(text), &got);

    if (r != (isinf(want) ? NUM_RANGE : NUM_OK) || to_bits(got) != to_bits(want))
        fail_msg("%.60s: %d, got %.17g, want %.17g", text, (int)r, got, want);
}

/* The significant digits of a printed number; returns how many. */
static size_t digits_of(const char *text, char *out)
{
    size_t n = 0;

    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0'))
            out[n++] = *text;
    while (n > 1 && out[n - 1] == '0')
        n--;
    out[n] = '\0';
    return n;
}

/* Reads back, no fewer digits would, and among as many digits these are the nearest. */
static void check_shortest(double v)
{
    char text[NUM_MAX + 1], other[64], digits[64], nearest[64];
    size_t n = num_put_double(text, v);
    double back;

    assert_true(n <= 24);
    text[n] = '\0';
    assert_int_equal(parse(text, n, &back), NUM_OK);
    if (to_bits(back) != to_bits(v) || to_bits(strtod(text, NULL)) != to_bits(v))
        fail_msg("%s does not read back as %.17g", text, v);
    n = digits_of(text, digits);
    if (n > 1) {
        (void)snprintf(other, sizeof other, "%.*e", (int)n - 2, v);
        if (strtod(other, NULL) == v)
            fail_msg("%s is longer than %s", text, other);
    }
    (void)snprintf(other, sizeof other, "%.*e", n ? (int)n - 1 : 0, v);
    (void)digits_of(other, nearest);
    if (n && strtod(other, NULL) == v && strcmp(digits, nearest) != 0)
        fail_msg("%s is not as near as %s", text, other);
}

static void prints_random_doubles_shortest(void **state)
{
    (void)state;
    for (int i = 0; i < PATTERNS; i++) {
        double v = from_bits(random_u64());
        if (isfinite(v))
            check_shortest(v);
    }
}

static void prints_everyday_values(void **state)
{
    (void)state;
    for (int i = 0; i < PATTERNS / 4; i++) {
        uint64_t x = random_u64();
        check_shortest((double)(x % 1000000000) / pow(10, (double)(x >> 60)));
        check_shortest((double)(x >> 11) / 9007199254740992.0);
        check_shortest((double)(int64_t)x);
        check_shortest((double)(x >> (x & 63)));
    }
}

static void prints_doubles_at_boundaries(void **state)
{
    (void)state;
    for (int e = -1074; e < 1024; e++) {
        double v = ldexp(1, e);
        check_shortest(v);
        check_shortest(nextafter(v, 0));
        check_shortest(nextafter(v, DBL_MAX));
        check_shortest(-v);
    }
    for (int e = -324; e < 309; e++) {
        char text[16];
        (void)snprintf(text, sizeof text, "1e%d", e);
        double v = strtod(text, NULL);
        check_shortest(v);
        check_shortest(nextafter(v, 0));
        check_shortest(nextafter(v, DBL_MAX));
    }
    for (uint64_t bits = 0; bits < 5000; bits++) {
        check_shortest(from_bits(bits));
        check_shortest(from_bits((1ULL << 52) - bits));
        check_shortest(from_bits(0x7fefffffffffffff - bits));
    }
}

static void chooses_decimal_or_scientific_notation(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1, "-1"},
        {10, "10"},
        {0.5, "0.5"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {100, "100"},
        {123456789, "123456789"},
        {12345.678, "12345.678"},
        {1e-5, "0.00001"},
        {0.00012, "0.00012"},
        {9.9e-6, "9.9e-6"},
        {9.999999999999999e-6, "9.999999999999999e-6"},
        {1e-6, "1e-6"},
        {1.5e-7, "1.5e-7"},
        {1e15, "1000000000000000"},
        {1e16, "10000000000000000"},
        {99999999999999984.0, "99999999999999980"},
        {1e17, "1e+17"},
        {123456789012345678.0, "1.2345678901234568e+17"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {9007199254740991.0, "9007199254740991"},
        {9007199254740992.0, "9007199254740992"},
        {9007199254740994.0, "9007199254740994"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.014498105493169442, "0.014498105493169442"},
        {1.0 / 3, "0.3333333333333333"},
        {-1.2345678901234567e-308, "-1.2345678901234567e-308"},
        {0.000012345678901234568, "0.000012345678901234568"},
        {9999999.12345678, "9999999.12345678"},
        {10000000.5, "10000000.5"},
        {0.30000000000000004, "0.30000000000000004"},
        {1e7, "10000000"},
        {0.1 + 0.7, "0.7999999999999999"},
        {299792.458, "299792.458"},
        {(double)INFINITY, "+Inf"},
        {-(double)INFINITY, "-Inf"},
        {(double)NAN, "NaN"},
        {-(double)NAN, "NaN"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[NUM_MAX + 1];
        out[num_put_double(out, cases[i].v)] = '\0';
        assert_string_equal(out, cases[i].text);
    }
}

static void prints_integers(void **state)
{
    char out[NUM_MAX], want[32];
    uint64_t v = 1;

    (void)state;
    for (int i = 0; i < PATTERNS / 2; i++) {
        v = i < 20 ? v * 10 : random_u64() >> (random_u64() & 63);
        for (uint64_t w = v - 1; w != v + 2; w++) {
            int n = snprintf(want, sizeof want, "%" PRIu64, w);
            assert_int_equal(num_put_u64(out, w), n);
            assert_memory_equal(out, want, (size_t)n);
        }
    }
    assert_int_equal(num_put_u64(out, 0), 1);
    assert_int_equal(num_put_u64(out, UINT64_MAX), 20);
}

static void reads_random_texts_like_strtod(void **state)
{
    char text[64];

    (void)state;
    for (int i = 0; i < PATTERNS / 2; i++) {
        double v = from_bits(random_u64());
        if (!isfinite(v))
            continue;
        (void)snprintf(text, sizeof text, "%.*e", (int)(random_u64() % 25), v);
        same_as_strtod(text);
        (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", random_u64() >> (random_u64() & 63),
                       (int)(random_u64() % 700) - 360);
        same_as_strtod(text);
        (void)snprintf(text, sizeof text, "0.%0*d%" PRIu64, (int)(random_u64() % 8) + 1, 0, random_u64());
        same_as_strtod(text);
    }
}

/* Exactly between two doubles, and a hair to either side of it: what separates reading right from nearly
 * right. */
static void rounds_ties_to_even(void **state)
{
    char text[1300];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_u64() & INT64_MAX;
        if (i % 4 == 0)
            bits = (bits & 0xfffffffffffff) | (uint64_t)(1023 + 40 + i % 50) << 52;
        if (i % 4 == 1)
            bits &= 0x1fffffffffffff;
        double v = from_bits(bits), up = nextafter(v, DBL_MAX);
        if (!isfinite(v) || v == DBL_MAX)
            continue;
        long double tie = v + ((long double)up - v) / 2; /* a sum could overflow on ppc64le */
        int n = snprintf(text, sizeof text - 2, "%.1100Lf", tie);
        if (n < 0 || (size_t)n >= sizeof text - 2)
            n = snprintf(text, sizeof text - 2, "%.0Lf.0", tie);
        same_as_strtod(text);
        strcat(text, "1");
        same_as_strtod(text);
        char *last = text + n - 1;
        while (*last == '0' || *last == '.')
            last--;
        (*last)--;
        same_as_strtod(text);
    }
}

static void reads_notably_hard_numbers(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "0e999999999999999999",
        "1",
        "-1",
        "1.5",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0000000000000000000000001",
        "9007199254740995",
        "1e22",
        "1e23",
        "1e-22",
        "8.5e22",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272088284396434110686182e-324",
        "2.4703282292062327208828439643411068618253e-324",
        "1e-400",
        "-1e-400",
        "1e-99999999999999999999",
        "1e99999999999999999999",
        "-1e400",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "17976931348623158079372897140530341507993413271003782693617377898044"
        "4968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000"
        "70838367627385"
        "4845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699"
        "50809304288017"
        "7904174497791",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "6.631236846766476e-316",
        "3.2378839133029012895883522849e-319",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "9999999999999999999",
        "10000000000000000000",
        "123456789.123456789e0",
        "1E5",
        "1e+5",
        "1.2E-05",
        "7.3177701707893310e15",
        "0.000000000000000000000000000000000000000000000000000000000000012345678901234567890",
        "1718600060.123",
        "0.014498105493169442",
        "9.5e-7",
        "1e-7",
        "30078505129381147446200",
        "1777820000000000000001",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        same_as_strtod(texts[i]);
}

static void reads_thousands_of_digits(void **state)
{
    enum { DIGITS = 5000 };
    char *text = malloc(DIGITS + 64);
    double v;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 300; i++) {
        size_t n = DIGITS / 300 * (size_t)(i + 1);
        for (size_t k = 0; k < n; k++)
            text[k] = (char)('0' + (i % 3 == 0 ? 9 : i % 3 == 1 ? random_u64() % 10 : k == n - 1 || k == 0));
        if (text[0] == '0')
            text[0] = '7';
        if (i % 2)
            text[1] = '.';
        (void)snprintf(text + n, 64, "e%d", i % 2 ? (int)(random_u64() % 640) - 320 : 20 - (int)n);
        same_as_strtod(text);
    }
    /* One, written with a long row of zeros and an exponent that undoes it. */
    memset(text, '0', DIGITS);
    text[1] = '.';
    text[DIGITS] = '1';
    (void)snprintf(text + DIGITS + 1, 32, "e%d", DIGITS - 1);
    assert_int_equal(parse(text, strlen(text), &v), NUM_OK);
    assert_true(v == 1);
    free(text);
}

static void refuses_what_json_refuses(void **state)
{
    static const char *const bad[] = {
        "",         "-",
        "+",        "+1",
        ".",        ".5",
        "1.",       "-.5",
        "1.e5",     "01",
        "-01",      "00",
        "00.5",     "1e",
        "1e+",      "1e-",
        "1ee5",     "1e5.5",
        "1 ",       " 1",
        "1,",       "0x10",
        "1_000",    "1.2.3",
        "--1",      "-+1",
        "NaN",      "Inf",
        "Infinity", "nan",
        "1f",       "1e5e5",
        "e5",       "1:",
        "1/",       "12345678a",
        "1234567:", "123456789012345678901234x",
        "1.5-",     "- 1",
    };
    double v = 42;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (parse(bad[i], strlen(bad[i]), &v) != NUM_SYNTAX || v != 42)
            fail_msg("`%s` was read", bad[i]);
    assert_int_equal(parse("1\0", 2, &v), NUM_SYNTAX);
    assert_int_equal(num_parse((struct str){NULL, 0}, &v), NUM_SYNTAX);
    /* Each byte that is not a digit ends a run of eight. */
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 8; at++) {
            char text[] = "12345678";
            text[at] = (char)c;
            bool good = (c >= '0' && c <= '9' && (c != '0' || at != 0)) || (c == '.' && at > 0 && at < 7) ||
                        (c == '-' && at == 0) || ((c | 0x20) == 'e' && at > 0 && at < 7);
            assert_int_equal(parse(text, 8, &v) != NUM_SYNTAX, good);
        }
}

static void reads_the_words_of_prometheus(void **state)
{
    static const char *const bad[] = {"",     "+",    "++1",   "+-1",      "-+1",       "+NaN",      "-NaN",
                                      "nan",  "inf",  "+inf",  "Infinity", "+Infinity", "-Infinity", "In",
                                      "Inf ", "NaNs", "0x1p3", "1_0",      " 1",        "+.5",       "+01"};
    double v;

    (void)state;
    assert_int_equal(num_parse_word(STR("NaN"), &v), NUM_OK);
    assert_true(isnan(v));
    assert_int_equal(num_parse_word(STR("Inf"), &v), NUM_OK);
    assert_true(isinf(v) && v > 0);
    assert_int_equal(num_parse_word(STR("+Inf"), &v), NUM_OK);
    assert_true(isinf(v) && v > 0);
    assert_int_equal(num_parse_word(STR("-Inf"), &v), NUM_OK);
    assert_true(isinf(v) && v < 0);
    assert_int_equal(num_parse_word(STR("+1.5e+06"), &v), NUM_OK);
    assert_true(v == 1.5e6);
    assert_int_equal(num_parse_word(STR("-0.25"), &v), NUM_OK);
    assert_true(v == -0.25);
    assert_int_equal(num_parse_word(STR("-1e309"), &v), NUM_RANGE);
    assert_true(isinf(v) && v < 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (num_parse_word(str_of(bad[i]), &v) != NUM_SYNTAX)
            fail_msg("`%s` was read", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_random_doubles_shortest),
        cmocka_unit_test(prints_everyday_values),
        cmocka_unit_test(prints_doubles_at_boundaries),
        cmocka_unit_test(chooses_decimal_or_scientific_notation),
        cmocka_unit_test(prints_integers),
        cmocka_unit_test(reads_random_texts_like_strtod),
        cmocka_unit_test(rounds_ties_to_even),
        cmocka_unit_test(reads_notably_hard_numbers),
        cmocka_unit_test(reads_thousands_of_digits),
        cmocka_unit_test(refuses_what_json_refuses),
        cmocka_unit_test(reads_the_words_of_prometheus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
