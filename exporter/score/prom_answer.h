/* The response of the Prometheus query API, or of a compatible one: validated in one pass, never decoded into
 * a tree. */
#ifndef DS_SCORE_PROM_ANSWER_H
#define DS_SCORE_PROM_ANSWER_H

#include "exporter/base/buf.h"
#include "exporter/score/error.h"

struct prom_answer {
    struct str series; /* the series' JSON texts joined by commas: a slice of the body, or of `made` */
    struct buf made;   /* an instant vector or a scalar, rewritten as series of one sample */
    size_t n_series;
    size_t warnings;
    char warning[512]; /* the first */
};

/* Reads the body of a 2xx into *ret, to be freed with prom_answer_done(). On an error `why` is a sentence for
 * people; for ROUND_QUERY the query engine's own words. */
enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[ROUND_REASON_BYTES]);
void prom_answer_done(struct prom_answer *a);
/* "bad_data: invalid parameter ..." from the body of an error; false if it is not of that form. */
bool prom_answer_error(struct str body, char why[ROUND_REASON_BYTES]);

#endif
