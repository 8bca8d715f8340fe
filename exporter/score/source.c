/* The table of source types, and what is common to all sources. */
#include "exporter/score/source.h"

#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

/* Source type None: the scoring API gets no series. */

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
    struct none *n = xcalloc(1, sizeof(*n));

    *n = (struct none){.source = {&source_none},
                       .loop = rq->env->loop,
                       .timer = {.fn = none_on_timer},
                       .done = done,
                       .arg = arg};
    loop_timer_set(rq->env->loop, &n->timer, loop_now(rq->env->loop));
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

/* Several sources as one: fetched one after the other, each with its own token and range; their series are
 * concatenated. The first failure fails the whole fetch. */

struct several {
    struct source source;
    struct source_request request;
    source_done_fn done;
    void *arg;
    struct source *started[SUMMARY_MAX_SOURCES]; /* kept until the end: they own the series */
    size_t n;
    struct str *parts; /* of all sources */
    struct source_result result;
};

static struct source *several_free(struct source *s)
{
    struct several *v = CONTAINER_OF(s, struct several, source);

    for (size_t i = 0; i < v->n; i++)
        v->started[i] = source_free(v->started[i]);
    free(v->parts);
    free(v);
    return NULL;
}

/* "source 2 of 3: <reason>" */
static void several_fail(struct several *v, enum round_error e, const char *reason)
{
    struct source_result *all = &v->result;
    size_t n;

    all->error = e;
    all->index = v->request.index;
    n = (size_t)snprintf(all->reason, sizeof(all->reason), "source %zu of %zu: ", v->request.index + 1,
                         summary_sources(v->request.summary));
    text_line(all->reason + n, sizeof(all->reason) - n, str_of(reason));
}

static void keep_parts(struct several *v, const struct source_result *found)
{
    size_t n = v->result.n_parts;
    struct str *parts = xreallocarray(v->parts, n + found->n_parts + 1, sizeof(*parts));

    v->parts = parts;
    for (size_t i = 0; i < found->n_parts; i++)
        parts[n + i] = found->parts[i];
    v->result.parts = parts;
    v->result.n_parts = n + found->n_parts;
}

static void several_got_series(void *arg, const struct source_result *found);

static int several_start_next(struct several *v)
{
    struct summary_source from = summary_source(v->request.summary, v->request.index);
    int r = source_of_type(from.type)->start(&v->started[v->n], &v->request, several_got_series, v);

    if (r == 0)
        v->n++;
    return r;
}

static void several_add(struct several *v, const struct source_result *found)
{
    struct source_result *all = &v->result;

    all->seconds += found->seconds;
    all->received += found->received;
    all->sent += found->sent;
    if (found->error != ROUND_OK) {
        all->retry_after_ms = found->retry_after_ms;
        several_fail(v, found->error, found->reason);
        return;
    }
    if (all->warnings == 0)
        memcpy(all->warning, found->warning, sizeof(all->warning));
    all->warnings += found->warnings;
    all->series += found->series;
    keep_parts(v, found);
}

static void several_got_series(void *arg, const struct source_result *found)
{
    struct several *v = arg;

    several_add(v, found);
    if (v->result.error == ROUND_OK && v->n < summary_sources(v->request.summary)) {
        v->request.index = v->n;
        if (several_start_next(v) == 0)
            return;
        several_fail(v, ROUND_MEMORY, "out of memory");
    }
    v->done(v->arg, &v->result);
}

static int several_start(struct source **ret, const struct source_request *rq, source_done_fn done, void *arg)
{
    struct several *v = xcalloc(1, sizeof(*v));
    int r;

    *v = (struct several){
        .source = {&source_several},
        .request = *rq,
        .done = done,
        .arg = arg,
        .result = {.retry_after_ms = -1},
    };
    r = several_start_next(v);
    if (r < 0) {
        (void)several_free(&v->source);
        return r;
    }
    *ret = &v->source;
    return 0;
}

const struct source_ops source_several = {.start = several_start, .free = several_free};

const char *const source_type_words[] = {
    [SOURCE_PROMETHEUS - 1] = "Prometheus",
    [SOURCE_NONE - 1] = "None",
    [SOURCE_OPENTELEMETRY - 1] = "OpenTelemetry",
    "OTel",
    "OTLP",
    NULL,
};
static const struct source_ops *const source_types[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS] = &source_prometheus,
    [SOURCE_NONE] = &source_none,
    [SOURCE_OPENTELEMETRY] = &source_otlp,
};

enum source_type source_type_at(unsigned word)
{
    return word + 1 < SOURCE_TYPES ? (enum source_type)(word + 1) : SOURCE_OPENTELEMETRY;
}

const char *source_type_word(enum source_type type)
{
    return type == SOURCE_UNSET ? NULL : source_type_words[type - 1];
}

enum source_type source_type_of(const char *word)
{
    for (unsigned i = 0; word && source_type_words[i]; i++)
        if (strcasecmp(word, source_type_words[i]) == 0)
            return source_type_at(i);
    return SOURCE_UNSET;
}

const struct source_ops *source_of_type(enum source_type type)
{
    return source_types[type];
}

const struct source_ops *source_for(const struct summary *s)
{
    return summary_sources(s) > 1 ? &source_several : source_of_type(s->source.type);
}

struct source *source_free(struct source *s)
{
    return s ? s->ops->free(s) : NULL;
}
