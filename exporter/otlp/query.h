/* Queries in a part of PromQL, which README.md describes, over the series of a store, with the results of
 * Prometheus 3 on the same samples. query_parse.c reads a query, query_run.c computes it. */
#pragma once

#include "exporter/base/arena.h"
#include "exporter/otlp/series.h"

#include <stdatomic.h>

enum {
    QUERY_WHY_BYTES = 640,
    QUERY_TEXT_MAX = 16 << 10,
    QUERY_MAX_PARTS = 1024,
};

/* A range only occurs while a query is read: a function turns it into a selector. From EXPR_SELECTOR on an
 * expression gives a sample of each series at each point. */
enum expr_kind { EXPR_NUMBER, EXPR_RANGE, EXPR_SELECTOR, EXPR_AGGREGATION, EXPR_BINARY };

/* What becomes of the values of an aggregation's series, or of the samples of a range. */
enum computation {
    COMPUTE_COUNT,
    COMPUTE_MAX,
    COMPUTE_MEAN,
    COMPUTE_MIN,
    COMPUTE_SUM,
    /* Only of a range */
    COMPUTE_DELTA,
    COMPUTE_INCREASE,
    COMPUTE_IRATE,
    COMPUTE_RATE,
    /* These keep the metric's name */
    COMPUTE_LAST,
    COMPUTE_LATEST /* of a selector without a function: the last sample, unless it is a stale marker */
};

struct expr {
    enum expr_kind kind;
    enum computation how;            /* around a selector; or of an aggregation, of `left` */
    struct series_matcher *matchers; /* of a selector */
    int64_t range_ms;
    double number;
    bool without;                  /* of an aggregation */
    struct series_matcher *labels; /* their names */
    /* Of an operator */
    char op;
    const struct expr *left, *right;
};

/* An immutable query. */
struct query {
    struct arena arena;
    const struct expr *root;
    int64_t reach_ms; /* how far before its own time a point reads samples */
    struct regex *regexes[QUERY_MAX_PARTS];
    size_t n_regexes;
};

/* `query` is a slice of `text`, in which the position of a problem is counted. -EINVAL with a reason such as
 * "line 1, column 5: function absent is not supported ...". */
MUST_USE int query_parse(struct query **ret, struct str text, struct str query, char why[QUERY_WHY_BYTES]);
struct query *query_free(struct query *q);
DEFINE_CLEANUP(struct query, query_free)

/* a + b, for + - * / % ^ */
double query_compute(char op, double a, double b);

/* The points of a range query: start_ms, start_ms + step_ms, ... up to end_ms. */
struct query_range {
    int64_t start_ms, end_ms, step_ms; /* step_ms > 0 */
};

/* Appends the series of the result to *out as Prometheus writes them into data.result,
 * `{"metric":{...},"values":[[t,"v"],...]}`, joined by commas and sorted by labels. Sets *ret_series to their
 * number. What is held in memory meanwhile is limited to out->max bytes, too. On failure `why` is a phrase,
 * and *out holds an incomplete result:
 *   -EFBIG     more than out->max bytes
 *   -ENODATA   samples of the range were evicted
 *   -ELOOP     a regular expression exceeded its limits
 *   -EINVAL    series cannot be told apart by their labels; too many points
 *   -ECANCELED *cancelled became true */
MUST_USE int query_run(const struct query *q, struct store *store, const struct query_range *range,
                       const atomic_bool *cancelled, struct buf *out, size_t *ret_series,
                       char why[QUERY_WHY_BYTES]);
