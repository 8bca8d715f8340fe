#include "exporter/base/text.h"

#include "exporter/base/loop.h"

#include "exporter/base/json.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdio.h>
#include <zlib.h>

enum { TAIL_MIN_BYTES = 64 }; /* a shorter line keeps no end */

/* Appends the characters of s that end before `max`. Returns the rest of s. */
static struct str fill_line(char *out, size_t *n, size_t max, struct str s)
{
    while (s.n) {
        size_t k = utf8_char(s);
        struct str c = k ? (struct str){s.p, k} : STR("\xef\xbf\xbd");
        if (k == 1 && ((unsigned char)*s.p < 0x20 || *s.p == 0x7f))
            c = STR(" ");
        if (*n + c.n > max)
            break;
        memcpy(out + *n, c.p, c.n);
        *n += c.n;
        k = k ? k : utf8_bad_part(s);
        s = (struct str){s.p + k, s.n - k};
    }
    return s;
}

/* The last bytes of s, at most `max`, from the start of a character. */
static struct str line_tail(struct str s, size_t max)
{
    size_t from = s.n > max ? s.n - max : 0;

    while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80)
        from++;
    return (struct str){s.p + from, s.n - from};
}

void text_line(char *out, size_t size, struct str s)
{
    size_t tail = size < TAIL_MIN_BYTES ? 0 : size / 3, n = 0;

    s = str_trim(s);
    if (fill_line(out, &n, size - 1, s).n) {
        n = 0;
        s = line_tail(fill_line(out, &n, size - sizeof("…") - tail, s), tail);
        n += (size_t)(stpcpy(out + n, "…") - (out + n));
        (void)fill_line(out, &n, size - 1, s);
    }
    out[n] = '\0';
}

void text_line_json(char *out, size_t size, struct str raw)
{
    enum { MOST = 8192 }; /* an escape that this cuts shows as U+FFFD */
    struct str some = {raw.p, size_min(raw.n, MOST)};
    CLEANUP(cleanup_free) char *plain = xmalloc(some.n * 3 + 1);

    text_line(out, size, (struct str){plain, secret_hide(plain, jr_unescape(some, plain))});
}

void text_http_status(char *out, size_t size, long status, const char *with, struct str body)
{
    const char *phrase =
        status >= 100 && status < 600 ? MHD_get_reason_phrase_for((unsigned)status) : "Unknown";
    bool known = strcmp(phrase, "Unknown") != 0;
    int n = snprintf(out, size, "HTTP %ld%s%s%s", status, known ? " " : "", known ? phrase : "",
                     status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN ? with : "");

    body = str_trim(body);
    if (n < 0 || (size_t)n + 8 >= size || body.n == 0)
        return;
    memcpy(out + n, ": ", 2);
    text_line(out + n + 2, size - (size_t)n - 2, body);
}

int buf_put_url(struct buf *b, struct str s)
{
    size_t mark = b->n;
    int r = 0;

    for (struct str c = {s.p, 1}; c.p < s.p + s.n && r == 0; c.p++)
        r = str_has_only(c, "-._~") ? buf_put_str(b, c) : buf_printf(b, "%%%02X", (unsigned char)*c.p);
    if (r < 0)
        buf_truncate(b, mark);
    return r;
}

int buf_put_form(struct buf *b, struct str name, struct str value)
{
    return (b->n ? buf_putc(b, '&') : 0) ?: buf_put_url(b, name) ?: buf_putc(b, '=') ?: buf_put_url(b, value);
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

int buf_put_label_value(struct buf *b, struct str s)
{
    size_t escaped = 0;
    char *to;
    int r;

    for (size_t i = 0; i < s.n; i++)
        escaped += s.p[i] == '\\' || s.p[i] == '"' || s.p[i] == '\n';
    r = buf_room(b, s.n + escaped, &to);
    if (r < 0)
        return r;
    b->n += (size_t)(escape_label_value(to, s) - to);
    return 0;
}

int base64_decode(struct str text, struct buf *into)
{
    const gnutls_datum_t from = {(unsigned char *)(uintptr_t)text.p, (unsigned)text.n};
    gnutls_datum_t to = {0};
    int r;

    if (!text.n)
        return 0;
    /* GnuTLS stops at a hyphen. */
    if (text.n > UINT32_MAX || !str_has_only(text, "+/=\r\n") || gnutls_base64_decode2(&from, &to) < 0)
        return -EINVAL;
    r = buf_put(into, to.data, to.size);
    gnutls_memset(to.data, 0, to.size); /* it may be a secret */
    gnutls_free(to.data);
    return r;
}

size_t base64_encode(struct str bytes, char *out)
{
    const gnutls_datum_t from = {(unsigned char *)(uintptr_t)bytes.p, (unsigned)bytes.n};
    gnutls_datum_t to = {0};
    size_t n;

    if (!bytes.n)
        return 0;
    if (gnutls_base64_encode2(&from, &to) < 0)
        memory_exhausted(bytes.n);
    n = to.size;
    memcpy(out, to.data, n);
    gnutls_free(to.data);
    return n;
}

/* ---- UTF-8 ---- */

static const uint64_t HIGH_BITS = 0x8080808080808080;

/* The number of bytes at s that are a prefix of a well-formed character of *ret_len bytes; 0 if no character
 * starts with the first byte. The narrower ranges of some second bytes (Unicode, table 3-7) exclude overlong
 * forms, surrogates and code points over U+10FFFF. */
static size_t utf8_prefix(struct str s, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned low, high;
    size_t i = 1;

    if (s.n == 0 || p[0] < 0xc2 || p[0] > 0xf4)
        return *ret_len = s.n > 0 && p[0] < 0x80;
    *ret_len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    for (; i < *ret_len && i < s.n && p[i] >= low && p[i] <= high; i++)
        low = 0x80, high = 0xbf;
    return i;
}

size_t utf8_char(struct str s)
{
    size_t len, got = utf8_prefix(s, &len);

    return got == len ? len : 0;
}

size_t utf8_bad_part(struct str s)
{
    size_t len;

    return s.n ? size_max(utf8_prefix(s, &len), 1) : 0;
}

size_t utf8_valid_prefix(struct str s)
{
    size_t at = 0, len = 1;

    while (len && at < s.n) {
        uint64_t word = HIGH_BITS;

        if (s.n - at >= sizeof word)
            memcpy(&word, s.p + at, sizeof word);
        len = word & HIGH_BITS ? utf8_char((struct str){s.p + at, s.n - at}) : sizeof word;
        at += len;
    }
    return at;
}

struct str utf8_cut(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return (struct str){s.p, max};
}

size_t utf8_write(uint32_t code_point, char out[4])
{
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    bool is_character = code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
    uint32_t c = is_character ? code_point : 0xfffd;
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n - 1] | c);
    return n;
}

