/* The scoring API's answer, read straight into a batch, in one pass and without a tree. Called by whoever has
 * the builder: the loop, or the worker for a large response. */
#pragma once

#include "exporter/metric/batch_builder.h"
#include "exporter/score/round_error.h"

/* What is wrong with the first result that was dropped. */
enum answer_fault {
    ANSWER_FAULT_NONE,
    ANSWER_FAULT_RESULT, /* it is no object */
    ANSWER_FAULT_SCORE,  /* missing, or no number */
    ANSWER_FAULT_METRIC, /* no object, or a label that is no string */
};

struct answer_stats {
    size_t results;  /* in the response */
    size_t invalid;  /* dropped results, without a valid score or metric */
    size_t cut;      /* label values cut to the limit */
    size_t repaired; /* label values with ill-formed UTF-8 replaced */
    enum answer_fault first_fault;
    char first_invalid[200]; /* the same for a person: "results[3].score: expected a number, got null" */
};

/* Reads `{"results":[{"metric":{...},"score":1.5},...]}` into a batch, which it begins, and which the caller
 * abandons after an error. Unknown members are ignored; of duplicates the last counts, but "results" must be
 * unique. A result without a valid score is dropped and counted; an error if that leaves none. Scores are
 * numbers, strings that spell one, or the words NaN, Infinity and -Infinity as Python writes them. */
enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES]);
