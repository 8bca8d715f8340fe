#include "exporter/base/escape.h"

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int buf_put_url(struct buf *b, struct str s)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t escaped = 0;
    char *to;
    int r;

    for (size_t i = 0; i < s.n; i++)
        escaped += !is_unreserved(s.p[i]);
    r = buf_room(b, s.n + 2 * escaped, &to);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (is_unreserved(s.p[i])) {
            *to++ = s.p[i];
        } else {
            *to++ = '%';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    b->n += s.n + 2 * escaped;
    return 0;
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
