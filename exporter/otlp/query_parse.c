/* From the text of a query to a tree. Everything of PromQL that is not supported is refused by its name. */
#include "exporter/base/arena.h"
#include "exporter/base/doc.h"
#include "exporter/base/json.h"
#include "exporter/base/regex.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/query_tree.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define UNSUPPORTED "is not supported by sourceType OpenTelemetry"
#define WAY_OUT \
    "; for all of PromQL set agent.otlp.prometheus.enabled in the chart, or give the source a host"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OPERATOR, TOKEN_ERROR };

/* The first error is kept; from then on the next token is the end, so that all loops end. */
struct parser {
    struct str text;  /* for positions */
    struct str query; /* a copy, which the tree refers to */
    size_t query_at;  /* where it begins in the text */
    size_t at;        /* behind the token */
    enum token_kind kind;
    struct str token; /* the next one */
    struct query *q;
    unsigned depth, parts;
    bool failed;
    char *why; /* QUERY_WHY_BYTES */
};

static struct expr *parse_expression(struct parser *p, unsigned precedence);

static void PRINTF_LIKE(3, 4) fail(struct parser *p, struct str place, const char *fmt, ...)
{
    unsigned line, column;
    va_list ap;
    int n;

    if (p->failed)
        return;
    p->failed = true;
    p->at = p->query.n;
    p->kind = TOKEN_END;
    p->token = (struct str){p->query.p + p->query.n, 0};
    jr_position(p->text, p->query_at + (size_t)(place.p - p->query.p), &line, &column);
    n = snprintf(p->why, QUERY_WHY_BYTES, "line %u, column %u: ", line, column);
    va_start(ap, fmt);
    (void)vsnprintf(p->why + n, QUERY_WHY_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
}

static void fail_expected(struct parser *p, const char *what)
{
    struct str t = p->token;
    char got[64];

    text_line(got, sizeof(got), t);
    if (p->kind == TOKEN_ERROR)
        fail(p, t, "%s", strchr("\"'`", t.p[0]) ? "string without a closing quote" : "unexpected character");
    else
        fail(p, t, "expected %s, got %s", what, p->kind == TOKEN_END ? "the end of the query" : got);
}

static void *parser_alloc(struct parser *p, size_t n)
{
    return memset(arena_alloc(&p->q->arena, n + 1), 0, n + 1);
}

/* ---- Tokens ---- */

static bool token_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool token_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The character at `at`, 0 at the end. */
static char char_at(struct str s, size_t at)
{
    return at < s.n ? s.p[at] : '\0';
}

static size_t blank_end(struct str s, size_t at)
{
    for (; at < s.n && strchr(" \t\n\r#", s.p[at]) && s.p[at]; at++)
        if (s.p[at] == '#')
            while (at + 1 < s.n && s.p[at + 1] != '\n' && s.p[at + 1] != '\r')
                at++;
    return at;
}

static size_t word_end(struct str s, size_t at)
{
    while (token_is_letter(char_at(s, at)) || token_is_digit(char_at(s, at)) || char_at(s, at) == ':')
        at++;
    return at;
}

/* Also of a duration, and of numbers in forms that are refused. */
static size_t number_end(struct str s, size_t at)
{
    bool exponent = false;

    for (; at < s.n; at++) {
        char c = s.p[at];

        if (!token_is_letter(c) && !token_is_digit(c) && c != '.' && !(exponent && (c == '+' || c == '-')))
            break;
        exponent = c == 'e' || c == 'E';
    }
    return at;
}

/* The end of the string at `at`, or 0 if it is not terminated. */
static size_t string_end(struct str s, size_t at)
{
    char quote = s.p[at++];

    for (; at < s.n && s.p[at] != quote && (quote == '`' || s.p[at] != '\n'); at++)
        if (s.p[at] == '\\' && quote != '`')
            at++;
    return char_at(s, at) == quote ? at + 1 : 0;
}

static size_t operator_end(struct str s, size_t at)
{
    static const char *const doubles[] = {"==", "!=", "=~", "!~", "<=", ">="};

    for (size_t i = 0; i < ARRAY_SIZE(doubles); i++)
        if (s.p[at] == doubles[i][0] && char_at(s, at + 1) == doubles[i][1])
            return at + 2;
    return s.p[at] && strchr("(){}[],:=<>+-*/%^@", s.p[at]) ? at + 1 : 0;
}

static void next(struct parser *p)
{
    struct str s = p->query;
    size_t at = blank_end(s, p->at), end = at;
    char c = char_at(s, at), after = char_at(s, at + 1);

    p->kind = TOKEN_END;
    if (token_is_letter(c) || (c == ':' && token_is_letter(after))) {
        p->kind = TOKEN_NAME;
        end = word_end(s, at);
    } else if (token_is_digit(c) || (c == '.' && token_is_digit(after))) {
        p->kind = TOKEN_NUMBER;
        end = number_end(s, at);
    } else if (at < s.n) {
        bool quoted = c && strchr("\"'`", c);

        p->kind = quoted ? TOKEN_STRING : TOKEN_OPERATOR;
        end = quoted ? string_end(s, at) : operator_end(s, at);
    }
    if (end == 0 && at < s.n) {
        p->kind = TOKEN_ERROR;
        end = at + 1;
    }
    p->token = (struct str){s.p + at, end - at};
    p->at = end;
}

static bool at_operator(const struct parser *p, const char *operator)
{
    return p->kind == TOKEN_OPERATOR && str_eq(p->token, str_of(operator));
}

static bool skip_operator(struct parser *p, const char *operator)
{
    if (!at_operator(p, operator))
        return false;
    next(p);
    return true;
}

static void take(struct parser *p, const char *operator, const char * what)
{
    if (!skip_operator(p, operator))
        fail_expected(p, what);
}

/* The word's place in the list, or that of the NULL at its end. */
static size_t word_in(struct str word, const char *const *list)
{
    size_t i = 0;

    while (list[i] && !str_eq_nocase(word, str_of(list[i])))
        i++;
    return i;
}

static bool at_word(const struct parser *p, const char *const *list)
{
    return p->kind == TOKEN_NAME && list[word_in(p->token, list)];
}

/* The content of the next token, a string; takes the token. Between backticks there are no escapes. */
static struct str take_string(struct parser *p)
{
    static const char letters[] = "abfnrtv\\\"'", values[] = "\a\b\f\n\r\t\v\\\"'";
    struct str s = p->token;
    char *to = parser_alloc(p, s.n);
    size_t n = 0;

    for (size_t i = 1; i + 1 < s.n; i++) {
        bool escaped = s.p[i] == '\\' && s.p[0] != '`';
        const char *letter = escaped && s.p[i + 1] ? strchr(letters, s.p[i + 1]) : NULL;

        if (escaped && (!letter || (strchr("\"'", *letter) && *letter != s.p[0])))
            fail(p, s,
                 "string with the escape sequence \\%c; supported: \\a \\b \\f \\n \\r \\t \\v \\\\ and the "
                 "quote",
                 s.p[i + 1]);
        to[n++] = letter ? values[letter - letters] : s.p[i];
        i += escaped;
    }
    if (utf8_valid_prefix((struct str){to, n}) < n)
        fail(p, s, "string with invalid UTF-8");
    next(p);
    return (struct str){to, n};
}

/* What RE2's grammar, which Prometheus has, does not share with PCRE2's; NULL if there is nothing. */
static const char *regex_refused(struct str s)
{
    static const char letters[] = "abfnrtxzABdDsSwWpP"; /* escapes that mean the same in both */
    bool in_class = false, quantified = false;

    for (size_t at = 0; at < s.n; at++) {
        char c = s.p[at], after = char_at(s, at + 1);
        size_t end = at + 2;
        bool was_quantified = quantified;

        quantified =
            !in_class && c && (strchr("*+?", c) || (c == '}' && at && strchr("0123456789,", s.p[at - 1])));
        if (c == '\\') {
            if (token_is_digit(after) || (token_is_letter(after) && !strchr(letters, after)))
                return "back-references and escape sequences that RE2 and PCRE2 do not share";
            at++;
        } else if (in_class) {
            in_class = c != ']' || s.p[at - 1] == '[' || (s.p[at - 1] == '^' && s.p[at - 2] == '[');
            while (c == '[' && after == ':' && token_is_letter(char_at(s, end)))
                end++;
            if (end > at + 2 && char_at(s, end) == ':' && char_at(s, end + 1) == ']')
                at = end + 1; /* [:alpha:] */
        } else if (c == '[') {
            in_class = true;
        } else if (c == '+' && was_quantified) {
            return "possessive quantifiers";
        } else if (c == '(' && after == '*') {
            return "verbs such as (*ACCEPT)";
        } else if (c == '(' && after == '?') {
            while (char_at(s, end) && strchr("imsU-", s.p[end]))
                end++;
            if (!(char_at(s, end) && strchr(":)", s.p[end])) &&
                !(end == at + 2 && char_at(s, end) == 'P' && char_at(s, end + 1) == '<'))
                return "look-around and other groups beyond (?:...), (?P<name>...) and (?flags:...)";
        }
    }
    return NULL;
}

/* NULL if it is refused. */
static const struct regex *compile(struct parser *p, struct str place, struct str expression)
{
    const char *refused = regex_refused(expression);
    char why[REGEX_WHY_BYTES];

    if (refused)
        fail(p, place, "invalid regular expression: %s are not supported", refused);
    else if (p->q->n_regexes == QUERY_MAX_REGEXES)
        fail(p, place, "more than %d regular expressions", QUERY_MAX_REGEXES);
    else if (regex_new(&p->q->regexes[p->q->n_regexes], expression, why) < 0)
        fail(p, place, "invalid regular expression: %s", why);
    else
        return p->q->regexes[p->q->n_regexes++];
    return NULL;
}

/* ---- Selectors: name{label="value", ...} ---- */

static void add_matcher(struct parser *p, struct expr *x, struct str place, struct series_matcher m)
{
    if (x->n_matchers == QUERY_MAX_MATCHERS)
        fail(p, place, "more than %d matchers", QUERY_MAX_MATCHERS);
    else
        x->matchers[x->n_matchers++] = m;
}

static void parse_matcher(struct parser *p, struct expr *x, bool named)
{
    static const char *const operators[] = {"=", "!=", "=~", "!~", NULL};
    bool quoted = p->kind == TOKEN_STRING;
    struct str first = p->token, place;
    struct series_matcher m = {.name = first};
    size_t i = 0;

    if (quoted)
        m.name = take_string(p);
    else if (p->kind != TOKEN_NAME || memchr(first.p, ':', first.n))
        fail_expected(p, "a label name or }");
    else
        next(p);
    while (operators[i] && !skip_operator(p, operators[i]))
        i++;
    place = p->token;
    if (!operators[i]) {
        if (!quoted)
            fail_expected(p, "one of = != =~ !~");
        m = (struct series_matcher){.name = STR("__name__"), .value = m.name}; /* {"name"} */
    } else if (p->kind != TOKEN_STRING) {
        fail_expected(p, "a string");
    } else {
        m.value = take_string(p);
        m.regex = i >= 2 ? compile(p, place, m.value) : NULL;
        m.negated = i % 2;
    }
    if (named && str_eq(m.name, STR("__name__")))
        fail(p, first, "the metric's name is given twice");
    add_matcher(p, x, first, m);
}

static bool matches_empty(const struct series_matcher *m)
{
    struct regex_matcher *matcher = regex_matcher_new();
    bool matches = m->regex ? regex_match(matcher, m->regex, STR("")) == 1 : m->value.n == 0;

    (void)regex_matcher_free(matcher);
    return matches != m->negated;
}

/* "[5m]"; its bracket is taken. */
static void parse_range(struct parser *p, struct expr *x)
{
    const int64_t longest = INT64_C(100) * 365 * 86400 * 1000;

    if (p->kind != TOKEN_NUMBER || !duration_parse(p->token, &x->range_ms) || x->range_ms < 1 ||
        x->range_ms > longest)
        fail_expected(p, "a duration such as 5m, 90s or 1h30m");
    next(p);
    if (char_at(p->token, 0) == ':')
        fail(p, p->token, "a subquery " UNSUPPORTED WAY_OUT);
    take(p, "]", "]");
    x->type = TYPE_RANGE;
}

/* The name, which may be empty, is taken. */
static void parse_selector(struct parser *p, struct expr *x, struct str name)
{
    struct str place = p->token;
    bool selects = name.n > 0;

    x->kind = EXPR_SELECTOR;
    x->type = TYPE_VECTOR;
    x->matchers = parser_alloc(p, QUERY_MAX_MATCHERS * sizeof(*x->matchers));
    if (selects)
        add_matcher(p, x, name, (struct series_matcher){.name = STR("__name__"), .value = name});
    if (skip_operator(p, "{"))
        while (!p->failed && !skip_operator(p, "}")) {
            parse_matcher(p, x, name.n > 0);
            if (!at_operator(p, "}"))
                take(p, ",", "a comma or }");
        }
    for (size_t i = 0; i < x->n_matchers && !selects && !p->failed; i++)
        selects = !matches_empty(&x->matchers[i]);
    if (!selects)
        fail(p, place,
             "a selector needs a matcher that does not match the empty string, such as {job=\"a\"}");
    if (skip_operator(p, "["))
        parse_range(p, x);
}

/* ---- Functions and aggregations ---- */

static const char *const aggregations[] = {
    [AGGREGATION_AVG] = "avg", [AGGREGATION_COUNT] = "count", [AGGREGATION_MAX] = "max",
    [AGGREGATION_MIN] = "min", [AGGREGATION_SUM] = "sum",     NULL};
static const char *const other_aggregations[] = {
    "bottomk",  "count_values", "group",  "limit_ratio", "limitk",
    "quantile", "stddev",       "stdvar", "topk",        NULL};
static const char *const groupings[] = {"by", "without", NULL};
/* Words of PromQL that cannot name a metric. */
static const char *const keywords[] = {"on", "ignoring", "group_left", "group_right", "bool", "and",
                                       "or", "unless",   "atan2",      "offset",      NULL};

static int label_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* "by (a, b)" */
static void parse_grouping(struct parser *p, struct expr *x)
{
    x->without = str_eq_nocase(p->token, STR("without"));
    x->labels = parser_alloc(p, QUERY_MAX_LABELS * sizeof(*x->labels));
    next(p);
    take(p, "(", "(");
    while (!p->failed && !skip_operator(p, ")")) {
        if (x->n_labels == QUERY_MAX_LABELS) {
            fail(p, p->token, "more than %d labels", QUERY_MAX_LABELS);
        } else if (p->kind == TOKEN_STRING) {
            x->labels[x->n_labels++] = take_string(p);
        } else if (p->kind == TOKEN_NAME) {
            x->labels[x->n_labels++] = p->token;
            next(p);
        } else {
            fail_expected(p, "a label name or )");
        }
        if (!at_operator(p, ")"))
            take(p, ",", "a comma or )");
    }
    qsort(x->labels, x->n_labels, sizeof(*x->labels), label_order);
}

/* "(expression)" of this type. NULL after an error. */
static struct expr *parse_argument(struct parser *p, enum expr_type type, const char *what)
{
    struct expr *x;
    struct str place;

    take(p, "(", "(");
    place = p->token;
    x = parse_expression(p, 0);
    if (x && x->type != type)
        fail(p, place, "%s takes a %s, as in %s", what, type == TYPE_RANGE ? "range" : "vector",
             type == TYPE_RANGE ? "rate(metric[5m])" : "sum(metric) or sum(rate(metric[5m]))");
    take(p, ")", ")");
    return p->failed ? NULL : x;
}

static void parse_aggregation(struct parser *p, struct expr *x, enum aggregation op)
{
    bool grouped = at_word(p, groupings);

    x->kind = EXPR_AGGREGATION;
    x->type = TYPE_VECTOR;
    x->aggregation = op;
    if (grouped)
        parse_grouping(p, x);
    x->left = parse_argument(p, TYPE_VECTOR, aggregations[op]);
    if (!grouped && at_word(p, groupings))
        parse_grouping(p, x);
}

static void refuse_call(struct parser *p, struct str name)
{
    bool aggregates = other_aggregations[word_in(name, other_aggregations)];
    char list[256];
    size_t n = 0;

    for (const struct range_function *f = range_functions; f->name; f++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", f->name);
    if (aggregates)
        fail(p, name,
             "aggregation %.*s " UNSUPPORTED "; supported aggregations: avg, count, max, min, sum" WAY_OUT,
             STR_ARG(name));
    else
        fail(p, name, "function %.*s " UNSUPPORTED "; supported functions: %s" WAY_OUT, STR_ARG(name), list);
}

/* Its name is taken; the next token is the parenthesis. */
static void parse_call(struct parser *p, struct expr *x, struct str name)
{
    const struct range_function *f = range_functions;
    struct expr *range;

    while (f->name && !str_eq(name, str_of(f->name)))
        f++;
    if (!f->name) {
        refuse_call(p, name);
        return;
    }
    range = parse_argument(p, TYPE_RANGE, f->name);
    if (!range)
        return;
    *x = *range;
    x->kind = EXPR_FUNCTION;
    x->type = TYPE_VECTOR;
    x->function = f;
}

static void parse_named(struct parser *p, struct expr *x)
{
    struct str name = p->token;
    size_t op = word_in(name, aggregations);
    bool called, grouped;

    next(p);
    called = at_operator(p, "(");
    grouped = at_word(p, groupings);
    if (aggregations[op] && (called || grouped))
        parse_aggregation(p, x, (enum aggregation)op);
    else if (called || (grouped && other_aggregations[word_in(name, other_aggregations)]))
        parse_call(p, x, name);
    else
        parse_selector(p, x, name);
}

/* ---- Operators ---- */

enum { PRECEDENCE_SUM = 1, PRECEDENCE_PRODUCT, PRECEDENCE_POWER };

/* Of the next token, 0 if it is no operator. */
static unsigned precedence_of(const struct parser *p)
{
    char c = p->kind == TOKEN_OPERATOR && p->token.n == 1 ? p->token.p[0] : '\0';

    if (c == '+' || c == '-')
        return PRECEDENCE_SUM;
    return c == '*' || c == '/' || c == '%' ? PRECEDENCE_PRODUCT : c == '^' ? PRECEDENCE_POWER : 0;
}

double query_compute(char operator, double a, double b)
{
    switch (operator) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    case '%':
        return fmod(a, b);
    default:
        return pow(a, b);
    }
}

static struct expr *new_expr(struct parser *p)
{
    if (++p->parts > QUERY_MAX_PARTS)
        fail(p, p->token, "more than %d operators, functions and selectors", QUERY_MAX_PARTS);
    return p->failed ? NULL : parser_alloc(p, sizeof(struct expr));
}

/* `right` is NULL for a negation. Of numbers it is computed. */
static struct expr *make_operation(struct parser *p, struct str op, struct expr *left, struct expr *right)
{
    struct expr *x = new_expr(p);

    if (!x || !left)
        return NULL;
    if (left->type == TYPE_RANGE || (right && right->type == TYPE_RANGE))
        fail(p, op, "operator %.*s takes no range; put a function around it, as in rate(metric[5m])",
             STR_ARG(op));
    *x = (struct expr){
        .kind = right ? EXPR_BINARY : EXPR_NEGATION, .type = left->type, .left = left, .right = right};
    x->operator= op.p[0];
    if (right && right->type == TYPE_VECTOR)
        x->type = TYPE_VECTOR;
    if (x->type == TYPE_SCALAR) {
        x->kind = EXPR_NUMBER;
        x->number = right ? query_compute(x->operator, left->number, right->number) : -left->number;
    }
    return x;
}

static void parse_number(struct parser *p, struct expr *x)
{
    struct str text = p->token;

    x->kind = EXPR_NUMBER;
    x->type = TYPE_SCALAR;
    if (p->kind == TOKEN_NAME)
        x->number = str_eq_nocase(text, STR("nan")) ? NAN : HUGE_VAL;
    else if (num_parse(text, &x->number) == NUM_SYNTAX)
        fail(p, text, "number %.*s " UNSUPPORTED "; write it as in 1, 0.5 or 1e-3", STR_ARG(text));
    next(p);
}

static struct expr *parse_operand(struct parser *p)
{
    static const char *const numbers[] = {"inf", "nan", NULL};
    struct str first = p->token;
    struct expr *x;

    if (skip_operator(p, "+"))
        return parse_expression(p, PRECEDENCE_POWER);
    if (skip_operator(p, "-"))
        return make_operation(p, first, parse_expression(p, PRECEDENCE_POWER), NULL);
    if (skip_operator(p, "(")) {
        x = parse_expression(p, 0);
        take(p, ")", ")");
        return x;
    }
    x = new_expr(p);
    if (!x)
        return NULL;
    if (p->kind == TOKEN_NUMBER || at_word(p, numbers))
        parse_number(p, x);
    else if (at_operator(p, "{"))
        parse_selector(p, x, STR(""));
    else if (p->kind == TOKEN_NAME && !at_word(p, keywords))
        parse_named(p, x);
    else
        fail_expected(p,
                      "a selector such as metric{label=\"value\"}, a number, a function or an aggregation");
    return x;
}

/* What follows an operand and is not supported: an operator or a modifier. */
static void refuse_suffix(struct parser *p)
{
    struct str t = p->token;

    if (at_operator(p, "["))
        fail(p, t,
             "a range is possible behind a selector only, as in rate(metric[5m]); a subquery " UNSUPPORTED
                 WAY_OUT);
    else if (at_operator(p, "@") || (p->kind == TOKEN_NAME && str_eq_nocase(t, STR("offset"))))
        fail(p, t, "modifier %.*s " UNSUPPORTED WAY_OUT, STR_ARG(t));
    else if (at_word(p, keywords) || (p->kind == TOKEN_OPERATOR && strchr("<>=!", t.p[0])))
        fail(p, t, "operator %.*s " UNSUPPORTED WAY_OUT, STR_ARG(t));
}

/* An operand, and the operators behind it that bind at least as strong. NULL after an error. */
static struct expr *parse_expression(struct parser *p, unsigned precedence)
{
    struct expr *left;
    unsigned found;

    if (++p->depth > QUERY_MAX_DEPTH)
        fail(p, p->token, "more than %d nested expressions", QUERY_MAX_DEPTH);
    left = p->failed ? NULL : parse_operand(p);
    refuse_suffix(p);
    while (!p->failed && (found = precedence_of(p)) && found >= precedence) {
        struct str op = p->token;
        struct expr *right;

        next(p);
        if (at_word(p, keywords))
            fail(p, p->token, "modifier %.*s " UNSUPPORTED WAY_OUT, STR_ARG(p->token));
        right = parse_expression(p, found + (found != PRECEDENCE_POWER)); /* a ^ b ^ c is a ^ (b ^ c) */
        left = p->failed ? NULL : make_operation(p, op, left, right);
    }
    p->depth--;
    return p->failed ? NULL : left;
}

/* ---- The query ---- */

static int64_t expr_reach(const struct expr *x)
{
    int64_t left, right;

    if (!x || x->kind == EXPR_SELECTOR || x->kind == EXPR_FUNCTION)
        return !x ? 0 : x->kind == EXPR_SELECTOR ? QUERY_LOOKBACK_MS : x->range_ms;
    left = expr_reach(x->left);
    right = expr_reach(x->right);
    return left > right ? left : right;
}

int query_parse(struct query **ret, struct str text, struct str query, char why[QUERY_WHY_BYTES])
{
    CLEANUP(cleanup_query_free) struct query *q = xcalloc(1, sizeof(*q));
    struct parser p = {
        .text = text, .query = query, .query_at = (size_t)(query.p - text.p), .q = q, .why = why};

    q->arena.chunk_bytes = 1024;
    if (query.n > QUERY_TEXT_MAX) {
        fail(&p, query, "query of %zu bytes; sourceType OpenTelemetry takes at most %d" WAY_OUT, query.n,
             QUERY_TEXT_MAX);
        return -EINVAL;
    }
    p.query.p = memcpy(parser_alloc(&p, query.n), query.p, query.n);
    next(&p);
    q->root = parse_expression(&p, 0);
    if (p.kind != TOKEN_END)
        fail_expected(&p, "the end of the query");
    if (!p.failed && q->root->type == TYPE_RANGE)
        fail(&p, p.query, "a range needs a function around it, as in rate(metric[5m])");
    if (p.failed)
        return -EINVAL;
    q->reach_ms = expr_reach(q->root);
    *ret = TAKE_PTR(q);
    return 0;
}

struct query *query_free(struct query *q)
{
    if (!q)
        return NULL;
    for (size_t i = 0; i < q->n_regexes; i++)
        (void)regex_free(q->regexes[i]);
    arena_done(&q->arena);
    free(q);
    return NULL;
}

int64_t query_reach(const struct query *q)
{
    return q->reach_ms;
}
