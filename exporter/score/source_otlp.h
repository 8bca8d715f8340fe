/* Queries of the source OpenTelemetry, as configurations hold them. */
#ifndef DS_SCORE_SOURCE_OTLP_H
#define DS_SCORE_SOURCE_OTLP_H

#include "exporter/promql/promql.h"

struct summaries;

/* How far before its own time a point of these queries, joined by `;`, reads samples. -EINVAL if one of them
 * is not supported, with its place in `why`; -ENOMEM. */
MUST_USE int source_otlp_reach(const char *queries, int64_t *ret_ms, char why[PROMQL_WHY_BYTES]);
/* How long samples must be kept for the rounds of these scorers, in milliseconds; 0 if none reads any. */
int64_t source_otlp_age(const struct summaries *s);

#endif
