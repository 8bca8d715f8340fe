/* Splits several queries in one field by the rules of Prometheus' lexer, so that a `;` inside a label value
 * does not separate. */
#include "exporter/score/summary.h"

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

/* The end of the query at `at`: a separator or the end of the text. */
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
