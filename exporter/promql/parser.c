/* Tokens and errors of the parser. */
#include "exporter/promql/parser.h"

#include "exporter/base/arena.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/promql/literal.h"
#include "exporter/promql/promql.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void parser_next(struct parser *p)
{
    p->token = lex_next(&p->lexer);
}

int parser_fail(struct parser *p, struct str place, const char *fmt, ...)
{
    unsigned line, column;
    int n;
    va_list ap;

    jr_position(p->text, (size_t)(place.p - p->text.p), &line, &column);
    n = snprintf(p->why, PROMQL_WHY_BYTES, "line %u, column %u: ", line, column);
    va_start(ap, fmt);
    (void)vsnprintf(p->why + n, PROMQL_WHY_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

int parser_expected(struct parser *p, const char *what)
{
    char got[64];

    if (p->token.kind == TOKEN_ERROR)
        return parser_fail(p, p->token.text, "%s", p->lexer.error);
    if (p->token.kind == TOKEN_END)
        return parser_fail(p, p->token.text, "expected %s, got the end of the query", what);
    text_line(got, sizeof(got), p->token.text);
    return parser_fail(p, p->token.text, "expected %s, got %s", what, got);
}

int parser_take(struct parser *p, const char *operator, const char * what)
{
    if (!token_is(&p->token, operator))
        return parser_expected(p, what);
    parser_next(p);
    return 0;
}

int parser_string(struct parser *p, struct str *ret)
{
    struct str literal = p->token.text;
    char *content = arena_alloc(&p->plan->arena, literal.n);
    size_t n;

    if (!content)
        return -ENOMEM;
    n = literal_string(literal, content);
    if (n == SIZE_MAX)
        return parser_fail(p, literal, "string with an invalid escape sequence or invalid UTF-8");
    *ret = (struct str){content, n};
    parser_next(p);
    return 0;
}
