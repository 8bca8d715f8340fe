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
    r = buf_put(into, rest.p + skip, rest.n - skip);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}
