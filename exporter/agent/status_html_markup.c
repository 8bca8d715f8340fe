/* HTML, and what the pages of all roles have in common: escaping, the head, tiles, facts, the build. */
#include "exporter/agent/status_page.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/version.h"

#include <stdarg.h>

enum { REFRESH_SECONDS = 10 };

static struct str entity(struct str s, size_t char_len)
{
    unsigned char c = (unsigned char)*s.p;

    switch (c) {
    case '&':
        return STR("&amp;");
    case '<':
        return STR("&lt;");
    case '>':
        return STR("&gt;");
    case '"':
        return STR("&quot;");
    case '\'':
        return STR("&#39;");
    default:
        if (char_len == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return STR("\xef\xbf\xbd");
        return (struct str){NULL, 0};
    }
}

void html_text(struct out *o, struct str s)
{
    size_t plain = 0, at = 0;

    while (at < s.n) {
        struct str here = {s.p + at, s.n - at};
        size_t n = utf8_char(here);
        struct str instead = entity(here, n);

        if (instead.n) {
            out_str(o, (struct str){s.p + plain, at - plain});
            out_str(o, instead);
            plain = at + size_max(n, 1);
        }
        at += size_max(n, 1);
    }
    out_str(o, (struct str){s.p + plain, at - plain});
}

void html(struct out *o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    for (const char *p = fmt; *p;) {
        size_t n = strcspn(p, "%");

        out_str(o, (struct str){p, n});
        p += n;
        if (p[0] == '%' && p[1] == 's') {
            html_text(o, str_of(va_arg(ap, const char *)));
            p += 2;
        } else if (p[0] == '%') { /* zu */
            out_printf(o, "%zu", va_arg(ap, size_t));
            p += 3;
        }
    }
    va_end(ap);
}

void html_fact(struct out *o, const char *what)
{
    html(o, "<div><dt>%s</dt><dd>", what);
}

void html_fact_end(struct out *o)
{
    html(o, "</dd></div>\n");
}

void html_moment(struct out *o, int64_t now_ms, int64_t at_ms)
{
    char when[STATUS_WORD], utc[32];

    status_when(now_ms, at_ms, when);
    if (at_ms == 0) {
        html(o, "%s", when);
        return;
    }
    unix_ms_format((unix_ms){at_ms}, utc);
    html(o, "<time datetime=\"%s\">%s", utc, when);
    utc[10] = ' ';
    utc[19] = '\0';
    html(o, "<span class=\"soft\">%s UTC</span></time>", utc);
}

void html_count(struct out *o, uint64_t n)
{
    char digits[STATUS_WORD];

    status_count(n, digits);
    html(o, "%s", digits);
}

void html_badge(struct out *o, const char *class, const char *word)
{
    html(o, "<span class=\"state %s\">%s</span>", class, word);
}

/* The icon tells from among a browser's tabs how things are. */
void html_head(struct out *o, const char *name, size_t failing, bool bad)
{
    html(o, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
            "content=\"no-referrer\">\n");
    html(o, "<meta http-equiv=\"refresh\" content=\"%zu\">\n<title>", (size_t)REFRESH_SECONDS);
    if (failing)
        html(o, "%zu failing · ", failing);
    html(o, "%s · dynamic-scoring</title>\n", name);
    out_puts(o, "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
                "viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23");
    out_puts(o, bad ? "d1302e" : "2da44e");
    out_puts(o, "'/%3E%3C/svg%3E\">\n");
    html(o, "<style>");
    out_puts(o, status_style);
    html(o, "</style>\n</head>\n<body>\n");
}

void html_links(struct out *o, const char *const *paths, size_t n, int64_t now_ms)
{
    char now[32];

    unix_ms_format((unix_ms){now_ms}, now);
    now[10] = ' ';
    now[19] = '\0';
    html(o, "<nav aria-label=\"Links\">");
    for (size_t i = 0; i < n; i++)
        html(o, "<a href=\"%s\">%s</a>", paths[i], paths[i]);
    html(o, "<span class=\"soft\">%s UTC, renewed every %zu s</span></nav>\n", now, (size_t)REFRESH_SECONDS);
}

void html_tile(struct out *o, const char *what, const char *class, uint64_t n)
{
    html(o, "<div class=\"%s\"><dt>%s</dt><dd>", n ? class : "none", what);
    html_count(o, n);
    html_fact_end(o);
}

void html_build(struct out *o, int64_t started_ms, int64_t now_ms)
{
    char up[STATUS_WORD];

    status_duration(now_ms - started_ms, up);
    html(o, "<h2 id=\"build\">Build</h2>\n<section class=\"card\" aria-labelledby=\"build\"><dl "
            "class=\"facts\">\n");
    html(o, "<div><dt>Version</dt><dd>%s</dd></div><div><dt>Revision</dt><dd><code>%s</code></dd></div>\n",
         ds_version, ds_revision);
    html_fact(o, "Started");
    html_moment(o, now_ms, started_ms);
    html_fact_end(o);
    html(o, "<div><dt>Up for</dt><dd>%s</dd></div>\n</dl></section>\n</main>\n</body>\n</html>\n", up);
}
