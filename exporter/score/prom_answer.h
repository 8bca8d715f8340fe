/* The response of the Prometheus query API, or of a compatible one: checked in one pass and never decoded
 * into a tree. Its series are a slice of the body, the very bytes that came. Pure; any thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/score/round_error.h"

struct prom_answer {
    struct str series; /* the series' JSON texts joined by commas: a slice of the body, or of `made` */
    struct buf made;   /* an instant vector or a scalar, rewritten as series of one sample */
    size_t n_series;
    size_t n_dropped;  /* native histograms of an instant vector: they have no single value */
    size_t warnings;   /* those that the program adds included: a partial answer, and what was dropped */
    char warning[512]; /* the first */
};

/* Reads the body of a 2xx into *ret, whose `made` the caller frees in any case. On an error `why` is a
 * sentence for people; for ROUND_QUERY the query engine's own words. */
enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES]);
/* "bad_data: invalid parameter ..." from the body of an error; false if it is not of that form. */
bool prom_answer_error(struct str body, char why[ROUND_REASON_BYTES]);
