/* The pull interface: each call reads one token or one whole value. */
#include "exporter/base/json.h"

#include "exporter/base/loop.h"
#include "exporter/base/text.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Scanning many bytes at once. Every scanner takes a position and returns the position after what it read, or
 * sets the error and returns NULL. Nothing is read at or after j->end. */

enum { SCAN_STOPS = 32, SCAN_BLOCK = 64 };

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

static inline uint64_t scan_block(const char *p)
{
    return scan_stops(p) | (uint64_t)scan_stops(p + SCAN_STOPS) << SCAN_STOPS;
}

/* The slow paths: escapes and non-ASCII characters. */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

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

/* The next byte that may end or interrupt a string, or the end. */
static const char *scan_plain(const char *p, const char *end)
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

/* Enters the object or array that starts at p. */
static inline const char *scan_enter(struct jr *j, const char *p)
{
    uint64_t bit = 1ULL << j->depth % 64, *word;

    if (UNLIKELY(j->depth == JR_MAX_DEPTH))
        return scan_fail(j, p, "nested deeper than 256 levels");
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

/* ---- Escapes ---- */

/* The value of the \uXXXX at s, or -1 if there is none. */
static int32_t hex_escape(struct str s)
{
    int32_t v = 0;

    if (s.n < 6 || s.p[0] != '\\' || s.p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int h = hex_value(s.p[i]);
        if (h < 0)
            return -1;
        v = v << 4 | h;
    }
    return v;
}

size_t jr_escape(struct str s, uint32_t *ret)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *at = s.n > 1 && s.p[1] != '\0' ? strchr(letters, s.p[1]) : NULL;
    int32_t high, low;

    if (at) {
        *ret = (unsigned char)means[at - letters];
        return 2;
    }
    *ret = 0xfffd;
    high = hex_escape(s);
    if (high < 0)
        return 1;
    /* utf8_write() replaces a lone surrogate. */
    *ret = (uint32_t)high;
    if (high < 0xd800 || high > 0xdbff)
        return 6;
    low = hex_escape((struct str){s.p + 6, s.n - 6});
    if (low < 0xdc00 || low > 0xdfff)
        return 6;
    *ret = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* Decodes one character of a raw string into out, *ret_n bytes; returns the number of raw bytes read. */
static size_t read_char(struct str s, char out[4], size_t *ret_n)
{
    bool is_escape = *s.p == '\\';
    uint32_t c = 0xfffd;
    size_t n = is_escape ? jr_escape(s, &c) : utf8_char(s);

    if (n > 0 && !is_escape) {
        memcpy(out, s.p, n);
        return *ret_n = n;
    }
    *ret_n = utf8_write(c, out);
    return n > 0 ? n : utf8_bad_part(s);
}

size_t jr_unescape(struct str raw, char *out)
{
    const char *p = cstr(raw.p), *end = p + raw.n, *stop, *from = out;
    size_t n;

    for (; p < end; out += n) {
        stop = scan_plain(p, end);
        out = mempcpy(out, p, (size_t)(stop - p));
        n = 0;
        p = stop < end ? stop + read_char((struct str){stop, (size_t)(end - stop)}, out, &n) : end;
    }
    return (size_t)(out - from);
}

bool jr_key_spells(struct str raw, const char *word)
{
    char plain[6 * 3 * JR_MAX_WORD];
    size_t n = strlen(word);

    return n <= JR_MAX_WORD && raw.n <= 6 * n && jr_unescape(raw, plain) == n && memcmp(plain, word, n) == 0;
}

/* The length of the prefix that needs no escape. */
static size_t clean_prefix(struct str s)
{
    const char *p = s.p, *end = p + s.n;
    size_t n;

    /* What stops is a character that is not ASCII, or needs an escape. */
    do {
        p = scan_plain(p, end);
        n = utf8_char((struct str){p, (size_t)(end - p)});
        p += n > 1 ? n : 0;
    } while (n > 1);
    return (size_t)(p - s.p);
}

/* Appends the escape of the first byte, or U+FFFD for the ill-formed part, of s; *ret_n is its length. */
static int json_put_escaped(struct buf *b, struct str s, size_t *ret_n)
{
    static const char letters[] = "btn\0fr";
    unsigned char c = (unsigned char)s.p[0];

    *ret_n = 1;
    if (c == '"' || c == '\\')
        return buf_put(b, (const char[]){'\\', (char)c}, 2);
    if (c >= '\b' && c <= '\r' && c != '\v')
        return buf_put(b, (const char[]){'\\', letters[c - '\b']}, 2);
    if (c < ' ')
        return buf_printf(b, "\\u%04x", c);
    *ret_n = utf8_bad_part(s);
    return buf_puts(b, "\xef\xbf\xbd");
}

int buf_put_json(struct buf *b, struct str s)
{
    size_t mark = b->n, n;
    int r = buf_putc(b, '"');

    while (r == 0 && s.n > 0) {
        n = clean_prefix(s);
        r = n > 0 ? buf_put(b, s.p, n) : json_put_escaped(b, s, &n);
        s = (struct str){s.p + n, s.n - n};
    }
    r = r ?: buf_putc(b, '"');
    if (r < 0)
        buf_truncate(b, mark);
    return r;
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
