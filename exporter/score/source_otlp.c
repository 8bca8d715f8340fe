/* Source type OpenTelemetry: queries over the series that the agent itself receives. They run on the worker,
 * one after the other. With an endpoint, its own or the agent's, it is a Prometheus. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/worker.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

enum { TEXT_MAX_BYTES = 1 << 20 };

/* A query on the worker: nothing here belongs to the fetch. */
struct asking {
    struct job job;
    struct otlp *fetch;    /* NULL if it was cancelled */
    atomic_bool cancelled; /* the same for the worker */
    struct query *query;
    struct store *store;
    struct query_range range;
    struct buf result;
    size_t series;
    int error;
    char why[QUERY_WHY_BYTES];
};

struct otlp {
    struct source source;
    const struct source_env *env;
    struct summary_source from; /* its strings are the summary's */
    struct query_range range;
    int64_t from_ms; /* the earliest time that a query reads */
    struct http_share *share;
    mono_ms deadline, asked_at;
    source_done_fn done;
    void *arg;
    struct timer timer; /* starts the first query; then ends the fetch at its deadline */
    struct asking *asking;
    size_t query_at;
    struct buf results[SUMMARY_MAX_QUERIES];
    struct str parts[SUMMARY_MAX_QUERIES];
    size_t n;
    struct source_result result;
};

static struct asking *asking_free(struct asking *a)
{
    if (!a)
        return NULL;
    (void)query_free(a->query);
    buf_done(&a->result);
    free(a);
    return NULL;
}
DEFINE_CLEANUP(struct asking, asking_free)

/* Returns whether a query was running. */
static bool otlp_cancel(struct otlp *o)
{
    struct asking *a = TAKE_PTR(o->asking);

    if (!a)
        return false;
    a->fetch = NULL;
    atomic_store(&a->cancelled, true);
    return true;
}

static void otlp_free(struct source *s)
{
    struct otlp *o = CONTAINER_OF(s, struct otlp, source);

    loop_timer_clear(o->env->loop, &o->timer);
    (void)otlp_cancel(o);
    for (size_t i = 0; i < o->n; i++)
        buf_done(&o->results[i]);
    free(o);
}

static void otlp_add_warning(struct otlp *o, int64_t refused_ms, const char *limit)
{
    if (refused_ms == 0 || refused_ms < o->from_ms || o->result.warnings++ > 0)
        return;
    (void)snprintf(o->result.warning, sizeof(o->result.warning),
                   "series may be missing from the result: new ones were refused within its range because %s "
                   "was reached",
                   limit);
}

static void otlp_finish(struct otlp *o)
{
    loop_timer_clear(o->env->loop, &o->timer);
    if (o->n > 0 && o->result.error == ROUND_OK) {
        struct store_stats s;

        store_stats(o->env->store, &s);
        otlp_add_warning(o, s.series_limit_ms, "limits.otlpSeries");
        otlp_add_warning(o, s.bytes_limit_ms, "limits.otlpMemory");
    }
    o->result.parts = o->parts;
    o->result.n_parts = o->n;
    o->done(o->arg, &o->result);
}

static void otlp_fail(struct otlp *o, enum round_error e, const char *reason)
{
    o->result.error = e;
    (void)snprintf(o->result.reason, sizeof(o->result.reason), "%s", reason);
    otlp_finish(o);
}

static enum round_error otlp_error(int r)
{
    return r == -ENOMEM ? ROUND_MEMORY : r == -EFBIG ? ROUND_TOO_LARGE : ROUND_QUERY;
}

static void asking_run(struct job *j)
{
    struct asking *a = CONTAINER_OF(j, struct asking, job);

    a->error = query_run(a->query, a->store, &a->range, &a->cancelled, &a->result, &a->series, a->why);
    if (a->error < 0)
        buf_done(&a->result);
}

static void otlp_ask(struct otlp *o);

