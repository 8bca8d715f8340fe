/* What the files of the parser share. Private to the room. */
#ifndef DS_PROMQL_PARSER_H
#define DS_PROMQL_PARSER_H

#include "exporter/promql/lex.h"
#include "exporter/promql/plan.h"

struct parser {
    struct str text; /* the query is a slice of it */
    struct lexer lexer;
    struct token token; /* the next one */
    struct promql_plan *plan;
    unsigned depth; /* of parentheses */
    char *why;      /* PROMQL_WHY_BYTES */
};

void parser_next(struct parser *p);
/* -EINVAL with "line L, column C: ..." of the place, which lies in the text. */
MUST_USE int parser_fail(struct parser *p, struct str place, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "expected <what>, got <the next token>". */
MUST_USE int parser_expected(struct parser *p, const char *what);
/* Takes the operator, or fails. */
MUST_USE int parser_take(struct parser *p, const char *operator, const char * what);
/* The content of the next token, a string, on the plan's arena; takes the token. */
MUST_USE int parser_string(struct parser *p, struct str *ret);

/* The metric's name, which may be empty, is taken already; the next token is what follows it. */
MUST_USE int parse_selector(struct parser *p, struct str name);

/* Why Prometheus rejects a regular expression that PCRE2 accepts, or NULL. */
const char *re2_refuses(struct str expression);

#endif
