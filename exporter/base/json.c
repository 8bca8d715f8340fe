/* The pull interface: each call reads one token or one whole value. */
#include "exporter/base/json.h"

#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/base/scan.h"
#include "exporter/base/utf8.h"

/* Scanning many bytes at once. Every scanner takes a position and returns the position after what it read, or
 * sets the error and returns NULL. Nothing is read at or after j->end. */

/* Sets the error, which is "unexpected end" at the end of the text. Returns NULL. */
static const char *scan_fail(struct jr *j, const char *at, const char *why)
{
    if (!j->error) {
        j->error = at == j->end ? "unexpected end" : why;
        j->error_at = (size_t)(at - j->begin);
    }
    return NULL;
}

/* The byte at p; at the end NUL, which no rule accepts. */
static inline char scan_at(const struct jr *j, const char *p)
{
    return p < j->end ? *p : '\0';
}

/* The end of what is scanned before worker_slice() is due, at most j->end. */
static inline const char *slice_end(const struct jr *j, const char *p)
{
    return j->end - p > WORKER_SLICE_BYTES ? p + WORKER_SLICE_BYTES : j->end;
}

static __attribute__((noinline)) void slice_pause(struct jr *j, const char *p)
{
    j->slice_at = p + size_min((size_t)(j->end - p), WORKER_SLICE_BYTES);
    worker_slice();
}

/* Between values. */
static inline void slice_check(struct jr *j, const char *p)
{
    if (UNLIKELY(p > j->slice_at))
        slice_pause(j, p);
}

static const char *scan_space_rest(struct jr *j, const char *p)
{
    const char *end = slice_end(j, p);

    for (;;) {
        while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
            p++;
        if (p < end || end == j->end)
            return p;
        slice_pause(j, p);
        end = slice_end(j, p);
    }
}

static inline const char *scan_space(struct jr *j, const char *p)
{
    if (LIKELY(p < j->end && (unsigned char)*p > ' '))
        return p;
    return scan_space_rest(j, p);
}

enum { SCAN_BLOCK = 64 };

static inline uint64_t scan_block(const char *p)
{
    return scan_stops(p) | (uint64_t)scan_stops(p + SCAN_STOPS) << SCAN_STOPS;
}

/* The slow paths: escapes and non-ASCII characters. */

/* p is at the backslash. */
static const char *scan_escape(struct jr *j, const char *p)
{
    char c = scan_at(j, ++p);

    if (c == '\0' || !strchr("\"\\/bfnrtu", c))
        return scan_fail(j, p, "invalid escape");
    p++;
    if (c == 'u')
        for (int i = 0; i < 4; i++, p++)
            if (hex_value(scan_at(j, p)) < 0)
                return scan_fail(j, p, "expected four hexadecimal digits");
    return p;
}

static const char *scan_not_ascii(struct jr *j, const char *p)
{
    size_t n;

    do {
        n = utf8_char((struct str){p, (size_t)(j->end - p)});
        if (n == 0 && !(j->flags & JR_LENIENT_UTF8))
            return scan_fail(j, p, "ill-formed UTF-8");
        p += size_max(n, 1);
    } while (p < j->end && (unsigned char)*p >= 0x80);
    return p;
}

static const char *scan_string_rest(struct jr *j, const char *p)
{
    const char *end;

    while (p) {
        end = slice_end(j, p);
        p = scan_plain(p, end);
        if (p == j->end)
            return scan_fail(j, p, NULL);
        slice_check(j, p);
        if (p == end)
            continue;
        if (*p == '"')
            return p;
        if (*p == '\\')
            p = scan_escape(j, p);
        else if ((unsigned char)*p >= 0x80)
            p = scan_not_ascii(j, p);
        else
            return scan_fail(j, p, "control character in a string");
    }
    return NULL;
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
            return scan_string_rest(j, p);
        j->block = at < 2 * SCAN_BLOCK ? j->block + SCAN_BLOCK : p;
        j->stops = scan_block(j->block);
        if (p < j->block)
            p = j->block;
        stops = j->stops >> (p - j->block);
        if (!stops)
            return scan_string_rest(j, p);
    }
    p += __builtin_ctzll(stops);
    return LIKELY(*p == '"') ? p : scan_string_rest(j, p);
}

/* Reads a member's name and the colon; *ret is the name raw between its quotes. */
static inline __attribute__((always_inline)) const char *scan_name(struct jr *j, const char *p,
                                                                   struct str *ret)
{
    const char *close;

    if (UNLIKELY(scan_at(j, p) != '"'))
        return scan_fail(j, p, "expected a name in quotes");
    close = scan_string(j, p + 1);
    if (UNLIKELY(!close))
        return NULL;
    *ret = (struct str){p + 1, (size_t)(close - p - 1)};
    p = scan_space(j, close + 1);
    if (UNLIKELY(scan_at(j, p) != ':'))
        return scan_fail(j, p, "expected ':'");
    return p + 1;
}

static inline bool scan_in_object(const struct jr *j)
{
    return j->kinds[(j->depth - 1) / 64] >> (j->depth - 1) % 64 & 1;
}

