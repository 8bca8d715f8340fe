/* Source type OpenTelemetry: queries over the series that the agent itself receives. Each is a job of the
 * worker, one after the other. On the loop, but for otlp_run(). With an endpoint, its own or the agent's, the
 * type is a Prometheus. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round_error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

struct otlp_source {
    struct source source;
    int64_t from_ms;  /* the earliest time that a query reads */
    mono_ms asked_at; /* when the query that runs was started */
    struct buf results[SUMMARY_MAX_QUERIES];
};

/* ---- The job: runs a query ---- */

struct otlp_job {
    struct source_job base;
    /* Input */
    struct query *query;
    struct store *store; /* has a lock of its own */
    struct query_range range;
    /* Output */
    struct buf result;
    size_t series;
    int error;
    char why[QUERY_WHY_BYTES];
};

static void otlp_run(struct source_job *base)
{
    struct otlp_job *j = CONTAINER_OF(base, struct otlp_job, base);

    j->error = query_run(j->query, j->store, &j->range, &base->is_abandoned, &j->result, &j->series, j->why);
    if (j->error < 0)
        buf_done(&j->result);
}

static void otlp_job_free(struct source_job *base)
{
    struct otlp_job *j = CONTAINER_OF(base, struct otlp_job, base);

    (void)query_free(j->query);
    buf_done(&j->result);
    free(j);
}

/* ---- Queries ---- */

static void otlp_done(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);

    for (size_t i = 0; i < s->n; i++)
        buf_done(&o->results[i]);
}

/* Warns if the store refused new series, since limit_ms last, within the range of the queries. */
static void otlp_warn_of_limit(struct otlp_source *o, int64_t limit_ms, const char *key)
{
    struct source_outcome *out = &o->source.outcome;

    if (limit_ms == 0 || limit_ms < o->from_ms || out->warnings++ > 0)
        return;
    (void)snprintf(out->warning, sizeof(out->warning),
                   "series may be missing from the result: new ones were refused within its range because %s "
                   "was reached",
                   key);
}

/* After the last query, or an error in the text of the next one. */
static void otlp_end(struct otlp_source *o)
{
    struct store_stats stats;

    store_stats(o->source.rq.env->store, &stats);
    otlp_warn_of_limit(o, stats.series_limit_ms, "limits.otlpSeries");
    otlp_warn_of_limit(o, stats.bytes_limit_ms, "limits.otlpMemory");
    source_end(&o->source);
}

/* Starts the next query, or ends the fetch. */
static void otlp_ask(struct otlp_source *o)
{
    struct source *s = &o->source;
    BUF_AUTO(text, SOURCE_QUERY_BYTES);
    char why[QUERY_WHY_BYTES];
    struct query *query = NULL;
    struct otlp_job *j;
    int64_t from_ms;

    if (!source_next_query(s, &text)) {
        otlp_end(o);
        return;
    }
    if (query_parse(&query, buf_str(&text), buf_str(&text), why) < 0) {
        source_fail(s, ROUND_QUERY, why);
        return;
    }
    from_ms = s->start_ms - query->reach_ms;
    o->from_ms = from_ms < o->from_ms ? from_ms : o->from_ms;
    o->asked_at = loop_now(s->rq.env->loop);
    j = xcalloc(1, sizeof(*j));
    j->query = query;
    j->store = s->rq.env->store;
    j->range = (struct query_range){
        .start_ms = s->start_ms, .end_ms = s->end_ms, .step_ms = s->rq.from->step_s * 1000};
    buf_init(&j->result, s->rq.env->max_answer);
    source_work(s, &j->base, SIZE_MAX);
}

static void otlp_ran(struct source *s, struct source_job *base)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);
    struct otlp_job *j = CONTAINER_OF(base, struct otlp_job, base);

    s->outcome.seconds += (double)mono_diff(o->asked_at, loop_now(s->rq.env->loop)) / 1000;
    if (j->error < 0) {
        source_fail(s, j->error == -EFBIG ? ROUND_TOO_LARGE : ROUND_QUERY, j->why);
    } else if (http_share_reserve(s->rq.share, s->rq.env->http, j->result.n) < 0) {
        source_fail(s, ROUND_MEMORY, "over limits.memory: no room for the result of the query");
    } else {
        s->outcome.series += j->series;
        o->results[s->n] = buf_take(&j->result);
        s->parts[s->n] = buf_str(&o->results[s->n]);
        s->n++;
        otlp_ask(o);
    }
}

/* Starts the first query; then it is the deadline. */
static void source_otlp_on_timer(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);

    if (s->job) {
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were answered");
    } else if (!s->rq.env->store) {
        source_fail(s, ROUND_QUERY,
                    "the agent receives no OpenTelemetry metrics: start it with --otlp.listen-address");
    } else {
        o->from_ms = s->start_ms;
        loop_timer_set(s->rq.env->loop, &s->timer, s->rq.deadline);
        otlp_ask(o);
    }
}

const struct source_ops source_otlp = {
    .size = sizeof(struct otlp_source),
    .on_timer = source_otlp_on_timer,
    .done = otlp_done,
    .run = otlp_run,
    .ran = otlp_ran,
    .job_free = otlp_job_free,
};
