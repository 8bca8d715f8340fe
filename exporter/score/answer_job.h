/* The job that reads one scorer's answers, round after round: on the worker if an answer is large. It has the
 * builder, which knows the last answer's series. From answer_job_start() until it ends, the answer and all
 * that comes of it belong to whoever runs it, and the loop only asks answer_job_is_busy(). Loop thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"

struct answer_job;

/* The answer, a response of the scoring API. */
struct answer_job_input {
    struct buf body;
    char content_type[128];
    size_t label_max;
    unix_ms answered; /* the timestamp of its scores */
};

/* What came of it. */
struct answer_job_output {
    enum round_error error; /* ROUND_OK: the batch is there */
    char reason[ROUND_REASON_BYTES];
    struct batch *batch; /* the callback may TAKE_PTR() it */
    struct answer_stats stats;
    size_t duplicates;
};

/* On the loop. It may free the job. */
typedef void (*answer_job_done_fn)(void *arg, struct answer_job_output *out);

/* The names are copied. */
struct answer_job *answer_job_new(const char *cluster_name, const char *score_name, size_t max_series);
/* Takes NULL, returns NULL. While it runs, its end frees it. */
struct answer_job *answer_job_free(struct answer_job *r);
DEFINE_CLEANUP(struct answer_job, answer_job_free)

/* Whether it runs, be it for a round that was cancelled: until it ends, it cannot be started again. */
bool answer_job_is_busy(const struct answer_job *r);
/* How many series the next batch may have. It must not be busy. */
void answer_job_set_max(struct answer_job *r, size_t max_series);
/* Takes the body out of *input. done() may be called before this returns: a small answer is read
 * at once. It must not be busy. */
void answer_job_start(struct answer_job *r, struct worker *w, struct answer_job_input *input,
                      answer_job_done_fn done, void *arg);
/* done() will not be called: what comes of an answer that is still being read is dropped. */
void answer_job_cancel(struct answer_job *r);
