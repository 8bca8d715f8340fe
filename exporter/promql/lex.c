#include "exporter/promql/lex.h"

static bool lex_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool lex_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool lex_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The character at `at`, 0 at the end. */
static char char_at(struct str s, size_t at)
{
    return at < s.n ? s.p[at] : '\0';
}

static size_t skip_blank(struct str s, size_t at)
{
    for (; at < s.n && (lex_is_space(s.p[at]) || s.p[at] == '#'); at++)
        if (s.p[at] == '#')
            while (at + 1 < s.n && s.p[at + 1] != '\n' && s.p[at + 1] != '\r')
                at++;
    return at;
}

static size_t name_end(struct str s, size_t at)
{
    while (at < s.n && (lex_is_letter(s.p[at]) || lex_is_digit(s.p[at]) || s.p[at] == ':'))
        at++;
    return at;
}

static size_t number_end(struct str s, size_t at)
{
    bool exponent = false;

    for (; at < s.n; at++) {
        char c = s.p[at];

        if (!lex_is_letter(c) && !lex_is_digit(c) && c != '.' && !(exponent && (c == '+' || c == '-')))
            break;
        exponent = c == 'e' || c == 'E';
    }
    return at;
}

/* The end of the string at `at`, or 0 if it is not terminated. */
static size_t string_end(struct str s, size_t at)
{
    char quote = s.p[at++];

    for (; at < s.n && s.p[at] != quote; at++) {
        if (quote == '`')
            continue;
        if (s.p[at] == '\n')
            return 0;
        if (s.p[at] == '\\')
            at++;
    }
    return at < s.n ? at + 1 : 0;
}

static size_t operator_end(struct str s, size_t at)
{
    static const char *const doubles[] = {"==", "!=", "=~", "!~", "<=", ">="};

    for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
        if (s.p[at] == doubles[i][0] && char_at(s, at + 1) == doubles[i][1])
            return at + 2;
    return s.p[at] != '\0' && strchr("(){}[],:=<>+-*/%^@", s.p[at]) ? at + 1 : 0;
}

struct token lex_next(struct lexer *l)
{
    struct str s = l->query;
    size_t at = skip_blank(s, l->at), end;
    char c = char_at(s, at);
    struct token t = {.text = {s.p + at, 0}};

    l->at = at;
    if (at == s.n)
        return t;
    if (lex_is_letter(c) || (c == ':' && lex_is_letter(char_at(s, at + 1)))) {
        t.kind = TOKEN_NAME;
        end = name_end(s, at);
    } else if (lex_is_digit(c) || (c == '.' && lex_is_digit(char_at(s, at + 1)))) {
        t.kind = TOKEN_NUMBER;
        end = number_end(s, at);
    } else if (c == '"' || c == '\'' || c == '`') {
        t.kind = TOKEN_STRING;
        end = string_end(s, at);
    } else {
        t.kind = TOKEN_OPERATOR;
        end = operator_end(s, at);
    }
    if (end == 0) {
        l->error = t.kind == TOKEN_STRING ? "string without a closing quote" : "unexpected character";
        return (struct token){TOKEN_ERROR, t.text};
    }
    t.text.n = end - at;
    l->at = end;
    return t;
}

bool token_is(const struct token *t, const char *operator)
{
    return t->kind == TOKEN_OPERATOR && str_eq(t->text, str_of(operator));
}