/* ---- zlib's inflate() with the rules about ends that it leaves to its caller ---- */

enum { AUTOMATIC_HEADER = 32, GZIP_MAGIC = 0x1f };

struct inflate {
    z_stream z;
    bool ended; /* at the end of a member; gzip allows another one */
    char why[96];
    unsigned char piece[INFLATE_BYTES];
};

struct inflate *inflate_new(void)
{
    struct inflate *d = xcalloc(1, sizeof(*d));

    if (inflateInit2(&d->z, MAX_WBITS + AUTOMATIC_HEADER) != Z_OK)
        memory_exhausted(sizeof(*d));
    return d;
}

struct inflate *inflate_free(struct inflate *d)
{
    if (d)
        (void)inflateEnd(&d->z);
    free(d);
    return NULL;
}

static int inflate_fail(struct inflate *d, int code)
{
    if (code == Z_MEM_ERROR)
        memory_exhausted(sizeof(*d));
    if (d->z.total_out == 0 && d->z.total_in)
        (void)snprintf(d->why, sizeof(d->why), "is not gzip");
    else
        (void)snprintf(d->why, sizeof(d->why), "is damaged: %s", d->z.msg ? d->z.msg : "invalid data");
    return -EBADMSG;
}

/* After a member: another one starts with its magic byte. */
static int inflate_next_member(struct inflate *d, struct str rest)
{
    if ((unsigned char)rest.p[0] != GZIP_MAGIC || inflateReset(&d->z) != Z_OK) {
        (void)snprintf(d->why, sizeof(d->why), "is followed by other data");
        return -EBADMSG;
    }
    d->ended = false;
    return 0;
}

int inflate_next(struct inflate *d, struct str *rest, struct str *ret)
{
    int code, r;

    *ret = (struct str){0};
    if (d->ended && rest->n == 0)
        return 0;
    r = d->ended ? inflate_next_member(d, *rest) : 0;
    if (r < 0)
        return r;

    d->z.next_in = (unsigned char *)(uintptr_t)rest->p;
    d->z.avail_in = (unsigned)size_min(rest->n, INFLATE_BYTES);
    d->z.next_out = d->piece;
    d->z.avail_out = INFLATE_BYTES;
    code = inflate(&d->z, Z_NO_FLUSH);
    if (code == Z_BUF_ERROR) /* neither input nor output is left */
        return 0;
    if (code != Z_OK && code != Z_STREAM_END)
        return inflate_fail(d, code);
    d->ended = code == Z_STREAM_END;

    *rest =
        (struct str){(const char *)d->z.next_in, rest->n - (size_t)((const char *)d->z.next_in - rest->p)};
    *ret = (struct str){(const char *)d->piece, INFLATE_BYTES - d->z.avail_out};
    return 1;
}

int inflate_end(struct inflate *d)
{
    if (d->ended)
        return 0;
    (void)snprintf(d->why, sizeof(d->why), "ends early, after %lu bytes", d->z.total_in);
    return -EBADMSG;
}

const char *inflate_error(const struct inflate *d)
{
    return d->why;
}

int inflate_body(struct str body, struct buf *into, char **ret_why)
{
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    size_t mark = into->n, decoded = 0;
    struct str out;
    int r, put = 0;

    while (put == 0 && (r = inflate_next(d, &body, &out)) > 0) {
        put = buf_put_str(into, out);
        decoded += out.n;
        if (decoded >= WORKER_SLICE_BYTES) {
            worker_slice();
            decoded = 0;
        }
    }
    r = put ?: r ?: inflate_end(d);
    if (r < 0)
        buf_truncate(into, mark);
    if (r == -EBADMSG && ret_why)
        *ret_why = str_dup(str_of(inflate_error(d)));
    return r;
}
