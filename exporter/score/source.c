/* What all sources do alike. */
#include "exporter/score/source.h"

#include <errno.h>
#include <stdio.h>

void source_init(struct source *s, const struct source_ops *ops, const struct source_request *rq,
                 source_done_fn done, void *arg, void (*on_timer)(struct timer *t))
{
    *s = (struct source){.ops = ops,
                         .env = rq->env,
                         .from = summary_source(rq->summary, rq->index),
                         .deadline = rq->deadline,
                         .share = rq->share,
                         .done = done,
                         .arg = arg,
                         .timer.fn = on_timer,
                         .end_ms = rq->now.ms,
                         .result.retry_after_ms = -1};
    if (s->end_ms > s->from.range_s * 1000) /* else the clock was never set */
        s->start_ms = s->end_ms - s->from.range_s * 1000;
    loop_timer_set(s->env->loop, &s->timer, loop_now(s->env->loop));
}

void source_set_error(struct source *s, enum round_error e, const char *reason)
{
    s->result.error = e;
    (void)snprintf(s->result.reason, sizeof(s->result.reason), "%s", reason);
}

bool source_next_query(struct source *s, struct buf *text)
{
    struct str query = summary_next_query(str_of(s->from.query), &s->query_at);
    int r;

    if (query.n == 0)
        return false;
    r = summary_put_query(text, query, str_of(s->env->cluster_name));
    if (r < 0)
        source_set_error(s, ROUND_QUERY,
                         r == -EINVAL ? "sourceQuery: a string between backticks cannot contain the name of "
                                        "this cluster, which has one"
                                      : "query longer than 1 MiB");
    return r == 0;
}

void source_end(struct source *s)
{
    s->result.parts = s->parts;
    s->result.n_parts = s->n;
    s->done(s->arg, &s->result);
}

void source_fail(struct source *s, enum round_error e, const char *reason)
{
    source_set_error(s, e, reason);
    source_end(s);
}
