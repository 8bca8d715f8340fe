/* Escapes and unescapes JSON strings; line and column of an offset. */
#include "exporter/base/buf.h"
#include "exporter/base/json_scan.h"
#include "exporter/base/utf8.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

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

/* Reads one escape into *ret and returns its length. An invalid escape is one ill-formed byte. */
static size_t read_escape(struct str s, uint32_t *ret)
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
    uint32_t c;
    size_t n;

    if (*s.p == '\\') {
        n = read_escape(s, &c);
        *ret_n = utf8_write(c, out);
        return n;
    }
    n = utf8_char(s);
    if (n > 0) {
        memcpy(out, s.p, n);
        *ret_n = n;
        return n;
    }
    *ret_n = utf8_write(0xfffd, out);
    return utf8_bad_part(s);
}

bool jr_key_spells(struct str raw, const char *word)
{
    size_t n, took;
    char c[4];

    for (; raw.n > 0; raw = (struct str){raw.p + took, raw.n - took}, word += n) {
        took = n = 1;
        if (*raw.p != '\\' && (unsigned char)*raw.p < 0x80) {
            if (*raw.p != *word || *word == '\0')
                return false;
            continue;
        }
        took = read_char(raw, c, &n);
        if (c[0] == '\0' || strncmp(word, c, n) != 0)
            return false;
    }
    return *word == '\0';
}

size_t jr_unescape(struct str raw, char *out)
{
    const char *from = out;
    uint32_t stops;
    size_t n, took;

    while (raw.n > 0) {
        if (raw.n >= SCAN_STOPS) {
            /* Copies all 32 bytes, as there is room for raw.n * 3, but counts only those before a stop. */
            stops = scan_stops(raw.p);
            took = stops ? (size_t)__builtin_ctz(stops) : SCAN_STOPS;
            memcpy(out, raw.p, SCAN_STOPS);
            out += took;
            raw = (struct str){raw.p + took, raw.n - took};
            if (!stops)
                continue;
        }
        took = read_char(raw, out, &n);
        out += n;
        raw = (struct str){raw.p + took, raw.n - took};
    }
    return (size_t)(out - from);
}

/* The length of the prefix that needs no escape. */
static size_t clean_prefix(struct str s)
{
    size_t at = 0, n;

    while (at < s.n) {
        uint32_t stops = s.n - at >= SCAN_STOPS ? scan_stops(s.p + at) : 1;
        if (!stops) {
            at += SCAN_STOPS;
            continue;
        }
        at += (size_t)__builtin_ctz(stops);
        n = utf8_char((struct str){s.p + at, s.n - at});
        if (n == 0 || (unsigned char)s.p[at] < ' ' || s.p[at] == '"' || s.p[at] == '\\')
            break;
        at += n;
    }
    return at;
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

static int json_put_content(struct buf *b, struct str s)
{
    size_t n;
    int r;

    while (s.n > 0) {
        n = clean_prefix(s);
        r = buf_put(b, s.p, n);
        s = (struct str){s.p + n, s.n - n};
        if (r == 0 && s.n > 0) {
            r = json_put_escaped(b, s, &n);
            s = (struct str){s.p + n, s.n - n};
        }
        if (r < 0)
            return r;
    }
    return 0;
}

int buf_put_json(struct buf *b, struct str s)
{
    size_t mark = b->n;
    int r = buf_putc(b, '"') ?: json_put_content(b, s) ?: buf_putc(b, '"');

    if (r < 0)
        buf_truncate(b, mark);
    return r;
}

void jr_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
    size_t line = 1, begin = 0, n = size_min(offset, text.n);

    for (size_t i = 0; i < n; i++)
        if (text.p[i] == '\n') {
            line++;
            begin = i + 1;
        }
    *ret_line = (unsigned)line;
    *ret_column = (unsigned)(n - begin + 1);
}
