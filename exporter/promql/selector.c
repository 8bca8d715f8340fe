/* Selectors: name{label="value", ...}. */
#include "exporter/base/arena.h"
#include "exporter/base/regex.h"
#include "exporter/promql/lex.h"
#include "exporter/promql/parser.h"
#include "exporter/promql/plan.h"
#include "exporter/tsdb/tsdb.h"

#include <errno.h>

static const struct str NAME = STR("__name__");

static int add_matcher(struct parser *p, struct str place, struct tsdb_matcher m)
{
    struct promql_plan *plan = p->plan;

    if (plan->n_matchers == PLAN_MAX_MATCHERS)
        return parser_fail(p, place, "more than %d matchers", PLAN_MAX_MATCHERS);
    plan->matchers[plan->n_matchers++] = m;
    return 0;
}

static int compile(struct parser *p, struct str place, struct tsdb_matcher *m)
{
    const char *refused = re2_refuses(m->value);
    struct regex *x = NULL;
    char why[REGEX_WHY_BYTES];
    int r;

    if (refused)
        return parser_fail(p, place, "invalid regular expression: %s are not supported", refused);
    r = regex_new(&x, m->value, why);
    if (r == -EINVAL)
        return parser_fail(p, place, "invalid regular expression: %s", why);
    m->regex = x;
    return r;
}

static bool take_operator(struct parser *p, enum tsdb_op *ret)
{
    static const struct {
        const char *text;
        enum tsdb_op op;
    } ops[] = {{"=", TSDB_EQ}, {"!=", TSDB_NE}, {"=~", TSDB_RE}, {"!~", TSDB_NRE}};

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (token_is(&p->token, ops[i].text)) {
            *ret = ops[i].op;
            parser_next(p);
            return true;
        }
    return false;
}

/* The name of the label that a matcher begins with. */
static int take_label(struct parser *p, struct str *ret)
{
    if (p->token.kind == TOKEN_STRING)
        return parser_string(p, ret);
    if (p->token.kind != TOKEN_NAME || memchr(p->token.text.p, ':', p->token.text.n))
        return parser_expected(p, "a label name or }");
    *ret = p->token.text;
    parser_next(p);
    return 0;
}

static int matcher_keep(struct parser *p, struct str *name)
{
    char *copy = arena_alloc(&p->plan->arena, name->n);

    if (!copy)
        return -ENOMEM;
    name->p = memcpy(copy, name->p, name->n);
    return 0;
}

static int parse_matcher(struct parser *p, bool has_name)
{
    struct token first = p->token;
    struct tsdb_matcher m = {.op = TSDB_EQ};
    struct str place;
    int r = take_label(p, &m.name);

    if (r < 0)
        return r;
    if (!take_operator(p, &m.op)) {
        if (first.kind != TOKEN_STRING)
            return parser_expected(p, "one of = != =~ !~");
        m = (struct tsdb_matcher){.op = TSDB_EQ, .name = NAME, .value = m.name}; /* {"name"} */
    } else {
        place = p->token.text;
        if (p->token.kind != TOKEN_STRING)
            return parser_expected(p, "a string");
        r = parser_string(p, &m.value);
        if (r == 0 && first.kind == TOKEN_NAME)
            r = matcher_keep(p, &m.name);
        if (r == 0 && (m.op == TSDB_RE || m.op == TSDB_NRE))
            r = compile(p, place, &m);
    }
    if (r < 0)
        return r;
    if (has_name && str_eq(m.name, NAME)) {
        (void)regex_free((struct regex *)m.regex);
        return parser_fail(p, first.text, "the metric's name is given twice");
    }
    r = add_matcher(p, first.text, m);
    if (r < 0)
        (void)regex_free((struct regex *)m.regex);
    return r;
}

static int parse_matchers(struct parser *p, bool has_name)
{
    int r = parser_take(p, "{", "{");

    while (r == 0 && !token_is(&p->token, "}")) {
        r = parse_matcher(p, has_name);
        if (r == 0 && !token_is(&p->token, "}"))
            r = parser_take(p, ",", "a comma or }");
    }
    return r ?: parser_take(p, "}", "}");
}

/* 1 if a series without the label would match. */
static int matches_empty(const struct tsdb_matcher *m)
{
    struct regex_matcher *matcher = NULL;
    bool negated = m->op == TSDB_NE || m->op == TSDB_NRE;
    int r;

    if (!m->regex)
        return (m->value.n == 0) != negated;
    r = regex_matcher_new(&matcher) ?: regex_match(matcher, m->regex, STR(""));
    (void)regex_matcher_free(matcher);
    return r < 0 ? r : (r == 1) != negated;
}

/* A selector that would select all series by mistake is refused, as in Prometheus. */
static int check_not_empty(struct parser *p, struct str place)
{
    for (size_t i = 0; i < p->plan->n_matchers; i++) {
        int r = matches_empty(&p->plan->matchers[i]);

        if (r <= 0 && r != -ELOOP)
            return r;
    }
    return parser_fail(p, place,
                       "a selector needs a matcher that does not match the empty string, such as "
                       "{job=\"a\"}");
}

int parse_selector(struct parser *p, struct str name)
{
    struct str place = p->token.text;
    int r = 0;

    if (name.n) {
        struct tsdb_matcher m = {.op = TSDB_EQ, .name = NAME, .value = name};

        r = matcher_keep(p, &m.value) ?: add_matcher(p, name, m);
    }
    if (r == 0 && token_is(&p->token, "{"))
        r = parse_matchers(p, name.n > 0);
    return r == 0 && name.n == 0 ? check_not_empty(p, place) : r;
}
