/* What a query is parsed to. Private to the room. */
#ifndef DS_PROMQL_PLAN_H
#define DS_PROMQL_PLAN_H

#include "exporter/base/arena.h"
#include "exporter/promql/function.h"
#include "exporter/tsdb/tsdb.h"

enum {
    PLAN_MAX_MATCHERS = 32,
    PLAN_MAX_AGGREGATIONS = 16,
    PLAN_MAX_LABELS = 64, /* of by or without */
    PLAN_LOOKBACK_MS = 5 * 60 * 1000,
};

enum aggregation_op { AGGREGATION_AVG, AGGREGATION_COUNT, AGGREGATION_MAX, AGGREGATION_MIN, AGGREGATION_SUM };

struct aggregation {
    enum aggregation_op op;
    bool without;
    size_t n_labels;
    struct str labels[PLAN_MAX_LABELS]; /* sorted, unique */
};

struct promql_plan {
    struct arena arena; /* of its strings */
    struct tsdb_matcher matchers[PLAN_MAX_MATCHERS];
    size_t n_matchers;
    const struct range_function *function;                   /* NULL: the latest samples */
    int64_t range_ms;                                        /* of the function */
    struct aggregation *aggregations[PLAN_MAX_AGGREGATIONS]; /* the innermost first */
    size_t n_aggregations;
};

#endif
