/* Queries in a part of PromQL over the series of a store, with the results of Prometheus 3 on the same
 * samples. README.md describes the part. */
#ifndef DS_OTLP_QUERY_H
#define DS_OTLP_QUERY_H

#include "exporter/otlp/series.h"

#include <stdatomic.h>

enum {
    QUERY_WHY_BYTES = 640,
    QUERY_TEXT_MAX = 16 << 10,
    QUERY_MAX_DEPTH = 50,
    QUERY_MAX_PARTS = 256,   /* selectors, functions, aggregations and operators, numbers included */
    QUERY_MAX_STEPS = 11000, /* between the first and the last point, as in Prometheus */
};

/* An immutable query. */
struct query;

/* `query` is a slice of `text`, in which the position of a problem is counted. -EINVAL with a reason such as
 * "line 1, column 5: function absent is not supported ...", -ENOMEM. */
MUST_USE int query_parse(struct query **ret, struct str text, struct str query, char why[QUERY_WHY_BYTES]);
struct query *query_free(struct query *q);
DEFINE_CLEANUP(struct query, query_free)

/* How far before its own time a point reads samples, in milliseconds. */
int64_t query_reach(const struct query *q);

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
 *   -ECANCELED *cancelled became true
 *   -ENOMEM */
MUST_USE int query_run(const struct query *q, struct store *store, const struct query_range *range,
                       const atomic_bool *cancelled, struct buf *out, size_t *ret_series,
                       char why[QUERY_WHY_BYTES]);

#endif
