/* Several queries in one field, and the cluster's name in them, by the rules of Prometheus' lexer: a `;`
 * inside a label value does not separate, and a name never ends the string literal that it is put into. */
#include "exporter/score/summary.h"

#include "exporter/base/buf.h"
#include "exporter/otlp/query.h"

#include <errno.h>
#include <stdio.h>

enum { AGE_MARGIN_MS = 60 * 1000 };

static const struct str CLUSTER = STR("${cluster}");

/* The end of the string literal at `at`, or of the text if it is not terminated. */
static size_t skip_literal(struct str s, size_t at)
{
    char quote = s.p[at++];

    for (; at < s.n && s.p[at] != quote; at++)
        if (s.p[at] == '\\' && quote != '`')
            at++;
    return at < s.n ? at + 1 : s.n;
}

static size_t skip_comment(struct str s, size_t at)
{
    while (at < s.n && s.p[at] != '\n')
        at++;
    return at;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

static bool is_literal(struct str part)
{
    return is_quote(part.p[0]);
}

/* A separator ends a part, so that each byte is looked at once. */
static size_t code_end(struct str s)
{
    size_t at = 0;

    while (at < s.n && !is_quote(s.p[at]) && s.p[at] != '#')
        if (s.p[at++] == ';')
            break;
    return at;
}

/* The part of PromQL at *at: a string literal, a comment, or all up to the next of them or behind the next
 * separator. */
static bool query_next_part(struct str s, size_t *at, struct str *ret)
{
    struct str rest = {s.p + *at, s.n - *at};

    if (rest.n == 0)
        return false;
    if (is_literal(rest))
        rest.n = skip_literal(rest, 0);
    else if (rest.p[0] == '#')
        rest.n = skip_comment(rest, 0);
    else
        rest.n = code_end(rest);
    *at += rest.n;
    *ret = rest;
    return true;
}

/* The end of the query at `at`: a separator or the end of the text. */
static size_t query_end(struct str s, size_t at)
{
    struct str part;

    while (query_next_part(s, &at, &part)) {
        const char *separator = is_literal(part) || part.p[0] == '#' ? NULL : memchr(part.p, ';', part.n);
        if (separator)
            return (size_t)(separator - s.p);
    }
    return s.n;
}

struct str summary_next_query(struct str joined, size_t *at)
{
    while (*at < joined.n) {
        size_t end = query_end(joined, *at);
        struct str q = str_trim((struct str){joined.p + *at, end - *at});

        *at = end < joined.n ? end + 1 : end;
        if (q.n)
            return q;
    }
    return STR("");
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
    int r = 0;

    if (quote == '`')
        return text.n && memchr(text.p, '`', text.n) ? -EINVAL : buf_put_str(into, text);
    for (size_t i = 0; i < text.n && r == 0; i++) {
        char c = text.p[i];

        if (c == '\n')
            r = buf_puts(into, "\\n");
        else if (c == '\\' || c == quote)
            r = buf_putc(into, '\\') ?: buf_putc(into, c);
        else
            r = buf_putc(into, c);
    }
    return r;
}

static int query_put_literal(struct buf *into, struct str part, struct str cluster)
{
    size_t from = 0, at;
    int r = 0;

    while (r == 0 && (at = find_cluster(part, from)) < part.n) {
        r = buf_put_str(into, (struct str){part.p + from, at - from})
                ?: query_put_escaped(into, cluster, part.p[0]);
        from = at + CLUSTER.n;
    }
    return r ?: buf_put_str(into, (struct str){part.p + from, part.n - from});
}

int summary_put_query(struct buf *into, struct str query, struct str cluster)
{
    struct str part;
    size_t at = 0;
    int r = 0;

    while (r == 0 && query_next_part(query, &at, &part))
        r = is_literal(part) ? query_put_literal(into, part, cluster) : buf_put_str(into, part);
    return r;
}

int summary_query_reach(const char *queries, int64_t *ret_ms, char why[QUERY_WHY_BYTES])
{
    struct str text = str_of(queries), query;
    int64_t longest = 0;
    size_t at = 0, n = 0;

    while ((query = summary_next_query(text, &at)).n) {
        CLEANUP(cleanup_query_free) struct query *q = NULL;
        int r = query_parse(&q, text, query, why);

        if (r < 0)
            return r;
        if (query_reach(q) > longest)
            longest = query_reach(q);
        if (++n > SUMMARY_MAX_QUERIES) {
            (void)snprintf(why, QUERY_WHY_BYTES, "more than %d queries", SUMMARY_MAX_QUERIES);
            return -EINVAL;
        }
    }
    *ret_ms = longest;
    return 0;
}

int64_t summaries_otlp_age(const struct summaries *s)
{
    int64_t longest = 0;

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < summary_sources(&s->list[i]); k++) {
            struct summary_source from = summary_source(&s->list[i], k);
            char why[QUERY_WHY_BYTES];
            int64_t reach = 0;

            if (from.type != SOURCE_OPENTELEMETRY || from.endpoint ||
                summary_query_reach(from.query, &reach, why) < 0)
                continue;
            reach += (from.range_s + from.step_s) * 1000 + AGE_MARGIN_MS;
            if (reach > longest)
                longest = reach;
        }
    return longest;
}