static void asking_done(struct job *j)
{
    CLEANUP(cleanup_asking_free) struct asking *a = CONTAINER_OF(j, struct asking, job);
    struct otlp *o = a->fetch;

    if (!o)
        return;
    o->asking = NULL;
    o->result.seconds += (double)mono_diff(o->asked_at, loop_now(o->env->loop)) / 1000;
    if (a->error < 0) {
        otlp_fail(o, otlp_error(a->error), a->why);
    } else if (http_share_hold(o->share, o->env->http, a->result.n) < 0) {
        otlp_fail(o, ROUND_MEMORY, "over limits.memory: no room for the result of the query");
    } else {
        o->result.series += a->series;
        o->results[o->n] = buf_take(&a->result);
        o->parts[o->n] = buf_str(&o->results[o->n]);
        o->n++;
        otlp_ask(o);
    }
}

/* Parses the query with the cluster's name in it. */
static int asking_parse(struct asking *a, const struct otlp *o, struct str query)
{
    BUF_AUTO(text, TEXT_MAX_BYTES);
    int r = summary_put_query(&text, query, str_of(o->env->cluster_name));

    if (r == -EINVAL)
        (void)snprintf(a->why, sizeof(a->why),
                       "sourceQuery: a string between backticks cannot contain the name of this cluster, "
                       "which has one");
    else if (r == -EFBIG)
        (void)snprintf(a->why, sizeof(a->why), "query longer than 1 MiB");
    else if (r == 0)
        r = query_parse(&a->query, buf_str(&text), buf_str(&text), a->why);
    return r == -EFBIG ? -EINVAL : r;
}

/* Starts the next query, or ends the fetch. */
static void otlp_ask(struct otlp *o)
{
    struct str query = summary_next_query(str_of(o->from.query), &o->query_at);
    CLEANUP(cleanup_asking_free) struct asking *a = NULL;
    int r;

    if (query.n == 0) {
        otlp_finish(o);
        return;
    }
    a = xcalloc(1, sizeof(*a));
    *a = (struct asking){.job = {.run = asking_run, .done = asking_done},
                         .fetch = o,
                         .store = o->env->store,
                         .range = o->range,
                         .why = "out of memory"};
    buf_init(&a->result, o->env->max_answer);
    r = asking_parse(a, o, query);
    if (r < 0) {
        otlp_fail(o, otlp_error(r), a->why);
        return;
    }
    if (o->range.start_ms - query_reach(a->query) < o->from_ms)
        o->from_ms = o->range.start_ms - query_reach(a->query);
    o->asking = a;
    o->asked_at = loop_now(o->env->loop);
    worker_do(o->env->worker, &TAKE_PTR(a)->job, SIZE_MAX);
}

static void source_otlp_on_timer(struct timer *t)
{
    struct otlp *o = CONTAINER_OF(t, struct otlp, timer);

    if (otlp_cancel(o)) {
        otlp_fail(o, ROUND_TIMEOUT, "timed out before all queries were answered");
    } else if (!o->env->store) {
        otlp_fail(o, ROUND_QUERY,
                  "the agent receives no OpenTelemetry metrics: start it with --otlp.listen-address");
    } else {
        loop_timer_set(o->env->loop, &o->timer, o->deadline);
        otlp_ask(o);
    }
}

static struct source *otlp_start(const struct source_request *rq, source_done_fn done, void *arg)
{
    struct summary_source from = summary_source(rq->summary, rq->index);
    struct otlp *o;

    if (from.endpoint || rq->env->otlp_url)
        return source_prometheus.start(rq, done, arg);
    o = xcalloc(1, sizeof(*o));
    *o = (struct otlp){
        .source = {&source_otlp},
        .env = rq->env,
        .from = from,
        .share = rq->share,
        .deadline = rq->deadline,
        .done = done,
        .arg = arg,
        .timer = {.fn = source_otlp_on_timer},
        .result = {.retry_after_ms = -1},
    };
    o->range.end_ms = rq->now.ms;
    o->range.step_ms = from.step_s * 1000;
    o->range.start_ms = o->range.end_ms - from.range_s * 1000;
    if (o->range.start_ms < 0) /* the clock was never set */
        o->range.start_ms = 0;
    o->from_ms = o->range.start_ms;
    loop_timer_set(rq->env->loop, &o->timer, loop_now(rq->env->loop));
    return &o->source;
}

const struct source_ops source_otlp = {.start = otlp_start, .free = otlp_free};
