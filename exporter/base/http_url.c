#include "exporter/base/http.h"

/* Length of the authority at the start of s: up to the path, the query or the fragment. */
static size_t authority_end(struct str s)
{
    size_t i = 0;

    while (i < s.n && s.p[i] != '/' && s.p[i] != '?' && s.p[i] != '#')
        i++;
    return i;
}

static size_t after_last_at(struct str s)
{
    const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL;

    return at ? (size_t)(at - s.p) + 1 : 0;
}

/* True for the "user:pa" of `user:pa/ss@host`, which is not host:port. */
static bool has_invalid_port(struct str authority)
{
    const char *colon = authority.n ? memrchr(authority.p, ':', authority.n) : NULL;
    const char *bracket = authority.n ? memrchr(authority.p, ']', authority.n) : NULL;

    if (!colon || (bracket && bracket > colon))
        return false;
    for (const char *p = colon + 1; p < authority.p + authority.n; p++)
        if (*p < '0' || *p > '9')
            return true;
    return false;
}

/* Length of the user information at the start. A password with an unescaped `/`, `?` or `#` makes the URL
 * invalid, but must not be shown either. */
static size_t userinfo_length(struct str rest)
{
    struct str authority = {rest.p, authority_end(rest)};
    size_t n = after_last_at(authority);

    if (n == 0 && has_invalid_port(authority))
        n = after_last_at(rest);
    return n;
}

static bool is_open_parameter(struct str name)
{
    static const struct str open[] = {STR("query"), STR("start"), STR("end"), STR("step")};

    for (size_t i = 0; i < ARRAY_SIZE(open); i++)
        if (str_eq(name, open[i]))
            return true;
    return false;
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static size_t value_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && !is_one_of(s.p[n], "&;# \t\r\n\"'<>"))
        n++;
    return n;
}

/* Values of parameters may be tokens, so that only those of the query API are shown. The text may go on after
 * the URL. */
static int put_parameters(struct str s, struct buf *into)
{
    bool in_query = false;
    size_t name = 0;
    int r = 0;

    for (size_t i = 0; i < s.n && r == 0; i++) {
        char c = s.p[i];

        r = buf_putc(into, c);
        if (is_one_of(c, " \t\r\n\"'<>"))
            in_query = false;
        if (is_one_of(c, "?#") || (in_query && is_one_of(c, "&;"))) {
            in_query = true;
            name = i + 1;
        } else if (r == 0 && in_query && c == '=' && name) {
            struct str value = {s.p + i + 1, s.n - i - 1};
            size_t n = value_length(value);
            bool open = is_open_parameter((struct str){s.p + name, i - name});

            r = open || n == 0 ? buf_put(into, value.p, n) : buf_puts(into, "***");
            i += n;
            name = 0;
        }
    }
    return r;
}

bool http_is_url(struct str url)
{
    size_t n = url.n >= 7 && strncasecmp(url.p, "http://", 7) == 0    ? 7
               : url.n >= 8 && strncasecmp(url.p, "https://", 8) == 0 ? 8
                                                                      : 0;

    return n && n < url.n && url.p[n] != '/';
}

int http_url_for_people(struct str url, struct buf *into)
{
    const char *scheme = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
    size_t skip = scheme ? (size_t)(scheme - url.p) + 3 : 0, mark = into->n;
    struct str rest;
    int r;

    /* A later "://", for example in a query, does not end a scheme. */
    if (skip && authority_end(url) < skip - 2)
        skip = 0;
    rest = (struct str){url.p + skip, url.n - skip};
    r = buf_put(into, url.p, skip);
    if (r < 0)
        return r;
    skip = rest.n ? userinfo_length(rest) : 0;
    r = put_parameters((struct str){rest.p + skip, rest.n - skip}, into);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}
