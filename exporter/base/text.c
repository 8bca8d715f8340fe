#include "exporter/base/text.h"

#include "exporter/base/def.h"
#include "exporter/base/json.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <microhttpd.h>
#include <stdio.h>

void text_line(char *out, size_t size, struct str s)
{
    size_t n = 0, mark = 0; /* mark: how much may stay when "..." must follow */

    s = str_trim(s);
    while (s.n) {
        size_t k = utf8_char(s);
        struct str c = k ? (struct str){s.p, k} : STR("\xef\xbf\xbd");
        if (k == 1 && ((unsigned char)*s.p < 0x20 || *s.p == 0x7f))
            c = STR(" ");
        if (n + c.n >= size) {
            n = mark;
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        memcpy(out + n, c.p, c.n);
        n += c.n;
        if (n + sizeof("...") <= size)
            mark = n;
        k = k ? k : utf8_bad_part(s);
        s = (struct str){s.p + k, s.n - k};
    }
    out[n] = '\0';
}

void text_line_json(char *out, size_t size, struct str raw)
{
    /* Enough to fill any line, were it all escapes of six bytes for one. */
    enum { MOST = 8192 };
    CLEANUP(cleanup_free) char *plain = NULL;

    /* An escape that is cut in the middle shows as U+FFFD, far behind what fits into a line. */
    raw.n = size_min(raw.n, MOST);
    while (raw.n && raw.n == MOST && raw.p[raw.n - 1] == '\\')
        raw.n--;
    plain = malloc(raw.n * 3 + 1);
    if (!plain) {
        text_line(out, size, raw);
        return;
    }
    text_line(out, size, (struct str){plain, secret_hide(plain, jr_unescape(raw, plain))});
}

void text_http_status(char *out, size_t size, long status, struct str body)
{
    const char *phrase = status >= 100 && status < 600 ? MHD_get_reason_phrase_for((unsigned)status) : "";
    int n = snprintf(out, size, "HTTP %ld%s%s", status, *phrase && strcmp(phrase, "Unknown") != 0 ? " " : "",
                     strcmp(phrase, "Unknown") != 0 ? phrase : "");

    body = str_trim(body);
    if (n < 0 || (size_t)n + 8 >= size || body.n == 0)
        return;
    memcpy(out + n, ": ", 2);
    text_line(out + n + 2, size - (size_t)n - 2, body);
}
