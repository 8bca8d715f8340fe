/* Owns a batch builder, and while an answer is read this and what comes of it. The loop's thread calls it;
 * answer_job_run() alone may be on the worker, which then has the builder, the input and the output, and
 * nothing else: neither the round nor the scorer, which may both be gone before it ends. A batch whose round
 * was cancelled never reaches anybody. */
#include "exporter/score/answer_job.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/text.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"

enum answer_job_state {
    ANSWER_JOB_IDLE,
    ANSWER_JOB_WANTED,    /* it runs, and calls done() at its end */
    ANSWER_JOB_CANCELLED, /* it runs, and its output will be dropped */
    ANSWER_JOB_ORPHANED,  /* likewise, and then all of it will be freed */
};

struct answer_job {
    struct batch_builder *builder;
    struct answer_job_input in;
    struct answer_job_output out;
    struct job job;
    /* The loop's own. */
    enum answer_job_state state;
    answer_job_done_fn done;
    void *arg;
};

/* On the worker or the loop. */
static void answer_job_run(struct job *j)
{
    struct answer_job *r = CONTAINER_OF(j, struct answer_job, job);
    struct answer_job_output *out = &r->out;
    struct str body = buf_str(&r->in.body);

    out->error = answer_parse(body, r->builder, r->in.label_max, &out->stats, out->reason);
    if (out->error == ROUND_JSON)
        text_show_body(out->reason, sizeof(out->reason), r->in.content_type, body);
    if (out->error != ROUND_OK)
        batch_abandon(r->builder);
    else
        batch_seal(r->builder, r->in.answered, &out->batch, &out->duplicates);
    buf_keep(&r->in.body);
}

static void answer_job_drop(struct answer_job *r)
{
    buf_done(&r->in.body);
    (void)batch_builder_free(r->builder);
    free(r);
}

/* After answer_job_run(), or instead of it if the worker ends. */
static void answer_job_end(struct job *j)
{
    struct answer_job *r = CONTAINER_OF(j, struct answer_job, job);
    enum answer_job_state was = r->state;
    struct answer_job_output out = r->out;

    invariant(was != ANSWER_JOB_IDLE);
    r->state = ANSWER_JOB_IDLE;
    r->out.batch = NULL;
    buf_done(&r->in.body); /* which is there if the worker ended before it came to it */
    if (was == ANSWER_JOB_ORPHANED)
        answer_job_drop(r);
    else if (was == ANSWER_JOB_WANTED)
        r->done(r->arg, &out);
    (void)batch_unref(out.batch);
}

struct answer_job *answer_job_new(const char *cluster_name, const char *score_name, size_t max_series)
{
    struct answer_job *r = xcalloc(1, sizeof(*r));

    r->builder = batch_builder_new(cluster_name, score_name, max_series);
    r->job = (struct job){.run = answer_job_run, .done = answer_job_end};
    return r;
}

struct answer_job *answer_job_free(struct answer_job *r)
{
    if (!r)
        return NULL;
    if (answer_job_is_busy(r))
        r->state = ANSWER_JOB_ORPHANED;
    else
        answer_job_drop(r);
    return NULL;
}

bool answer_job_is_busy(const struct answer_job *r)
{
    return r->state != ANSWER_JOB_IDLE;
}

void answer_job_set_max(struct answer_job *r, size_t max_series)
{
    invariant(!answer_job_is_busy(r));
    batch_builder_set_max(r->builder, max_series);
}

void answer_job_start(struct answer_job *r, struct worker *w, struct answer_job_input *input,
                      answer_job_done_fn done, void *arg)
{
    invariant(!answer_job_is_busy(r));
    r->in = *input;
    r->in.body = buf_take(&input->body);
    r->out = (struct answer_job_output){.error = ROUND_OK};
    r->done = done;
    r->arg = arg;
    r->state = ANSWER_JOB_WANTED;
    worker_do(w, &r->job, r->in.body.n);
}

void answer_job_cancel(struct answer_job *r)
{
    if (r->state == ANSWER_JOB_WANTED)
        r->state = ANSWER_JOB_CANCELLED;
}
