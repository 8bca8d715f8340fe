/* The queries of a source: several in one field, and the cluster's name in them, by the rules of
 * Prometheus' lexer. A `;` inside a label value does not separate, and a name never ends the string
 * literal that it is put into. Owns nothing; any thread. */
#include "exporter/score/summary.h"

#include "exporter/base/buf.h"

#include <errno.h>

static const struct str CLUSTER = STR("${cluster}");

/* Whether a part of PromQL is a string literal. */
static bool is_literal(struct str part)
{
    return part.p[0] == '"' || part.p[0] == '\'' || part.p[0] == '`';
}

/* The part of PromQL at *at: a string literal, a comment, or all up to the next of them or behind the next
 * separator, so that each byte is looked at once. */
static bool query_next_part(struct str s, size_t *at, struct str *ret)
{
    struct str part = {s.p + *at, s.n - *at};
    char first = part.n ? part.p[0] : '\0';
    size_t n = 0;

    if (part.n == 0)
        return false;
    if (is_literal(part)) {
        for (n = 1; n < part.n && part.p[n] != first; n++)
            n += part.p[n] == '\\' && first != '`';
        n++;
    } else if (first == '#') {
        while (n < part.n && part.p[n] != '\n')
            n++;
    } else {
        bool ended = false;

        for (; !ended && n < part.n && !memchr("\"'`#", part.p[n], 4); n++)
            ended = part.p[n] == ';';
    }
    part.n = size_min(n, part.n);
    *at += part.n;
    *ret = part;
    return true;
}

struct str summary_next_query(struct str joined, size_t *at)
{
    struct str query = STR(""), part;
    size_t from = *at;

    while (!query.n && query_next_part(joined, at, &part)) {
        bool separates = !is_literal(part) && part.p[0] != '#' && part.p[part.n - 1] == ';';

        if (separates || *at == joined.n) {
            query = str_trim((struct str){joined.p + from, *at - from - separates});
            from = *at;
        }
    }
    return query;
}

/* The next ${cluster} in a part from `at` on, or the part's end. One behind a backslash is no placeholder. */
static size_t find_cluster(struct str part, size_t at)
{
    for (; at < part.n; at++)
        if (part.p[at] == '\\' && part.p[0] != '`')
            at++;
        else if (part.n - at >= CLUSTER.n && memcmp(part.p + at, CLUSTER.p, CLUSTER.n) == 0)
            return at;
    return part.n;
}

bool summary_query_uses_cluster(struct str query, bool in_literal)
{
    struct str part;
    size_t at = 0;

    while (query_next_part(query, &at, &part))
        if (part.p[0] != '#' && is_literal(part) == in_literal && find_cluster(part, 0) < part.n)
            return true;
    return false;
}

/* As the content of a literal with these quotes. */
static int query_put_escaped(struct buf *into, struct str text, char quote)
{
    if (quote == '`') { /* has no escapes */
        if (text.n && memchr(text.p, '`', text.n))
            return -EINVAL;
        buf_put_str(into, text);
        return buf_failed(into);
    }
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '\\' || c == quote)
            buf_putc(into, '\\');
        if (c == '\n')
            buf_puts(into, "\\n");
        else
            buf_putc(into, c);
    }
    return buf_failed(into);
}

int summary_put_query(struct buf *into, struct str query, struct str cluster)
{
    struct str part;
    size_t at = 0;
    int r = 0;

    while (r == 0 && query_next_part(query, &at, &part)) {
        size_t from = 0, found;

        while (r == 0 && is_literal(part) && (found = find_cluster(part, from)) < part.n) {
            buf_put(into, part.p + from, found - from);
            r = query_put_escaped(into, cluster, part.p[0]);
            from = found + CLUSTER.n;
        }
        buf_put(into, part.p + from, part.n - from);
    }
    return r ?: buf_failed(into);
}
