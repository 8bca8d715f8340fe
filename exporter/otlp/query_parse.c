/* From the text of a query to a tree. Everything of PromQL that is not supported is refused by its name. */
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/doc.h"
#include "exporter/base/json.h"
#include "exporter/base/regex.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <math.h>
#include <pcre2.h>
#include <stdarg.h>
#include <stdio.h>

#define UNSUPPORTED "is not supported by sourceType OpenTelemetry"
#define HINT_USE_PROMETHEUS \
    "; for all of PromQL set agent.otlp.prometheus.enabled in the chart, or give the source a host"

enum { LOOKBACK_MS = 5 * 60 * 1000, QUERY_MAX_DEPTH = 50 };

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_OPERATOR, TOKEN_STRING, TOKEN_ERROR };

/* Blanks and comments, then a token: its group has the number of its kind, and 0 is none. A number is also
 * a duration, or one in a form that is refused. */
#define QUOTED(quote) quote "(?:[^" quote "\\\\\\n\\0]++|\\\\[^\\0])*+" quote
static const char token_pattern[] = "(?:[ \\t\\n\\r]++|#[^\\n\\r\\0]*+)*+(?:"
                                    "(:?[A-Za-z_][\\w:]*+)"
                                    "|(\\.?\\d(?:[\\w.]|(?<=[eE])[+-])*+)"
                                    "|([=!<>][=~]|[(){}[\\],:=<>+*/%^@-])"
                                    "|(" QUOTED("\"") "|" QUOTED("'") "|`[^`\\0]*+`))?+";

/* The first error is kept; from then on the next token is the end, so that all loops end. */
struct parser {
    struct str text;  /* for positions */
    struct str query; /* a terminated copy, which the tree refers to */
    size_t query_at;  /* where it begins in the text */
    enum token_kind kind;
    struct str token; /* the next one */
    pcre2_code *tokens;
    pcre2_match_data *found;
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
    p->kind = TOKEN_END;
    p->token = (struct str){p->query.p + p->query.n, 0};
    jr_position(p->text, p->query_at + (size_t)(place.p - p->query.p), &line, &column);
    n = snprintf(p->why, QUERY_WHY_BYTES, "line %u, column %u: ", line, column);
    va_start(ap, fmt);
    (void)vsnprintf(p->why + n, QUERY_WHY_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
}

/* Words of PromQL that cannot name a metric. */
static const char *const keywords[] = {"on", "ignoring", "group_left", "group_right", "bool", "and",
                                       "or", "unless",   "atan2",      "offset",      NULL};

static bool is_word_of(struct str word, const char *const *list)
{
    while (*list && !str_eq_nocase(word, str_of(*list)))
        list++;
    return *list;
}

static bool at_word(const struct parser *p, const char *const *list)
{
    return p->kind == TOKEN_NAME && is_word_of(p->token, list);
}

/* Whatever else PromQL has at this place is refused by its name. */
static void fail_expected(struct parser *p, const char *what)
{
    struct str t = p->token;
    char got[64];

    text_line(got, sizeof(got), t);
    if (p->kind == TOKEN_ERROR)
        fail(p, t, "%s", strchr("\"'`", t.p[0]) ? "string without a closing quote" : "unexpected character");
    else if (at_word(p, keywords) || (p->kind == TOKEN_OPERATOR && strchr("[:@<>=!", t.p[0])))
        fail(p, t, "%s " UNSUPPORTED HINT_USE_PROMETHEUS, strchr("[:", t.p[0]) ? "a subquery" : got);
    else
        fail(p, t, "expected %s, got %s", what, p->kind == TOKEN_END ? "the end of the query" : got);
}

/* A part of the tree, zeroed. */
static void *new_part(struct parser *p, size_t n)
{
    if (++p->parts > QUERY_MAX_PARTS)
        fail(p, p->token, "more than %d selectors, matchers, labels, functions, operators and numbers",
             QUERY_MAX_PARTS);
    return memset(arena_alloc(&p->q->arena, n), 0, n);
}

/* ---- Tokens ---- */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static void next(struct parser *p)
{
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->found);
    size_t from = (size_t)(p->token.p + p->token.n - p->query.p);
    int groups =
        pcre2_match(p->tokens, (PCRE2_SPTR)p->query.p, p->query.n, from, PCRE2_ANCHORED, p->found, NULL);

