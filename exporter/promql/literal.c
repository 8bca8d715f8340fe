#include "exporter/promql/literal.h"

#include "exporter/base/def.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"

#include <math.h>

enum { HEX = 16, OCTAL = 8, BYTE_MAX = 255, CODE_POINT_MAX = 0x10ffff };

static const int64_t DURATION_MAX_MS = INT64_C(100) * 365 * 86400 * 1000;

/* In the order in which a duration may name them. */
static const struct {
    struct str name;
    int64_t ms;
} units[] = {
    {{"y", 1}, INT64_C(365) * 86400 * 1000},
    {{"w", 1}, INT64_C(7) * 86400 * 1000},
    {{"d", 1}, 86400 * 1000},
    {{"h", 1}, 3600 * 1000},
    {{"m", 1}, 60 * 1000},
    {{"s", 1}, 1000},
    {{"ms", 2}, 1},
};

static size_t run_of_digits(struct str s, size_t at)
{
    while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
        at++;
    return at;
}

/* The unit named at the begin of s, from `first` on; ARRAY_SIZE(units) for none. "ms" is not "m" and "s". */
static size_t unit_at(struct str s, size_t first)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= 'a' && s.p[n] <= 'z')
        n++;
    while (first < ARRAY_SIZE(units) && !str_eq(units[first].name, (struct str){s.p, n}))
        first++;
    return first;
}

/* A sequence of numbers and units. */
static bool duration_units(struct str s, int64_t *ret_ms)
{
    size_t at = 0, unit = 0;
    int64_t ms = 0;

    while (at < s.n) {
        size_t end = run_of_digits(s, at);
        uint64_t count;

        if (!str_to_u64((struct str){s.p + at, end - at}, &count))
            return false;
        unit = unit_at((struct str){s.p + end, s.n - end}, unit);
        if (unit == ARRAY_SIZE(units) || count > (uint64_t)((DURATION_MAX_MS - ms) / units[unit].ms))
            return false;
        ms += (int64_t)count * units[unit].ms;
        at = end + units[unit++].name.n;
    }
    *ret_ms = ms;
    return true;
}

bool literal_duration(struct str s, int64_t *ret_ms)
{
    double seconds;
    int64_t ms;

    if (num_parse(s, &seconds) == NUM_OK) {
        if (!(seconds * 1000 <= (double)DURATION_MAX_MS))
            return false;
        ms = (int64_t)(round(seconds * 1e9) / 1e6);
    } else if (!duration_units(s, &ms)) {
        return false;
    }
    if (ms < 1)
        return false;
    *ret_ms = ms;
    return true;
}

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return HEX;
}

/* Exactly n digits at the begin of s. */
static bool literal_digits(struct str s, size_t n, unsigned base, uint32_t *ret)
{
    uint32_t v = 0;

    if (n > s.n)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned d = digit_value(s.p[i]);

        if (d >= base)
            return false;
        v = v * base + d;
    }
    *ret = v;
    return true;
}

/* An escape that names a byte or a character by digits; s starts behind the backslash. Returns its length
 * there, or 0. */
static size_t literal_code(struct str s, char *to, size_t *n)
{
    static const struct {
        char letter;
        size_t digits;
    } forms[] = {{'x', 2}, {'u', 4}, {'U', 8}};
    uint32_t code;

    if (literal_digits(s, 3, OCTAL, &code) && code <= BYTE_MAX) {
        to[(*n)++] = (char)code;
        return 3;
    }
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        if (s.p[0] != forms[i].letter ||
            !literal_digits((struct str){s.p + 1, s.n - 1}, forms[i].digits, HEX, &code))
            continue;
        if (forms[i].letter == 'x')
            to[(*n)++] = (char)code;
        else if (code > CODE_POINT_MAX || (code >= 0xd800 && code < 0xe000))
            return 0;
        else
            *n += utf8_write(code, to + *n);
        return 1 + forms[i].digits;
    }
    return 0;
}

/* The escape behind a backslash. Returns its length, or 0. */
static size_t literal_escape(struct str s, char quote, char *to, size_t *n)
{
    static const char letters[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
    const char *letter = s.n && s.p[0] != '\0' ? strchr(letters, s.p[0]) : NULL;

    if (s.n == 0)
        return 0;
    if (!letter && s.p[0] != quote)
        return literal_code(s, to, n);
    to[(*n)++] = letter ? values[letter - letters] : quote;
    return 1;
}

size_t literal_string(struct str s, char *to)
{
    struct str inside = {s.p + 1, s.n - 2};
    char quote = s.p[0];
    size_t n = 0;

    for (size_t at = 0; at < inside.n;) {
        if (inside.p[at] != '\\' || quote == '`') {
            to[n++] = inside.p[at++];
            continue;
        }
        size_t used = literal_escape((struct str){inside.p + at + 1, inside.n - at - 1}, quote, to, &n);
        if (used == 0)
            return SIZE_MAX;
        at += 1 + used;
    }
    return utf8_valid_prefix((struct str){to, n}) == n ? n : SIZE_MAX;
}
