/* Private to answer*.c. */
#ifndef DS_SCORE_ANSWER_INTERNAL_H
#define DS_SCORE_ANSWER_INTERNAL_H

#include "exporter/base/json.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"

struct answer_reader {
    struct jr j;
    struct batch_builder *builder;
    struct answer_stats *stats;
    size_t label_max;
    bool out_of_memory;
    /* The current result. */
    struct batch_labels labels;
    bool has_labels;       /* labels is not all empty */
    bool is_repeated;      /* labels have the same spelling as in the last answer, and were not read */
    const char *no_score;  /* why it has no score; NULL if it has one */
    const char *no_metric; /* why its metric is invalid; NULL if it is valid */
    unsigned bad_labels;   /* by bit: those that are objects or arrays */
    double score;
    /* Scratch space. */
    char *room;        /* DS_LABELS values of label_max bytes, for those that are no slice of the body */
    struct buf escape; /* one value without its escapes */
    uint32_t uncut[DS_LABELS]; /* labels.uncut points here */
};

/* Reads the value of `metric`. */
void answer_read_metric(struct answer_reader *r);

/* Mostly they are empty already, and clearing nine slices takes longer than comparing a spelling. */
static inline void answer_forget_labels(struct answer_reader *r)
{
    if (r->has_labels)
        r->labels = (struct batch_labels){.escapes = 0};
    r->has_labels = false;
}

#endif