    if (groups < 1) /* it matches everything */
        memory_exhausted(p->query.n);
    p->kind = (enum token_kind)(groups - 1);
    p->token = (struct str){p->query.p + at[2 * p->kind], at[2 * p->kind + 1] - at[2 * p->kind]};
    if (p->kind == TOKEN_END) { /* or something else behind the blanks */
        p->token = (struct str){p->query.p + at[1], at[1] < p->query.n};
        p->kind = p->token.n ? TOKEN_ERROR : TOKEN_END;
    }
}

static bool at_operator(const struct parser *p, const char *op)
{
    return p->kind == TOKEN_OPERATOR && str_eq(p->token, str_of(op));
}

static bool skip_operator(struct parser *p, const char *op)
{
    if (!at_operator(p, op))
        return false;
    next(p);
    return true;
}

static void take(struct parser *p, const char *op, const char *what)
{
    if (!skip_operator(p, op))
        fail_expected(p, what);
}

/* The content of the next token, a string, terminated; takes the token. Between backticks there are no
 * escapes. */
static struct str take_string(struct parser *p)
{
    static const char letters[] = "abfnrtv\\\"'", values[] = "\a\b\f\n\r\t\v\\\"'";
    struct str s = p->token;
    char *to = arena_alloc(&p->q->arena, s.n);
    size_t n = 0;

    for (size_t i = 1; i + 1 < s.n; i++) {
        bool escaped = s.p[i] == '\\' && s.p[0] != '`';
        const char *letter = escaped ? strchr(letters, s.p[i + 1]) : NULL;

        if (escaped && (!letter || (is_one_of(*letter, "\"'") && *letter != s.p[0])))
            fail(p, s,
                 "string with the escape sequence \\%c; supported: \\a \\b \\f \\n \\r \\t \\v \\\\ and the "
                 "quote",
                 s.p[i + 1]);
        to[n++] = letter ? values[letter - letters] : s.p[i];
        i += escaped;
    }
    to[n] = '\0';
    if (utf8_valid_prefix((struct str){to, n}) < n)
        fail(p, s, "string with invalid UTF-8");
    next(p);
    return (struct str){to, n};
}

/* ---- Selectors: name{label="value", ...} ---- */

static bool regex_matches(const struct regex *x, struct str subject)
{
    struct regex_matcher *m = regex_matcher_new();
    bool matches = regex_match(m, x, subject) == 1;

    (void)regex_matcher_free(m);
    return matches;
}

/* The expressions that mean the same to RE2, which Prometheus has, and to PCRE2. Repetitions such as {,3} and
 * { 3 } are new in PCRE2 10.43, and literal characters elsewhere. */
#define REGEX_ESCAPE "\\\\(?:[^A-Za-z0-9]|[abfnrtxzABdDsSwWpP])"
static const char shared_grammar[] = "(?:" REGEX_ESCAPE /* classes: */
                                     "|\\[\\^?\\]?(?:\\[:\\^?[A-Za-z]+:\\]|" REGEX_ESCAPE "|[^\\]\\\\])*+\\]"
                                     "|\\((?![?*])|\\(\\?(?:[imsU-]*[:)]|P<)" /* groups */
                                     "|(?:[*+?]|\\{\\d+(?:,\\d*)?\\})(?!\\+)" /* repetitions */
                                     "|\\{(?![\\d, \\t]*\\})|[^\\\\[({*+?])*+";

/* NULL if it is refused. */
static const struct regex *compile(struct parser *p, struct str place, struct str expression)
{
    struct regex *grammar = NULL, **x = &p->q->regexes[p->q->n_regexes];
    char why[REGEX_WHY_BYTES];

    if (regex_new(x, expression, why) < 0) {
        fail(p, place, "invalid regular expression: %s", why);
        return NULL;
    }
    p->q->n_regexes++;
    if (regex_new(&grammar, str_of(shared_grammar), why) < 0 || !regex_matches(grammar, expression))
        fail(p, place,
             "invalid regular expression: look-around, back-references, possessive quantifiers and all else "
             "that RE2 and PCRE2 do not share are not supported");
    (void)regex_free(grammar);
    return p->failed ? NULL : *x;
}

