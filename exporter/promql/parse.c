/* From the text of a query to its plan: one chain, from the outermost aggregation down to the selector.
 * Everything else of PromQL is refused with what is possible instead. */
#include "exporter/base/arena.h"
#include "exporter/base/regex.h"
#include "exporter/promql/function.h"
#include "exporter/promql/lex.h"
#include "exporter/promql/literal.h"
#include "exporter/promql/parser.h"
#include "exporter/promql/plan.h"
#include "exporter/promql/promql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define UNSUPPORTED "is not supported by sourceType OpenTelemetry"

enum { MAX_DEPTH = 50, ARENA_BYTES = 512 };

/* What an expression gives at a point: one sample of each series, or those of a range. */
enum value_kind { VALUE_VECTOR, VALUE_RANGE };

static const struct {
    const char *word;
    enum aggregation_op op;
} aggregations[] = {
    {"avg", AGGREGATION_AVG}, {"count", AGGREGATION_COUNT}, {"max", AGGREGATION_MAX},
    {"min", AGGREGATION_MIN}, {"sum", AGGREGATION_SUM},
};

/* Words of PromQL that cannot name a metric. */
static const char *const keywords[] = {"on",    "ignoring", "group_left", "group_right", "bool",
                                       "atan2", "inf",      "nan",        NULL};
static const char *const other_aggregations[] = {
    "bottomk",  "count_values", "group",  "limit_ratio", "limitk",
    "quantile", "stddev",       "stdvar", "topk",        NULL};
static const char *const word_operators[] = {"and", "or", "unless", "atan2", NULL};

static bool word_in(struct str word, const char *const *list)
{
    while (*list && !str_eq_nocase(word, str_of(*list)))
        list++;
    return *list != NULL;
}

static int parse_expression(struct parser *p, enum value_kind *ret);

static int label_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static int take_group_label(struct parser *p, struct aggregation *a)
{
    struct str label = p->token.text;
    char *copy;

    if (a->n_labels == PLAN_MAX_LABELS)
        return parser_fail(p, label, "more than %d labels", PLAN_MAX_LABELS);
    if (p->token.kind == TOKEN_STRING)
        return parser_string(p, &a->labels[a->n_labels++]);
    if (p->token.kind != TOKEN_NAME)
        return parser_expected(p, "a label name or )");
    copy = arena_alloc(&p->plan->arena, label.n);
    if (!copy)
        return -ENOMEM;
    a->labels[a->n_labels++] = (struct str){memcpy(copy, label.p, label.n), label.n};
    parser_next(p);
    return 0;
}

static void sort_labels(struct aggregation *a)
{
    size_t n = 0;

    qsort(a->labels, a->n_labels, sizeof(*a->labels), label_order);
    for (size_t i = 0; i < a->n_labels; i++)
        if (n == 0 || !str_eq(a->labels[n - 1], a->labels[i]))
            a->labels[n++] = a->labels[i];
    a->n_labels = n;
}

static bool at_grouping(const struct parser *p)
{
    static const char *const words[] = {"by", "without", NULL};

    return p->token.kind == TOKEN_NAME && word_in(p->token.text, words);
}

/* "by (a, b)" */
static int parse_grouping(struct parser *p, struct aggregation *a)
{
    int r;

    a->without = str_eq_nocase(p->token.text, STR("without"));
    parser_next(p);
    r = parser_take(p, "(", "(");
    while (r == 0 && !token_is(&p->token, ")")) {
        r = take_group_label(p, a);
        if (r == 0 && !token_is(&p->token, ")"))
            r = parser_take(p, ",", "a comma or )");
    }
    sort_labels(a);
    return r ?: parser_take(p, ")", ")");
}

/* "(expression)" of an aggregation. */
static int parse_aggregated(struct parser *p)
{
    enum value_kind kind;
    struct str place;
    int r = parser_take(p, "(", "(");

    place = p->token.text;
    r = r ?: parse_expression(p, &kind);
    if (r == 0 && kind == VALUE_RANGE)
        return parser_fail(p, place,
                           "an aggregation takes no range; put a function around it, as in rate(metric[5m])");
    return r ?: parser_take(p, ")", ")");
}

/* Its name is taken. */
static int parse_aggregation(struct parser *p, enum aggregation_op op, struct str place)
{
    struct promql_plan *plan = p->plan;
    struct aggregation *a = arena_alloc(&plan->arena, sizeof(*a));
    bool grouped = at_grouping(p);
    int r;

    if (!a)
        return -ENOMEM;
    *a = (struct aggregation){.op = op};
    r = grouped ? parse_grouping(p, a) : 0;
    r = r ?: parse_aggregated(p);
    if (r == 0 && !grouped && at_grouping(p))
        r = parse_grouping(p, a);
    if (r == 0 && plan->n_aggregations == PLAN_MAX_AGGREGATIONS)
        return parser_fail(p, place, "more than %d aggregations", PLAN_MAX_AGGREGATIONS);
    if (r == 0)
        plan->aggregations[plan->n_aggregations++] = a;
    return r;
}

/* "a, b, c" */
static void list_functions(char *to, size_t size)
{
    size_t n = 0;

    for (const struct range_function *f = range_functions; f->name; f++)
        n += (size_t)snprintf(to + n, size - n, "%s%s", n ? ", " : "", f->name);
}

