/* Pure, but for secrets, which it hides. Any thread. What is cut stays well-formed UTF-8. */
#include "exporter/base/text.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/invariant.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>

enum { TAIL_MIN_BYTES = 64 }; /* a shorter line keeps no end */

/* Appends the characters of s that end before `max`. Returns the rest of s. */
static struct str fill_line(char *out, size_t *n, size_t max, struct str s)
{
    while (s.n) {
        size_t k = utf8_char(s);
        struct str c = k ? (struct str){s.p, k} : STR("\xef\xbf\xbd");
        if (k && utf8_is_control(s.p, k))
            c = k == 1 ? STR(" ") : STR("\xef\xbf\xbd");
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

void text_show_body(char *out, size_t size, const char *content_type, struct str body)
{
    enum { SHOWN_BYTES = 80, HIDDEN_IN_BYTES = 4096 };
    CLEANUP(cleanup_free) char *begin = str_dup((struct str){body.p, size_min(body.n, HIDDEN_IN_BYTES)});
    /* Before it is cut: half of a secret would not be found. */
    size_t n = secret_hide(begin, size_min(body.n, HIDDEN_IN_BYTES)), at = strlen(out);
    char type[128], shown[3 * SHOWN_BYTES + sizeof("…")];

    invariant(at < size);
    text_line(type, sizeof(type), *content_type ? str_of(content_type) : STR("none"));
    text_line(shown, 3 * SHOWN_BYTES + 1, (struct str){begin, size_min(n, SHOWN_BYTES)});
    if (n > SHOWN_BYTES)
        (void)strcat(shown, "…");
    if (body.n)
        (void)snprintf(out + at, size - at, "; Content-Type: %s, it begins with: %s", type, shown);
    else
        (void)snprintf(out + at, size - at, "; Content-Type: %s, the body is empty", type);
}

void text_join(struct buf *b, const char *separator)
{
    if (b->n > 0)
        buf_puts(b, separator);
}

void text_count(struct buf *b, uint64_t n, const char *noun)
{
    buf_printf(b, "%" PRIu64 " %s", n, noun);
    if (n != 1)
        buf_putc(b, 's');
}

/* "HTTP 502 Bad Gateway" */
static void text_put_status(struct buf *b, long status)
{
    const char *phrase = "Unknown";

    if (status >= 100 && status < 600)
        phrase = MHD_get_reason_phrase_for((unsigned)status);
    buf_printf(b, "HTTP %ld", status);
    if (strcmp(phrase, "Unknown") != 0)
        buf_printf(b, " %s", phrase);
}

void text_http_status(char *out, size_t size, long status, const char *with, struct str body)
{
    enum { BODY_MIN_BYTES = 8 }; /* for less, no body is shown */
    BUF_AUTO(head, SIZE_MAX / 2);
    struct str shown;

    text_put_status(&head, status);
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        buf_puts(&head, with);
    if (buf_failed(&head) < 0)
        memory_exhausted(head.n);
    shown = utf8_cut(buf_str(&head), size - 1);
    memcpy(out, shown.p, shown.n);
    out[shown.n] = '\0';
    body = str_trim(body);
    if (shown.n + BODY_MIN_BYTES >= size || body.n == 0)
        return;
    memcpy(out + shown.n, ": ", 2);
    text_line(out + shown.n + 2, size - shown.n - 2, body);
}