/* The next token, a label's name. */
static struct str take_label(struct parser *p, const char *expected)
{
    struct str name = p->token;

    if (p->kind == TOKEN_STRING)
        return take_string(p);
    if (p->kind != TOKEN_NAME || memchr(name.p, ':', name.n))
        fail_expected(p, expected);
    next(p);
    return name;
}

static struct series_matcher *add_matcher(struct parser *p, struct series_matcher **list, struct str name)
{
    struct series_matcher *m = new_part(p, sizeof(*m));

    m->name = name;
    while (*list)
        list = &(*list)->next;
    *list = m;
    return m;
}

static void parse_matcher(struct parser *p, struct expr *x, bool named)
{
    static const char *const operators[] = {"=", "!=", "=~", "!~", NULL};
    struct str first = p->token, place;
    struct series_matcher *m = add_matcher(p, &x->matchers, take_label(p, "a label name or }"));
    size_t i = 0;

    while (operators[i] && !skip_operator(p, operators[i]))
        i++;
    place = p->token;
    if (!operators[i] && is_one_of(first.p[0], "\"'`")) { /* {"name"} */
        m->value = m->name;
        m->name = STR("__name__");
    } else if (!operators[i]) {
        fail_expected(p, "one of = != =~ !~");
    } else if (p->kind != TOKEN_STRING) {
        fail_expected(p, "a string");
    } else {
        m->value = take_string(p);
        m->negated = i % 2;
        m->regex = i >= 2 && !p->failed ? compile(p, place, m->value) : NULL;
    }
    if (named && str_eq(m->name, STR("__name__")))
        fail(p, first, "the metric's name is given twice");
}

static bool matches_empty(const struct series_matcher *m)
{
    return (m->regex ? regex_matches(m->regex, STR("")) : m->value.n == 0) != m->negated;
}

/* "[5m]"; its bracket is taken. */
static void parse_range(struct parser *p, struct expr *x)
{
    const int64_t longest = INT64_C(100) * 365 * 86400 * 1000;

    if (p->kind != TOKEN_NUMBER || !duration_parse(p->token, &x->range_ms) || x->range_ms < 1 ||
        x->range_ms > longest)
        fail_expected(p, "a duration such as 5m, 90s or 1h30m");
    next(p);
    take(p, "]", "]");
    x->kind = EXPR_RANGE;
}

/* The name, which may be empty, is taken. */
static void parse_selector(struct parser *p, struct expr *x, struct str name)
{
    struct str place = p->token;
    bool selects = name.n > 0;

    x->kind = EXPR_SELECTOR;
    x->how = COMPUTE_LATEST;
    x->range_ms = LOOKBACK_MS;
    if (selects)
        add_matcher(p, &x->matchers, STR("__name__"))->value = name;
    if (skip_operator(p, "{"))
        while (!p->failed && !skip_operator(p, "}")) {
            parse_matcher(p, x, name.n > 0);
            if (!at_operator(p, "}"))
                take(p, ",", "a comma or }");
        }
    for (const struct series_matcher *m = x->matchers; m && !selects && !p->failed; m = m->next)
        selects = !matches_empty(m);
    if (!selects)
        fail(p, place,
             "a selector needs a matcher that does not match the empty string, such as {job=\"a\"}");
    if (skip_operator(p, "["))
        parse_range(p, x);
    if (x->range_ms > p->q->reach_ms)
        p->q->reach_ms = x->range_ms;
}

/* ---- Functions and aggregations ---- */

struct function {
    const char *name;
    bool aggregates; /* series; else the samples of a range */
    enum computation how;
};

static const struct function functions[] = {
    {"avg", true, COMPUTE_MEAN},
    {"count", true, COMPUTE_COUNT},
    {"max", true, COMPUTE_MAX},
    {"min", true, COMPUTE_MIN},
    {"sum", true, COMPUTE_SUM},
    {"avg_over_time", false, COMPUTE_MEAN},
    {"count_over_time", false, COMPUTE_COUNT},
    {"delta", false, COMPUTE_DELTA},
    {"increase", false, COMPUTE_INCREASE},
    {"irate", false, COMPUTE_IRATE},
    {"last_over_time", false, COMPUTE_LAST},
    {"max_over_time", false, COMPUTE_MAX},
    {"min_over_time", false, COMPUTE_MIN},
    {"rate", false, COMPUTE_RATE},
    {"sum_over_time", false, COMPUTE_SUM},
};
static const char *const other_aggregations[] = {
    "bottomk",  "count_values", "group",  "limit_ratio", "limitk",
    "quantile", "stddev",       "stdvar", "topk",        NULL};
