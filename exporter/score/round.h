/* One scoring round: sources → scoring API → batch. It ends by its deadline. Loop thread. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/score/answer.h"
#include "exporter/score/answer_job.h"
#include "exporter/score/round_error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

struct round;

struct round_result {
    enum round_error error; /* ROUND_OK: batch is set */
    enum round_stage stage; /* where it failed */
    size_t source;          /* index of the source that failed, in STAGE_SOURCE */
    enum http_cause cause;  /* of the call that failed; CAUSE_NONE: it was answered, or none was made */
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
    uint64_t received[ROUND_STAGES], sent[ROUND_STAGES]; /* bytes */
};

/* Runs on the loop, once, never from inside round_start(). It may free the round. */
typedef void (*round_done_fn)(void *arg, struct round_result *result);

struct round_request {
    const struct source_env *env;
    const struct summary *summary;
    struct answer_job *answer_job; /* of this scorer; not busy */
    size_t label_max;
    int64_t timeout_ms;
};

/* Everything that rq points to must outlive the round. */
struct round *round_start(const struct round_request *rq, round_done_fn done, void *arg);
/* Cancels the round, without calling done(), and frees it. The answer's job may still be busy. Takes NULL,
 * returns NULL. */
struct round *round_free(struct round *r);
