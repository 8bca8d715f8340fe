/* The words of a query. */
#ifndef DS_PROMQL_LEX_H
#define DS_PROMQL_LEX_H

#include "exporter/base/str.h"

enum token_kind {
    TOKEN_END,
    TOKEN_ERROR,    /* lexer.error says why; the text is where */
    TOKEN_NAME,     /* of a metric, a label, a function; a keyword */
    TOKEN_STRING,   /* with its quotes */
    TOKEN_NUMBER,   /* or a duration */
    TOKEN_OPERATOR, /* one or two characters */
};

struct token {
    enum token_kind kind;
    struct str text; /* a slice of the query */
};

struct lexer {
    struct str query;
    size_t at;
    const char *error;
};

/* The next token. After TOKEN_END and TOKEN_ERROR the same again. */
struct token lex_next(struct lexer *l);
bool token_is(const struct token *t, const char *operator);

#endif