static const char *const groupings[] = {"by", "without", NULL};

/* "by (a, b)" */
static void parse_grouping(struct parser *p, struct expr *x)
{
    x->without = str_eq_nocase(p->token, STR("without"));
    next(p);
    take(p, "(", "(");
    while (!p->failed && !skip_operator(p, ")")) {
        (void)add_matcher(p, &x->labels, take_label(p, "a label name or )"));
        if (!at_operator(p, ")"))
            take(p, ",", "a comma or )");
    }
}

/* "(expression)" of the type that the function takes, with a grouping before or after it. */
static void parse_call(struct parser *p, struct expr *x, const struct function *f)
{
    bool grouped = f->aggregates && at_word(p, groupings);
    const struct expr *of;
    struct str place;

    if (grouped)
        parse_grouping(p, x);
    take(p, "(", "(");
    place = p->token;
    of = parse_expression(p, 0);
    if (of && (f->aggregates ? of->kind < EXPR_SELECTOR : of->kind != EXPR_RANGE))
        fail(p, place, "%s takes a %s", f->name,
             f->aggregates ? "vector, as in sum(metric) or sum(rate(metric[5m]))"
                           : "range, as in rate(metric[5m])");
    take(p, ")", ")");
    if (f->aggregates && !grouped && at_word(p, groupings))
        parse_grouping(p, x);
    if (p->failed)
        return;
    if (f->aggregates)
        x->left = of;
    else
        *x = *of;
    x->kind = f->aggregates ? EXPR_AGGREGATION : EXPR_SELECTOR;
    x->how = f->how;
}

/* NULL without one of this name. */
static const struct function *function_find(struct str name)
{
    for (const struct function *f = functions; f < functions + ARRAY_SIZE(functions); f++)
        if (f->aggregates ? str_eq_nocase(name, str_of(f->name)) : str_eq(name, str_of(f->name)))
            return f;
    return NULL;
}

/* A function, an aggregation or a selector. */
static void parse_named(struct parser *p, struct expr *x)
{
    struct str name = p->token;
    const struct function *f = function_find(name);
    bool aggregates = f ? f->aggregates : is_word_of(name, other_aggregations);

    next(p);
    if (!at_operator(p, "(") && !(aggregates && at_word(p, groupings)))
        parse_selector(p, x, name);
    else if (f)
        parse_call(p, x, f);
    else
        fail(p, name, "%s %.*s " UNSUPPORTED HINT_USE_PROMETHEUS, aggregates ? "aggregation" : "function",
             STR_ARG(name));
}

/* ---- Operators ---- */

enum { PRECEDENCE_SUM = 1, PRECEDENCE_PRODUCT, PRECEDENCE_POWER };

/* Of the next token, 0 if it is no operator. */
static unsigned precedence_of(const struct parser *p)
{
    char c = p->kind == TOKEN_OPERATOR ? p->token.p[0] : '\0';

    if (is_one_of(c, "+-"))
        return PRECEDENCE_SUM;
    if (is_one_of(c, "*/%"))
        return PRECEDENCE_PRODUCT;
    return c == '^' ? PRECEDENCE_POWER : 0;
}

