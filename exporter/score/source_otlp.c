/* Source type OpenTelemetry: queries over the series that the agent itself receives. They run on the worker,
 * one after the other. With an endpoint, its own or the agent's, it is a Prometheus. */
#include "exporter/base/buf.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round.h"
#include "exporter/score/source.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* A query on the worker: nothing here belongs to the fetch. */
struct asking {
    struct job job;
    struct otlp *fetch; /* unless it was cancelled */
    atomic_bool cancelled;
    struct query *query;
    struct store *store;
    struct query_range range;
    struct buf result;
    size_t series;
    int error;
    char why[QUERY_WHY_BYTES];
};

struct otlp {
    struct source source; /* its timer starts the first query; then it ends the fetch at its deadline */
    int64_t from_ms;      /* the earliest time that a query reads */
    mono_ms asked_at;
    struct asking *asking;
    struct buf results[SUMMARY_MAX_QUERIES];
};

static void asking_free(struct asking **a)
{
    if (!*a)
        return;
    (void)query_free((*a)->query);
    buf_done(&(*a)->result);
    free(*a);
}

/* Returns whether a query was running. */
static bool otlp_cancel(struct otlp *o)
{
    struct asking *a = TAKE_PTR(o->asking);

    if (!a)
        return false;
    atomic_store(&a->cancelled, true);
    return true;
}

static void otlp_free(struct source *s)
{
    struct otlp *o = CONTAINER_OF(s, struct otlp, source);

    loop_timer_clear(s->env->loop, &s->timer);
    (void)otlp_cancel(o);
    for (size_t i = 0; i < s->n; i++)
        buf_done(&o->results[i]);
    free(o);
}

/* After the last query, or an error in the text of the next one. */
static void otlp_end(struct otlp *o)
{
    static const char *const limits[] = {"limits.otlpSeries", "limits.otlpMemory"};
    int64_t refused_ms[ARRAY_SIZE(limits)] = {0};
    struct source *s = &o->source;
    struct round_result *res = s->result;
    struct store_stats stats;

    if (s->n > 0 && res->error == ROUND_OK) {
        store_stats(s->env->store, &stats);
        refused_ms[0] = stats.series_limit_ms;
        refused_ms[1] = stats.bytes_limit_ms;
    }
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (refused_ms[i] && refused_ms[i] >= o->from_ms && res->source_warnings++ == 0)
            (void)snprintf(res->source_warning, sizeof(res->source_warning),
                           "series may be missing from the result: new ones were refused within its range "
                           "because %s was reached",
                           limits[i]);
    source_end(s);
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
    CLEANUP(asking_free) struct asking *a = CONTAINER_OF(j, struct asking, job);
    struct otlp *o = a->fetch;
    struct source *s;

    if (atomic_load(&a->cancelled))
        return;
    s = &o->source;
    o->asking = NULL;
    s->result->fetch_s += (double)mono_diff(o->asked_at, loop_now(s->env->loop)) / 1000;
    if (a->error < 0) {
        source_fail(s, a->error == -EFBIG ? ROUND_TOO_LARGE : ROUND_QUERY, a->why);
    } else if (http_share_hold(s->share, s->env->http, a->result.n) < 0) {
        source_fail(s, ROUND_MEMORY, "over limits.memory: no room for the result of the query");
    } else {
        s->result->source_series += a->series;
        o->results[s->n] = buf_take(&a->result);
        s->parts[s->n] = buf_str(&o->results[s->n]);
        s->n++;
        otlp_ask(o);
    }
}

/* Starts the next query, or ends the fetch. */
static void otlp_ask(struct otlp *o)
{
    struct source *s = &o->source;
    BUF_AUTO(text, SOURCE_QUERY_BYTES);
    CLEANUP(asking_free) struct asking *a = NULL;
    int64_t from_ms;

    if (!source_next_query(s, &text)) {
        otlp_end(o);
        return;
    }
    a = xcalloc(1, sizeof(*a));
    *a = (struct asking){
        .job = {.run = asking_run, .done = asking_done},
        .fetch = o,
        .store = s->env->store,
        .range = {.start_ms = s->start_ms, .end_ms = s->end_ms, .step_ms = s->from.step_s * 1000}};
    buf_init(&a->result, s->env->max_answer);
    if (query_parse(&a->query, buf_str(&text), buf_str(&text), a->why) < 0) {
        source_fail(s, ROUND_QUERY, a->why);
        return;
    }
    from_ms = s->start_ms - a->query->reach_ms;
    o->from_ms = from_ms < o->from_ms ? from_ms : o->from_ms;
    o->asking = a;
    o->asked_at = loop_now(s->env->loop);
    worker_do(s->env->worker, &TAKE_PTR(a)->job, SIZE_MAX);
}

static void source_otlp_on_timer(struct timer *t)
{
    struct otlp *o = CONTAINER_OF(t, struct otlp, source.timer);
    struct source *s = &o->source;

    if (otlp_cancel(o)) {
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were answered");
    } else if (!s->env->store) {
        source_fail(s, ROUND_QUERY,
                    "the agent receives no OpenTelemetry metrics: start it with --otlp.listen-address");
    } else {
        loop_timer_set(s->env->loop, t, s->deadline);
        otlp_ask(o);
    }
}

static struct source *otlp_start(const struct source *like)
{
    struct otlp *o;

    if (like->from.endpoint || like->env->otlp_url)
        return source_prometheus.start(like);
    o = xcalloc(1, sizeof(*o));
    source_init(&o->source, &source_otlp, like, source_otlp_on_timer);
    o->from_ms = o->source.start_ms;
    return &o->source;
}

const struct source_ops source_otlp = {.start = otlp_start, .free = otlp_free};
