/* The scoring API's answer, read straight into a batch. */
#ifndef DS_SCORE_ANSWER_H
#define DS_SCORE_ANSWER_H

#include "exporter/metric/series.h"
#include "exporter/score/error.h"

struct answer_stats {
    size_t results;          /* in the answer */
    size_t invalid;          /* of which left out: no score, or not a number */
    size_t cut;              /* label values cut to the limit */
    size_t mended;           /* label values in which ill-formed UTF-8 was replaced */
    char first_invalid[200]; /* "results[3].score: expected a number, got null" */
};

/* Reads `{"results":[{"metric":{...},"score":1.5},...]}` into a batch that was begun. Unknown members are passed over; of members named twice the last counts ("results" may stand once).
 * A result without a usable score is left out and counted; the answer is refused when that is all of them.
 * Scores may be numbers, strings that spell one, and the words NaN, Infinity, -Infinity as Python writes them.
 * ROUND_OK, or an error with a sentence in `why`; the batch is then the caller's to abandon. */
enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[1024]);

#endif