double query_compute(char op, double a, double b)
{
    switch (op) {
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

static struct expr *new_number(struct parser *p, double number)
{
    struct expr *x = new_part(p, sizeof(*x));

    x->kind = EXPR_NUMBER;
    x->number = number;
    return x;
}

/* Of numbers it is computed. */
static struct expr *make_operation(struct parser *p, struct str place, char op, const struct expr *left,
                                   const struct expr *right)
{
    struct expr *x;

    if (!left || !right)
        return NULL;
    if (left->kind == EXPR_RANGE || right->kind == EXPR_RANGE)
        fail(p, place, "operator %.*s takes no range; put a function around it, as in rate(metric[5m])",
             STR_ARG(place));
    if (left->kind == EXPR_NUMBER && right->kind == EXPR_NUMBER)
        return new_number(p, query_compute(op, left->number, right->number));
    x = new_part(p, sizeof(*x));
    x->kind = EXPR_BINARY;
    x->op = op;
    x->left = left;
    x->right = right;
    return x;
}

static struct expr *parse_number(struct parser *p)
{
    struct str text = p->token;
    double number = str_eq_nocase(text, STR("nan")) ? NAN : HUGE_VAL;
    struct expr *x;

    if (p->kind == TOKEN_NUMBER && num_parse(text, &number) == NUM_SYNTAX)
        fail(p, text, "number %.*s " UNSUPPORTED "; write it as in 1, 0.5 or 1e-3", STR_ARG(text));
    x = new_number(p, number);
    next(p);
    return x;
}

static struct expr *parse_operand(struct parser *p)
{
    static const char *const numbers[] = {"inf", "nan", NULL};
    struct str first = p->token;
    struct expr *x;

    if (skip_operator(p, "+"))
        return parse_expression(p, PRECEDENCE_POWER);
    if (skip_operator(p, "-"))
        return make_operation(p, first, '*', new_number(p, -1), parse_expression(p, PRECEDENCE_POWER));
    if (skip_operator(p, "(")) {
        x = parse_expression(p, 0);
        take(p, ")", ")");
        return x;
    }
    if (p->kind == TOKEN_NUMBER || at_word(p, numbers))
        return parse_number(p);
    x = new_part(p, sizeof(*x));
    if (at_operator(p, "{"))
        parse_selector(p, x, STR(""));
    else if (p->kind == TOKEN_NAME && !at_word(p, keywords))
        parse_named(p, x);
    else
        fail_expected(p,
                      "a selector such as metric{label=\"value\"}, a number, a function or an aggregation");
    return x;
}

/* An operand, and the operators behind it that bind at least as strong. NULL after an error. */
static struct expr *parse_expression(struct parser *p, unsigned precedence)
{
    struct expr *left;
    unsigned found;

    if (++p->depth > QUERY_MAX_DEPTH)
        fail(p, p->token, "more than %d nested expressions", QUERY_MAX_DEPTH);
    left = p->failed ? NULL : parse_operand(p);
    while (!p->failed && (found = precedence_of(p)) && found >= precedence) {
        struct str op = p->token;
        const struct expr *right;

        next(p);
        right = parse_expression(p, found + (found != PRECEDENCE_POWER)); /* a ^ b ^ c is a ^ (b ^ c) */
        left = make_operation(p, op, op.p[0], left, right);
    }
    p->depth--;
    return p->failed ? NULL : left;
}

/* ---- The query ---- */

int query_parse(struct query **ret, struct str text, struct str query, char why[QUERY_WHY_BYTES])
{
    CLEANUP(cleanup_query_free) struct query *q = xcalloc(1, sizeof(*q));
    struct parser p = {
        .text = text, .query = query, .query_at = (size_t)(query.p - text.p), .q = q, .why = why};
    PCRE2_SIZE at;
    int error;

    q->arena.chunk_bytes = 1024;
    if (query.n > QUERY_TEXT_MAX) {
        fail(&p, query, "query of %zu bytes; sourceType OpenTelemetry takes at most %d" HINT_USE_PROMETHEUS,
             query.n, QUERY_TEXT_MAX);
        return -EINVAL;
    }
    p.query.p = arena_text(&q->arena, query);
    p.token.p = p.query.p;
    p.tokens = pcre2_compile((PCRE2_SPTR)token_pattern, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
    p.found = pcre2_match_data_create_from_pattern(p.tokens, NULL);
    next(&p);
    q->root = parse_expression(&p, 0);
    if (p.kind != TOKEN_END)
        fail_expected(&p, "the end of the query");
    pcre2_match_data_free(p.found);
    pcre2_code_free(p.tokens);
    if (!p.failed && q->root->kind == EXPR_RANGE)
        fail(&p, p.query, "a range needs a function around it, as in rate(metric[5m])");
    if (p.failed)
        return -EINVAL;
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
