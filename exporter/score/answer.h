/* The scoring API's response, read straight into a batch. */
#ifndef DS_SCORE_ANSWER_H
#define DS_SCORE_ANSWER_H

#include "exporter/metric/series.h"
#include "exporter/score/error.h"

struct answer_stats {
    size_t results;          /* in the response */
    size_t invalid;          /* dropped results, without a valid score or metric */
    size_t cut;              /* label values cut to the limit */
    size_t mended;           /* label values with ill-formed UTF-8 replaced */
    char first_invalid[200]; /* "results[3].score: expected a number, got null" */
};

/* Reads `{"results":[{"metric":{...},"score":1.5},...]}` into a batch that has begun. Ignores unknown
 * members; of duplicate members the last counts, except that "results" must be unique. A result without a
 * valid score is dropped and counted; an error if that leaves none. Scores are numbers, strings that spell
 * one, or the words NaN, Infinity and -Infinity as Python writes them. On an error the caller abandons the
 * batch. */
enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES]);

#endif
