/* Skips and checks a value that is forwarded unchanged.
 *
 * Nearly all bytes of a range query's response are samples, `[1718600060.123,"0.25"],`. They have a fast
 * loop of 32-byte steps, which leaves all other shapes to the general code. */
#include "exporter/base/json.h"

#include "exporter/base/json_scan.h"

enum {
    SECONDS_DIGITS = 10, /* a time in seconds has ten digits from 2001 to 2286 */
    SAMPLE_ROOM = 64     /* longer than any sample that skip_samples() accepts */
};

/* Reads a time of ten digits and at most three decimals, followed by a comma. NULL, without an error, for
 * other shapes. Each branch returns a constant length, so that the processor can predict the branch
 * instead of waiting for a computed length. */
static inline const char *skip_time(const char *p)
{
    uint32_t others = scan_not_digits(p);
    const char *dot = p + SECONDS_DIGITS;

    if ((others & 0x7ff) != 0x400 || *p == '0')
        return NULL;
    if (*dot == ',')
        return dot;
    if (*dot != '.')
        return NULL;
    if ((others & 0x7800) == 0x4000)
        return dot + 4;
    if ((others & 0x3800) == 0x2000)
        return dot + 3;
    if ((others & 0x1800) == 0x1000)
        return dot + 2;
    return NULL;
}

/* Skips samples `[time,"text"],`; a value follows them. */
static const char *skip_samples(const char *p, const char *end)
{
    uint32_t stops;
    const char *q;

    while (end - p >= SAMPLE_ROOM && *p == '[') {
        q = skip_time(p + 1);
        if (!q || q[0] != ',' || q[1] != '"')
            break;
        q += 2;
        stops = scan_stops(q);
        if (!stops)
            break;
        q += __builtin_ctz(stops);
        if (memcmp(q, "\"],", 3) != 0)
            break;
        p = q + 3;
    }
    return p;
}

/* Moves to the value of the next member or item. */
static inline const char *skip_to_value(struct jr *j, const char *p)
{
    struct str name;

    if (scan_in_object(j)) {
        p = scan_name(j, p, &name);
        return p ? scan_space(j, p) : NULL;
    }
    return j->depth < JR_MAX_DEPTH ? scan_space(j, skip_samples(p, j->end)) : p;
}

/* p is after a value: leaves the objects and arrays that end there, and moves to the next value unless depth
 * `base` is reached. */
static inline const char *skip_after(struct jr *j, const char *p, unsigned base)
{
    char c;

    while (j->depth > base) {
        p = scan_space(j, p);
        c = scan_at(j, p);
        if (c == ',')
            return skip_to_value(j, scan_space(j, p + 1));
        if (c != (scan_in_object(j) ? '}' : ']'))
            return jr_scan_fail(j, p, scan_in_object(j) ? "expected ',' or '}'" : "expected ',' or ']'");
        j->depth--;
        p++;
    }
    return p;
}

/* p is at a value: reads it, or enters it if it is an object or array that is not empty. */
static inline const char *skip_one(struct jr *j, const char *p, bool *ret_entered)
{
    char c = scan_at(j, p);

    *ret_entered = false;
    if (c == '"') {
        p = scan_string(j, p + 1);
        return p ? p + 1 : NULL;
    }
    if ((unsigned char)(c - '0') < 10 || c == '-')
        return jr_scan_number(j, p);
    if (c != '{' && c != '[')
        return jr_scan_word(j, p);
    p = scan_enter(j, p);
    if (!p)
        return NULL;
    p = scan_space(j, p);
    *ret_entered = scan_at(j, p) != (c == '{' ? '}' : ']');
    return *ret_entered ? skip_to_value(j, p) : p;
}

static const char *skip_value(struct jr *j, const char *p)
{
    unsigned base = j->depth;
    bool entered;

    do {
        p = skip_one(j, p, &entered);
        if (p && !entered)
            p = skip_after(j, p, base);
    } while (p && (entered || j->depth > base));
    return p;
}

bool jr_skip(struct jr *j, struct str *ret)
{
    const char *from, *p;

    if (j->error)
        return false;
    from = scan_space(j, j->p);
    p = skip_value(j, from);
    if (!p)
        return false;
    if (ret)
        *ret = (struct str){from, (size_t)(p - from)};
    j->p = p;
    return true;
}