static const char *scan_fail_depth(struct jr *j, const char *p)
{
    return scan_fail(j, p,
                     j->flags & JR_DEEP ? "nested deeper than 2048 levels" : "nested deeper than 256 levels");
}

/* Enters the object or array that starts at p. */
static inline const char *scan_enter(struct jr *j, const char *p)
{
    uint64_t bit = 1ULL << j->depth % 64, *word;

    if (UNLIKELY(j->depth >= JR_MAX_DEPTH) && (!(j->flags & JR_DEEP) || j->depth == JR_MAX_DEPTH_DEEP))
        return scan_fail_depth(j, p);
    word = &j->kinds[j->depth / 64];
    *word = *p == '{' ? *word | bit : *word & ~bit;
    j->depth++;
    return p + 1;
}

static const char *scan_word(struct jr *j, const char *p)
{
    static const struct str words[] = {STR("true"), STR("false"),    STR("null"),
                                       STR("NaN"),  STR("Infinity"), STR("-Infinity")};
    size_t n = j->flags & JR_NAN_WORDS ? ARRAY_SIZE(words) : 3, left = (size_t)(j->end - p), i;

    for (i = 0; i < n; i++)
        if (left >= words[i].n && memcmp(p, words[i].p, words[i].n) == 0)
            return p + words[i].n;
    return scan_fail(j, p, "expected a value");
}

/* One digit or more. */
static inline const char *scan_digits(struct jr *j, const char *p)
{
    const char *from = p, *end = slice_end(j, p);

    while (p < end && (unsigned char)(*p - '0') < 10)
        p++;
    while (UNLIKELY(p == end && end < j->end)) {
        slice_pause(j, p);
        end = slice_end(j, p);
        while (p < end && (unsigned char)(*p - '0') < 10)
            p++;
    }
    return LIKELY(p > from) ? p : scan_fail(j, p, "expected a digit");
}

/* Reads a number, a bare word (true, false, null, and those of JR_NAN_WORDS), or fails. */
static const char *scan_number(struct jr *j, const char *p)
{
    const char *from;

    p += *p == '-';
    if (UNLIKELY(scan_at(j, p) == 'I' && (j->flags & JR_NAN_WORDS)))
        return scan_word(j, p - 1);
    from = p;
    p = scan_digits(j, p);
    if (p && *from == '0' && p - from > 1)
        return scan_fail(j, from, "number with a leading zero");
    if (p && scan_at(j, p) == '.')
        p = scan_digits(j, p + 1);
    if (p && (scan_at(j, p) | 0x20) == 'e') {
        p++;
        p += scan_at(j, p) == '+' || scan_at(j, p) == '-';
        p = scan_digits(j, p);
    }
    return p;
}

/* Skips a range query's samples, `[1718600060.123,"0.25"],`, which are nearly all bytes of its response, in
 * steps whose length the processor can predict. What looks different is left to the general code. */
static const char *skip_samples(const char *p, const char *end)
{
    enum { TIME = 10, DECIMALS = 4, SAMPLE_ROOM = 1 + TIME + DECIMALS + 2 + SCAN_STOPS + 2 };
    uint32_t others, stops;
    const char *q;

    while (end - p >= SAMPLE_ROOM && p[0] == '[' && p[1] != '0') {
        others = scan_not_digits(p + 1) & 0x7fff; /* a time of ten digits; with three decimals, or none */
        q = p + 1 + TIME;
        if (others == 0x4400 && *q == '.')
            q += DECIMALS;
        else if ((others & 0x7ff) != 0x400)
            break;
        stops = q[0] == ',' && q[1] == '"' ? scan_stops(q + 2) : 0;
        if (!stops)
            break;
        q += 2 + __builtin_ctz(stops);
        if (memcmp(q, "\"],", 3) != 0)
            break;
        p = q + 3;
    }
    return p;
}

/* Moves to the value of the member or item at p. */
static inline const char *skip_to_value(struct jr *j, const char *p)
{
    struct str name;

    if (!scan_in_object(j))
        return j->depth < JR_MAX_DEPTH ? scan_space(j, skip_samples(p, slice_end(j, p))) : p;
    p = scan_name(j, p, &name);
    return p ? scan_space(j, p) : NULL;
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
            return scan_fail(j, p, scan_in_object(j) ? "expected ',' or '}'" : "expected ',' or ']'");
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
        return scan_number(j, p);
    if (c != '{' && c != '[')
        return scan_word(j, p);
    p = scan_enter(j, p);
    if (!p)
        return NULL;
    p = scan_space(j, p);
    *ret_entered = scan_at(j, p) != (c == '{' ? '}' : ']');
    return *ret_entered ? skip_to_value(j, p) : p;
}

