/* One scoring round: sources → scoring API → batch. It ends by its deadline. */
#ifndef DS_SCORE_ROUND_H
#define DS_SCORE_ROUND_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

/* ---- The scoring API's response, read straight into a batch ---- */

struct answer_stats {
    size_t results;          /* in the response */
    size_t invalid;          /* dropped results, without a valid score or metric */
    size_t cut;              /* label values cut to the limit */
    size_t mended;           /* label values with ill-formed UTF-8 replaced */
    char first_invalid[200]; /* "results[3].score: expected a number, got null" */
};

/* Reads `{"results":[{"metric":{...},"score":1.5},...]}` into a batch, which it begins. Ignores unknown
 * members; of duplicate members the last counts, except that "results" must be unique. A result without a
 * valid score is dropped and counted; an error if that leaves none. Scores are numbers, strings that spell
 * one, or the words NaN, Infinity and -Infinity as Python writes them. On an error the caller abandons the
 * batch. */
enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES]);

/* ---- Rounds ---- */

enum round_stage { STAGE_SOURCE, STAGE_SCORING };

struct round_result {
    enum round_error error; /* ROUND_OK: batch is set */
    enum round_stage stage; /* where it failed */
    size_t source;          /* index of the source that failed, in STAGE_SOURCE */
    char reason[ROUND_REASON_BYTES];
    char trace[HTTP_TRACE_BYTES]; /* the id that all requests of the round carried */
    int64_t retry_after_ms;       /* from the server; -1: none */
    struct batch *batch;          /* the callback may TAKE_PTR() it */
    mono_ms answered;             /* when its answer was there */
    struct answer_stats answer;
    size_t duplicates;
    bool fetched; /* all sources succeeded: source_* are set */
    size_t source_series, source_warnings;
    char source_warning[512];
    bool performed; /* a request was sent to the scoring API */
    double fetch_s, perform_s;
    uint64_t received[2], sent[2]; /* bytes, by stage */
};

struct round;

/* Runs on the loop, once, never from inside round_start(). It may free the round. */
typedef void (*round_done_fn)(void *arg, struct round_result *result);

struct round_request {
    const struct source_env *env;
    const struct summary *summary;
    /* NULL while the worker has it; it is freed if the round is cancelled then. */
    struct batch_builder **builder;
    size_t label_max;
    int64_t timeout_ms;
};

/* Everything that rq points to must outlive the round. */
struct round *round_start(const struct round_request *rq, round_done_fn done, void *arg);
/* Cancels the round, without calling done(), and frees it. Takes NULL, returns NULL. */
struct round *round_free(struct round *r);

/* "source", "scoring". */
const char *round_stage_word(enum round_stage s);

#endif
