/* Several queries in one field. The text is cut as Prometheus' lexer would see it, so that a `;` inside a
 * label value stays where it is. */
#include "exporter/score/summary.h"

/* The end of the string literal that starts at `at`; the end of the text when it has none. */
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

/* Where the query that starts at `at` ends: a separator or the end of the text. */
static size_t query_end(struct str s, size_t at)
{
    while (at < s.n && s.p[at] != ';') {
        if (s.p[at] == '"' || s.p[at] == '\'' || s.p[at] == '`')
            at = skip_literal(s, at);
        else if (s.p[at] == '#')
            at = skip_comment(s, at);
        else
            at++;
    }
    return at;
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
