/* What query_parse.c makes of a query and query_run.c computes. Private to them. */
#ifndef DS_OTLP_QUERY_TREE_H
#define DS_OTLP_QUERY_TREE_H

#include "exporter/base/arena.h"
#include "exporter/base/regex.h"
#include "exporter/otlp/series.h"

enum { QUERY_MAX_MATCHERS = 32, QUERY_MAX_LABELS = 64, QUERY_MAX_REGEXES = 64, QUERY_LOOKBACK_MS = 300000 };

enum expr_kind { EXPR_NUMBER, EXPR_SELECTOR, EXPR_FUNCTION, EXPR_AGGREGATION, EXPR_BINARY, EXPR_NEGATION };

/* What an expression gives at a point: a number, a sample of each series, or the samples of a range. */
enum expr_type { TYPE_SCALAR, TYPE_VECTOR, TYPE_RANGE };

enum aggregation { AGGREGATION_AVG, AGGREGATION_COUNT, AGGREGATION_MAX, AGGREGATION_MIN, AGGREGATION_SUM };

/* The samples in a window, at least one, which ends at `at`. */
struct window {
    const struct sample *s;
    size_t n;
    int64_t at, range_ms;
};

struct range_function {
    const char *name;
    double (*value)(const struct window *w); /* value_absent() if there are too few samples */
    bool keeps_name;                         /* of the metric */
};

/* Sorted by name; the last one's name is NULL. */
extern const struct range_function range_functions[];

struct expr {
    enum expr_kind kind;
    enum expr_type type;
    double number;
    /* Of a selector, and of the function around it */
    struct series_matcher *matchers;
    size_t n_matchers;
    int64_t range_ms;
    const struct range_function *function;
    /* Of an aggregation: of `left` */
    enum aggregation aggregation;
    bool without;
    struct str *labels; /* sorted */
    size_t n_labels;
    /* Of an operator; a negation has `left` only */
    char operator;
    struct expr *left, *right;
};

struct query {
    struct arena arena;
    const struct expr *root;
    struct regex *regexes[QUERY_MAX_REGEXES];
    size_t n_regexes;
    int64_t reach_ms;
};

/* a + b, for + - * / % ^ */
double query_compute(char operator, double a, double b);

#endif
