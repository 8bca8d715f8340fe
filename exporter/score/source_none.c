/* Source type None: the scoring API gets no series. */
#include "exporter/score/source.h"

#include "exporter/base/loop.h"

#include <errno.h>

struct none {
    struct source source;
    struct loop *loop;
    struct timer timer; /* done() must not run inside start() */
    source_done_fn done;
    void *arg;
};

static void none_on_timer(struct timer *t)
{
    struct none *n = CONTAINER_OF(t, struct none, timer);

    n->done(n->arg, &(struct source_result){.error = ROUND_OK, .retry_after_ms = -1});
}

static int none_start(struct source **ret, const struct source_request *rq, source_done_fn done, void *arg)
{
    struct none *n = calloc(1, sizeof(*n));

    if (!n)
        return -ENOMEM;
    *n = (struct none){.source = {&source_none},
                       .loop = rq->env->loop,
                       .timer = {.fn = none_on_timer},
                       .done = done,
                       .arg = arg};
    if (loop_timer_set(rq->env->loop, &n->timer, loop_now(rq->env->loop)) < 0) {
        free(n);
        return -ENOMEM;
    }
    *ret = &n->source;
    return 0;
}

static struct source *none_free(struct source *s)
{
    struct none *n = CONTAINER_OF(s, struct none, source);

    loop_timer_clear(n->loop, &n->timer);
    free(n);
    return NULL;
}

const struct source_ops source_none = {.start = none_start, .free = none_free};