/* Skips and checks a value that is forwarded unchanged. */
static const char *skip_value(struct jr *j, const char *p)
{
    unsigned base = j->depth;
    bool entered;

    do {
        slice_check(j, p);
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

bool jr_key_spells(struct str raw, const char *word)
{
    char plain[6 * 3 * JR_MAX_WORD];
    size_t n = strlen(word);

    return n <= JR_MAX_WORD && raw.n <= 6 * n && jr_unescape(raw, plain) == n && memcmp(plain, word, n) == 0;
}

void jr_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
    size_t line = 1, begin = 0, n = size_min(offset, text.n);

    for (size_t i = 0; i < n; i++) {
        if (i % WORKER_SLICE_BYTES == 0)
            worker_slice();
        if (text.p[i] == '\n') {
            line++;
            begin = i + 1;
        }
    }
    *ret_line = (unsigned)line;
    *ret_column = (unsigned)(n - begin + 1);
}

void jr_init(struct jr *j, struct str text, unsigned flags)
{
    static const char none[1];

    *j = (struct jr){.flags = flags};
    j->begin = text.n ? text.p : none;
    j->p = j->block = j->begin;
    j->end = j->begin + text.n;
    j->slice_at = slice_end(j, j->begin);
    if (text.n >= SCAN_BLOCK)
        j->stops = scan_block(j->begin);
}

bool jr_fail(struct jr *j, const char *why)
{
    if (!j->error) {
        j->error = why;
        j->error_at = (size_t)(j->p - j->begin);
    }
    return false;
}

enum jr_type jr_peek(struct jr *j)
{
    static const uint8_t types[256] = {
        ['{'] = JR_OBJECT,    ['['] = JR_ARRAY,     ['"'] = JR_STRING, ['t'] = JR_TRUE,
        ['f'] = JR_FALSE,     ['n'] = JR_NULL,      ['-'] = JR_NUMBER, ['0' ... '9'] = JR_NUMBER,
        ['N'] = JR_NONFINITE, ['I'] = JR_NONFINITE,
    };
    enum jr_type type;

    if (j->error)
        return JR_NONE;
    j->p = scan_space(j, j->p);
    type = types[(unsigned char)scan_at(j, j->p)];
    if (type == JR_NUMBER && *j->p == '-' && scan_at(j, j->p + 1) == 'I')
        type = JR_NONFINITE;
    if (type == JR_NONFINITE && !(j->flags & JR_NAN_WORDS))
        type = *j->p == '-' ? JR_NUMBER : JR_NONE;
    if (type == JR_NONE)
        (void)scan_fail(j, j->p, "expected a value");
    return type;
}

/* Ends a call that has read up to p; NULL after an error. */
static inline bool jr_move(struct jr *j, const char *p)
{
    if (LIKELY(p != NULL))
        j->p = p;
    return p != NULL;
}

static inline bool jr_enter(struct jr *j, char bracket, const char *expected)
{
    const char *p;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    p = LIKELY(scan_at(j, p) == bracket) ? scan_enter(j, p) : scan_fail(j, p, expected);
    j->first = true;
    return jr_move(j, p);
}

bool jr_object(struct jr *j)
{
    return jr_enter(j, '{', "expected an object");
}

bool jr_array(struct jr *j)
{
    return jr_enter(j, '[', "expected an array");
}

/* Moves to the next member or item; NULL on error and after the closing bracket, which is consumed. */
static inline const char *jr_next(struct jr *j, char bracket, const char *expected)
{
    const char *p;

    if (UNLIKELY(j->error != NULL))
        return NULL;
    slice_check(j, j->p);
    p = scan_space(j, j->p);
    if (scan_at(j, p) == bracket) {
        j->p = p + 1;
        j->depth--;
        j->first = false;
        return NULL;
    }
    if (j->first) {
        j->first = false;
        return p;
    }
    if (UNLIKELY(scan_at(j, p) != ','))
        return scan_fail(j, p, expected);
    return scan_space(j, p + 1);
}

bool jr_member(struct jr *j, struct str *ret_key)
{
    const char *p = jr_next(j, '}', "expected ',' or '}'");

    return jr_move(j, p ? scan_name(j, p, ret_key) : NULL);
}

bool jr_item(struct jr *j)
{
    return jr_move(j, jr_next(j, ']', "expected ',' or ']'"));
}

bool jr_string(struct jr *j, struct str *ret)
{
    const char *p, *close;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    close = LIKELY(scan_at(j, p) == '"') ? scan_string(j, p + 1) : scan_fail(j, p, "expected a string");
    if (UNLIKELY(!close))
        return false;
    if (ret)
        *ret = (struct str){p + 1, (size_t)(close - p - 1)};
    j->p = close + 1;
    return true;
}

bool jr_number(struct jr *j, struct str *ret)
{
    const char *p, *end;
    char c;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    c = scan_at(j, p);
    if (LIKELY((unsigned char)(c - '0') < 10 || c == '-'))
        end = scan_number(j, p);
    else if ((c == 'N' || c == 'I') && (j->flags & JR_NAN_WORDS))
        end = scan_word(j, p);
    else
        end = scan_fail(j, p, "expected a number");
    if (UNLIKELY(!end))
        return false;
    if (ret)
        *ret = (struct str){p, (size_t)(end - p)};
    j->p = end;
    return true;
}

bool jr_end(struct jr *j)
{
    if (j->error)
        return false;
    j->p = scan_space(j, j->p);
    if (j->p == j->end && j->depth == 0)
        return true;
    scan_fail(j, j->p, "unexpected data after the value");
    return false;
}
