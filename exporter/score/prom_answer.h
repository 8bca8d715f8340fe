/* The answer of Prometheus' query API (and of those that speak like it): found in one validating pass, never
 * decoded into a tree. */
#ifndef DS_SCORE_PROM_ANSWER_H
#define DS_SCORE_PROM_ANSWER_H

#include "exporter/score/error.h"

struct prom_answer {
    struct str series; /* the series' JSON texts joined by commas: a slice of the body, or of `made` */
    struct buf made;   /* where an instant vector or a scalar was rewritten as series of one sample */
    size_t n_series;
    size_t warnings;
    char warning[512]; /* the first */
};

/* Reads the body of a 2xx. ROUND_OK with *ret filled in (free with prom_answer_done()), or why not, with a sentence for
 * people in `why`: ROUND_QUERY holds the engine's own words. */
enum round_error prom_answer_parse(struct str body, struct prom_answer *ret, char why[1024]);
void prom_answer_done(struct prom_answer *a);
/* "bad_data: invalid parameter ..." from the body of an error, false when it is not of that form. */
bool prom_answer_error(struct str body, char why[1024]);

#endif
