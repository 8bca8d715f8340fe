/* Queries in a part of PromQL over the series of a tsdb, with the results of Prometheus 3 on the same
 * samples. README.md describes the part. A query is a selector, at most one range function around it, and
 * aggregations around these; hence a plan is a chain, and each series passes through it once. */
#ifndef DS_PROMQL_PROMQL_H
#define DS_PROMQL_PROMQL_H

#include "exporter/base/buf.h"
#include "exporter/tsdb/tsdb.h"

enum {
    PROMQL_WHY_BYTES = 640,
    PROMQL_MAX_STEPS = 11000, /* between the first and the last point, as in Prometheus */
};

/* An immutable query. */
struct promql_plan;

/* `query` is a slice of `text`, in which the position of a problem is counted. -EINVAL with a reason such as
 * "line 1, column 5: function absent is not supported ...", -ENOMEM. */
MUST_USE int promql_parse(struct promql_plan **ret, struct str text, struct str query,
                          char why[PROMQL_WHY_BYTES]);
struct promql_plan *promql_free(struct promql_plan *plan);
DEFINE_CLEANUP(struct promql_plan, promql_free)

/* How far before its own time a point reads samples, in milliseconds. */
int64_t promql_reach(const struct promql_plan *plan);

/* The points of a range query: start_ms, start_ms + step_ms, ... up to end_ms. */
struct promql_range {
    int64_t start_ms, end_ms, step_ms; /* step_ms > 0 */
};

/* Appends the series of the result to *out as Prometheus writes them into data.result,
 * `{"metric":{...},"values":[[t,"v"],...]}`, joined by commas and sorted by labels. Sets *ret_series to their
 * number. The copy of the samples, and the groups of each aggregation, are limited to out->max bytes, too. On
 * failure `why` is a phrase, and *out holds an incomplete result:
 *   -EFBIG   more than out->max bytes
 *   -ENODATA samples of the range were evicted from the tsdb
 *   -ELOOP   a regular expression exceeded its limits
 *   -EINVAL  two series have the same labels without their name; too many points
 *   -ENOMEM */
MUST_USE int promql_range(const struct promql_plan *plan, struct tsdb *tsdb, const struct promql_range *range,
                          struct buf *out, size_t *ret_series, char why[PROMQL_WHY_BYTES]);

#endif
