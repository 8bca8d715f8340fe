/* Writes and reads escapes. Pure, any thread. An append that fails may leave a part; the buffer remembers it.
 * The bytes that need no escape are found many at a time (scan.h). */
#include "exporter/base/escape.h"

#include "exporter/base/scan.h"
#include "exporter/base/utf8.h"

void buf_put_url(struct buf *b, struct str s)
{
    for (struct str c = {s.p, 1}; c.p < s.p + s.n && !b->error; c.p++) {
        if (str_has_only(c, "-._~"))
            buf_put_str(b, c);
        else
            buf_printf(b, "%%%02X", (unsigned char)*c.p);
    }
}

void buf_put_form(struct buf *b, struct str name, struct str value)
{
    if (b->n)
        buf_putc(b, '&');
    buf_put_url(b, name);
    buf_putc(b, '=');
    buf_put_url(b, value);
}

char *escape_label_value(char *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' || s.p[i] == '"' || s.p[i] == '\n')
            *to++ = '\\';
        *to++ = s.p[i] == '\n' ? 'n' : s.p[i];
    }
    return to;
}

void buf_put_label_value(struct buf *b, struct str s)
{
    size_t escaped = 0;
    char *to;
    int r;

    for (size_t i = 0; i < s.n; i++)
        escaped += s.p[i] == '\\' || s.p[i] == '"' || s.p[i] == '\n';
    r = buf_reserve(b, s.n + escaped, &to);
    if (r < 0)
        buf_fail(b, r);
    else
        b->n += (size_t)(escape_label_value(to, s) - to);
}

/* ---- JSON ---- */

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
static void json_put_escaped(struct buf *b, struct str s, size_t *ret_n)
{
    static const char letters[] = "btn\0fr";
    unsigned char c = (unsigned char)s.p[0];

    *ret_n = 1;
    if (c == '"' || c == '\\') {
        buf_put(b, (const char[]){'\\', (char)c}, 2);
    } else if (c >= '\b' && c <= '\r' && c != '\v') {
        buf_put(b, (const char[]){'\\', letters[c - '\b']}, 2);
    } else if (c < ' ') {
        buf_printf(b, "\\u%04x", c);
    } else {
        buf_puts(b, "\xef\xbf\xbd");
        *ret_n = utf8_bad_part(s);
    }
}

/* Without the quotes. */
static void json_put_run(struct buf *b, struct str s)
{
    while (s.n > 0 && !b->error) {
        size_t n = clean_prefix(s);

        if (n > 0)
            buf_put(b, s.p, n);
        else
            json_put_escaped(b, s, &n);
        s = (struct str){s.p + n, s.n - n};
    }
}

void buf_put_json(struct buf *b, struct str s)
{
    buf_putc(b, '"');
    json_put_run(b, s);
    buf_putc(b, '"');
}

/* The offset of the next control character that JSON allows in a string, and its length; the end, and 0. */
static size_t next_allowed_control(struct str s, size_t *ret_n)
{
    for (size_t i = 0, n; i < s.n; i += size_max(n, 1)) {
        if ((unsigned char)s.p[i] - 0x20 < 0x5f) { /* visible ASCII */
            n = 1;
            continue;
        }
        n = utf8_char((struct str){s.p + i, s.n - i});
        if (n && (unsigned char)s.p[i] >= 0x20 && utf8_is_control(s.p + i, n)) {
            *ret_n = n;
            return i;
        }
    }
    *ret_n = 0;
    return s.n;
}

/* Of at most three bytes: DEL to U+2069. */
static uint32_t code_point_of(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;

    if (n == 1)
        return u[0];
    if (n == 2)
        return (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    return (u[0] & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
}

/* Appends s, by put_run but for the control characters that JSON allows, which become \uXXXX. */
static void put_visible(struct buf *b, struct str s, void (*put_run)(struct buf *b, struct str run))
{
    while (s.n > 0) {
        size_t n, run = next_allowed_control(s, &n);

        put_run(b, (struct str){s.p, run});
        if (n)
            buf_printf(b, "\\u%04x", code_point_of(s.p + run, n));
        s = (struct str){s.p + run + n, s.n - run - n};
    }
}

static void put_as_it_is(struct buf *b, struct str run)
{
    buf_put_str(b, run);
}

void buf_put_json_visible(struct buf *b, struct str s)
{
    buf_putc(b, '"');
    put_visible(b, s, json_put_run);
    buf_putc(b, '"');
}

void buf_put_visible(struct buf *b, struct str json)
{
    put_visible(b, json, put_as_it_is);
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
