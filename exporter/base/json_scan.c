/* The slow paths: escapes, non-ASCII characters, numbers, words, errors. */
#include "exporter/base/json_scan.h"

#include "exporter/base/utf8.h"

const char *jr_scan_fail(struct jr *j, const char *at, const char *why)
{
    if (!j->error) {
        j->error = at == j->end ? "unexpected end" : why;
        j->error_at = (size_t)(at - j->begin);
    }
    return NULL;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* p is at the backslash. */
static const char *scan_escape(struct jr *j, const char *p)
{
    char c = scan_at(j, ++p);

    if (c == '\0' || !strchr("\"\\/bfnrtu", c))
        return jr_scan_fail(j, p, "invalid escape");
    p++;
    if (c == 'u')
        for (int i = 0; i < 4; i++, p++)
            if (!is_hex(scan_at(j, p)))
                return jr_scan_fail(j, p, "expected four hexadecimal digits");
    return p;
}

static const char *scan_not_ascii(struct jr *j, const char *p)
{
    size_t n;

    do {
        n = utf8_char((struct str){p, (size_t)(j->end - p)});
        if (n == 0 && !(j->flags & JR_LENIENT_UTF8))
            return jr_scan_fail(j, p, "ill-formed UTF-8");
        p += size_max(n, 1);
    } while (p < j->end && (unsigned char)*p >= 0x80);
    return p;
}

/* The next byte that may end or interrupt a string, or the end. */
static const char *scan_plain(const struct jr *j, const char *p)
{
    uint32_t stops;

    for (; j->end - p >= SCAN_STOPS; p += SCAN_STOPS) {
        stops = scan_stops(p);
        if (stops)
            return p + __builtin_ctz(stops);
    }
    while (p < j->end && (unsigned char)(*p - ' ') < 0x80 - ' ' && *p != '"' && *p != '\\')
        p++;
    return p;
}

const char *jr_scan_string_rest(struct jr *j, const char *p)
{
    while (p) {
        p = scan_plain(j, p);
        if (p == j->end)
            return jr_scan_fail(j, p, NULL);
        if (*p == '"')
            return p;
        if (*p == '\\')
            p = scan_escape(j, p);
        else if ((unsigned char)*p >= 0x80)
            p = scan_not_ascii(j, p);
        else
            return jr_scan_fail(j, p, "control character in a string");
    }
    return NULL;
}

/* One digit or more. */
static inline const char *scan_digits(struct jr *j, const char *p)
{
    const char *from = p;
    uint32_t others;

    for (; j->end - p >= SCAN_DIGITS; p += SCAN_DIGITS) {
        others = scan_not_digits(p);
        if (others) {
            p += __builtin_ctz(others);
            return LIKELY(p > from) ? p : jr_scan_fail(j, p, "expected a digit");
        }
    }
    while (p < j->end && (unsigned char)(*p - '0') < 10)
        p++;
    return p > from ? p : jr_scan_fail(j, p, "expected a digit");
}

const char *jr_scan_number(struct jr *j, const char *p)
{
    const char *from;

    p += *p == '-';
    if (UNLIKELY(scan_at(j, p) == 'I' && (j->flags & JR_NAN_WORDS)))
        return jr_scan_word(j, p - 1);
    from = p;
    p = scan_digits(j, p);
    if (p && *from == '0' && p - from > 1)
        return jr_scan_fail(j, from, "number with a leading zero");
    if (p && scan_at(j, p) == '.')
        p = scan_digits(j, p + 1);
    if (p && (scan_at(j, p) | 0x20) == 'e') {
        p++;
        p += scan_at(j, p) == '+' || scan_at(j, p) == '-';
        p = scan_digits(j, p);
    }
    return p;
}

const char *jr_scan_word(struct jr *j, const char *p)
{
    static const struct str words[] = {STR("true"), STR("false"),    STR("null"),
                                       STR("NaN"),  STR("Infinity"), STR("-Infinity")};
    size_t n = j->flags & JR_NAN_WORDS ? ARRAY_SIZE(words) : 3, left = (size_t)(j->end - p), i;

    for (i = 0; i < n; i++)
        if (left >= words[i].n && memcmp(p, words[i].p, words[i].n) == 0)
            return p + words[i].n;
    return jr_scan_fail(j, p, "expected a value");
}
