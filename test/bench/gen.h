/* Bodies like those that a cluster's Prometheus and a scoring API send: what the benchmarks are fed with.
 * Always the same for the same arguments. */
#pragma once

#include "exporter/base/buf.h"

#include <stdbool.h>

/* Ends the program when something that cannot fail did. */
void must(bool good);
/* Appends the answer to query_range: `series` series of `points` samples each, times with milliseconds and
 * values of 16 or 17 digits, as a rate() gives them. About 2.4 KB for a series of 60. */
void gen_query_answer(struct buf *into, int series, int points);
/* Appends a scoring answer of `results` results, no two with the same labels: the series of peers/text.
 * `round` changes the scores; where `churn` is not 0, one result of so many is of another series than with
 * churn 0. */
void gen_scoring_answer(struct buf *into, int results, int round, int churn);
/* Likewise for the round of this number, in each of which `fresh` series, of other places in the answer than
 * in the round before, give way to new ones. */
void gen_churned_answer(struct buf *into, int results, int round, int fresh);
