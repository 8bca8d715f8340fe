/* Owns a fetch from its start to its end: the timer, the job that runs for it, and the queries that are left.
 * On the loop; the worker has a job with its input and output, never the source, so that a fetch which is
 * cancelled is gone at once. A fetch never ends twice, and never from inside source_start(). */
#include "exporter/score/source.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

#include <errno.h>

static void source_on_timer(struct timer *t)
{
    struct source *s = CONTAINER_OF(t, struct source, timer);

    s->ops->on_timer(s);
}

struct source *source_start(const struct source_ops *ops, const struct source_request *rq,
                            source_ended_fn ended, void *arg)
{
    struct source *s = xcalloc(1, ops->size);

    *s = (struct source){.ops = ops,
                         .rq = *rq,
                         .ended = ended,
                         .arg = arg,
                         .timer.fn = source_on_timer,
                         .end_ms = rq->at.ms,
                         .outcome = {.retry_after_ms = -1}};
    if (s->end_ms > rq->from->range_s * 1000) /* else the clock was never set */
        s->start_ms = s->end_ms - rq->from->range_s * 1000;
    loop_timer_set(rq->env->loop, &s->timer, loop_now(rq->env->loop));
    return s;
}

/* Its end frees the job. */
static void source_abandon_job(struct source *s)
{
    if (!s->job)
        return;
    s->job->source = NULL;
    atomic_store(&s->job->is_abandoned, true);
    s->job = NULL;
}

struct source *source_free(struct source *s)
{
    if (!s)
        return NULL;
    loop_timer_clear(s->rq.env->loop, &s->timer);
    source_abandon_job(s);
    s->ops->done(s);
    free(s);
    return NULL;
}

/* ---- Jobs ---- */

static void source_job_run(struct job *job)
{
    struct source_job *j = CONTAINER_OF(job, struct source_job, job);

    j->ops->run(j);
}

/* After source_job_run(), or instead of it if the worker ends. */
static void source_job_end(struct job *job)
{
    struct source_job *j = CONTAINER_OF(job, struct source_job, job);
    struct source *s = j->source;

    if (s) {
        invariant(s->job == j);
        s->job = NULL;
        j->ops->ran(s, j);
    }
    j->ops->job_free(j);
}

void source_work(struct source *s, struct source_job *j, size_t bytes)
{
    invariant(!s->job);
    j->ops = s->ops;
    j->source = s;
    j->job = (struct job){.run = source_job_run, .done = source_job_end};
    s->job = j;
    worker_do(s->rq.env->worker, &j->job, bytes);
}

/* ---- Queries, and the end ---- */

static void source_set_error(struct source *s, enum round_error e, const char *reason)
{
    s->outcome.error = round_error_because(s->outcome.reason, e, "%s", reason);
}

bool source_next_query(struct source *s, struct buf *text)
{
    struct str query = summary_next_query(str_of(s->rq.from->query), &s->query_at);
    int r;

    if (query.n == 0)
        return false;
    r = summary_put_query(text, query, str_of(s->rq.env->cluster_name));
    if (r == -EINVAL)
        source_set_error(s, ROUND_QUERY,
                         "sourceQuery: a string between backticks cannot contain the name of this cluster, "
                         "which has one");
    else if (r < 0)
        source_set_error(s, ROUND_QUERY, "query longer than 1 MiB");
    return r == 0;
}

void source_end(struct source *s)
{
    loop_timer_clear(s->rq.env->loop, &s->timer);
    source_abandon_job(s); /* of a query that was not answered by the deadline */
    s->ended(s->arg, s);
}

void source_fail(struct source *s, enum round_error e, const char *reason)
{
    source_set_error(s, e, reason);
    source_end(s);
}