/* Its name is taken; the next token is the parenthesis. */
static int parse_call(struct parser *p, struct str name)
{
    const struct range_function *f = range_function_of(name);
    enum value_kind kind;
    struct str place;
    char list[256];
    int r;

    if (word_in(name, other_aggregations))
        return parser_fail(
            p, name, "aggregation %.*s " UNSUPPORTED "; supported aggregations: avg, count, max, min, sum",
            STR_ARG(name));
    if (!f) {
        list_functions(list, sizeof(list));
        return parser_fail(p, name, "function %.*s " UNSUPPORTED "; supported functions: %s", STR_ARG(name),
                           list);
    }
    parser_next(p);
    place = p->token.text;
    r = parse_expression(p, &kind);
    if (r == 0 && kind != VALUE_RANGE)
        return parser_fail(p, place, "function %s takes a range, as in %s(metric[5m])", f->name, f->name);
    p->plan->function = f;
    return r ?: parser_take(p, ")", ")");
}

/* "[5m]" behind a selector. */
static int parse_range(struct parser *p)
{
    static const char what[] = "a duration such as 5m, 90s or 1h30m";

    parser_next(p);
    if (p->token.kind != TOKEN_NUMBER)
        return parser_expected(p, what);
    if (!literal_duration(p->token.text, &p->plan->range_ms))
        return parser_expected(p, what);
    parser_next(p);
    if (p->token.text.n && p->token.text.p[0] == ':')
        return parser_fail(p, p->token.text,
                           "a subquery " UNSUPPORTED "; use a range alone, as in metric[5m]");
    return parser_take(p, "]", "]");
}

static int parse_named(struct parser *p, struct str name, enum value_kind *ret)
{
    bool called = token_is(&p->token, "(");
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(aggregations); i++)
        if ((called || at_grouping(p)) && str_eq_nocase(name, str_of(aggregations[i].word)))
            return parse_aggregation(p, aggregations[i].op, name);
    if (called || (at_grouping(p) && word_in(name, other_aggregations)))
        return parse_call(p, name);
    r = parse_selector(p, name);
    if (r == 0 && token_is(&p->token, "[")) {
        *ret = VALUE_RANGE;
        r = parse_range(p);
    }
    return r;
}

static int parse_parentheses(struct parser *p, enum value_kind *ret)
{
    int r;

    parser_next(p);
    r = parse_expression(p, ret);
    return r ?: parser_take(p, ")", ")");
}

/* What follows an expression and is not supported: an operator or a modifier. */
static int refuse_suffix(struct parser *p)
{
    static const char operators[] = "+-*/%^<>=!";
    struct str t = p->token.text;
    bool is_word = p->token.kind == TOKEN_NAME;

    if ((is_word && word_in(t, word_operators)) ||
        (p->token.kind == TOKEN_OPERATOR && strchr(operators, t.p[0])))
        return parser_fail(p, t,
                           "operator %.*s " UNSUPPORTED
                           "; query each operand, separated by \";\", and let the scoring API compute",
                           STR_ARG(t));
    if ((is_word && str_eq_nocase(t, STR("offset"))) || token_is(&p->token, "@"))
        return parser_fail(p, t, "modifier %.*s " UNSUPPORTED "; queries end at the present time",
                           STR_ARG(t));
    if (token_is(&p->token, "["))
        return parser_fail(
            p, t,
            "a range is possible behind a selector only, as in rate(metric[5m]); a subquery " UNSUPPORTED);
    return 0;
}

static int parse_operand(struct parser *p, enum value_kind *ret)
{
    struct token first = p->token;

    if (token_is(&first, "("))
        return parse_parentheses(p, ret);
    if (token_is(&first, "{"))
        return parse_named(p, STR(""), ret);
    if (token_is(&first, "-") || token_is(&first, "+"))
        return parser_fail(p, first.text, "operator %.*s " UNSUPPORTED "; let the scoring API compute",
                           STR_ARG(first.text));
    if (first.kind != TOKEN_NAME || word_in(first.text, keywords))
        return parser_expected(p, "a selector such as metric{label=\"value\"}, a function or an aggregation");
    parser_next(p);
    return parse_named(p, first.text, ret);
}

static int parse_expression(struct parser *p, enum value_kind *ret)
{
    int r;

    *ret = VALUE_VECTOR;
    if (p->depth == MAX_DEPTH)
        return parser_fail(p, p->token.text, "more than %d nested parentheses", MAX_DEPTH);
    p->depth++;
    r = parse_operand(p, ret);
    p->depth--;
    return r ?: refuse_suffix(p);
}

static int parse_query(struct parser *p)
{
    enum value_kind kind;
    int r;

    parser_next(p);
    r = parse_expression(p, &kind);
    if (r < 0)
        return r;
    if (p->token.kind != TOKEN_END)
        return parser_expected(p, "the end of the query");
    if (kind == VALUE_RANGE)
        return parser_fail(p, p->lexer.query, "a range needs a function around it, as in rate(metric[5m])");
    return 0;
}

int promql_parse(struct promql_plan **ret, struct str text, struct str query, char why[PROMQL_WHY_BYTES])
{
    CLEANUP(cleanup_promql_free) struct promql_plan *plan = calloc(1, sizeof(*plan));
    struct parser p = {.text = text, .lexer = {.query = query}, .plan = plan, .why = why};
    int r;

    if (!plan)
        return -ENOMEM;
    plan->arena.chunk_bytes = ARENA_BYTES;
    r = parse_query(&p);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(plan);
    return 0;
}

struct promql_plan *promql_free(struct promql_plan *plan)
{
    if (!plan)
        return NULL;
    for (size_t i = 0; i < plan->n_matchers; i++)
        (void)regex_free((struct regex *)plan->matchers[i].regex);
    arena_done(&plan->arena);
    free(plan);
    return NULL;
}

int64_t promql_reach(const struct promql_plan *plan)
{
    return plan->function ? plan->range_ms : PLAN_LOOKBACK_MS;
}
