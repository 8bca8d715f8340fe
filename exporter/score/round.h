/* One scoring round: source → scoring API → batch. It owns all that it needs until it is done, and ends by its deadline. */
#ifndef DS_SCORE_ROUND_H
#define DS_SCORE_ROUND_H

#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/source.h"

enum round_stage { STAGE_SOURCE, STAGE_SCORING };

struct round_result {
    enum round_error error; /* ROUND_OK: batch is set */
    enum round_stage stage; /* where it failed */
    char reason[1024];      /* for a person */
    int64_t retry_after_ms; /* what the server asked for, -1 for nothing */
    struct batch *batch;    /* the callback may take it with TAKE_PTR() */
    struct answer_stats answer;
    size_t duplicates;
    bool fetched; /* the source answered: the members below are set */
    size_t source_series, source_warnings;
    char source_warning[512];
    bool performed; /* the scoring API was asked */
    double fetch_s, perform_s;
    uint64_t received[2], sent[2]; /* bytes, by stage */
};

struct round;

/* Runs on the loop, once, never from inside round_start(). The round is over: free it at leisure, from here too. */
typedef void (*round_done_fn)(void *arg, struct round_result *result);

struct round_request {
    const struct source_env *env;
    const struct summary *summary;
    struct batch_builder *builder;
    size_t label_max;
    int64_t timeout_ms;
};

/* All that the request names must outlive the round. -ENOMEM. */
MUST_USE int round_start(struct round **ret, const struct round_request *rq, round_done_fn done, void *arg);
/* Ends a round that is under way without a word, and frees it. Takes NULL, returns NULL. */
struct round *round_free(struct round *r);

/* "source", "scoring". */
const char *round_stage_word(enum round_stage s);

#endif
