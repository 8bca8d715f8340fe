/* Source type OpenTelemetry: queries over the series that the agent itself receives. They run on the worker,
 * one after the other. With an endpoint, its own or the agent's, it is a Prometheus. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

struct otlp_source {
    struct source source;
    int64_t from_ms; /* the earliest time that a query reads */
    /* The query that runs. */
    mono_ms asked_at;
    struct query *query;
    struct store *store;
    struct buf result;
    size_t series;
    int error;
    char why[QUERY_WHY_BYTES];
    struct buf results[SUMMARY_MAX_QUERIES];
};

static void otlp_done(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);

    (void)query_free(o->query);
    buf_done(&o->result);
    for (size_t i = 0; i < s->n; i++)
        buf_done(&o->results[i]);
}

/* After the last query, or an error in the text of the next one. */
static void otlp_end(struct otlp_source *o)
{
    static const char *const limits[] = {"limits.otlpSeries", "limits.otlpMemory"};
    struct source *s = &o->source;
    struct round_result *res = s->result;
    int64_t refused_ms[ARRAY_SIZE(limits)];
    struct store_stats stats;

    store_stats(s->env->store, &stats);
    refused_ms[0] = stats.series_limit_ms;
    refused_ms[1] = stats.bytes_limit_ms;
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (refused_ms[i] && refused_ms[i] >= o->from_ms && res->source_warnings++ == 0)
            (void)snprintf(res->source_warning, sizeof(res->source_warning),
                           "series may be missing from the result: new ones were refused within its range "
                           "because %s was reached",
                           limits[i]);
    source_end(s);
}

static void otlp_run(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);
    const struct query_range range = {
        .start_ms = s->start_ms, .end_ms = s->end_ms, .step_ms = s->from.step_s * 1000};

    o->error = query_run(o->query, o->store, &range, &s->is_over, &o->result, &o->series, o->why);
    if (o->error < 0)
        buf_done(&o->result);
}

/* Starts the next query, or ends the fetch. */
static void otlp_ask(struct otlp_source *o)
{
    struct source *s = &o->source;
    BUF_AUTO(text, SOURCE_QUERY_BYTES);
    int64_t from_ms;

    o->query = query_free(o->query);
    if (!source_next_query(s, &text)) {
        otlp_end(o);
        return;
    }
    if (query_parse(&o->query, buf_str(&text), buf_str(&text), o->why) < 0) {
        source_fail(s, ROUND_QUERY, o->why);
        return;
    }
    from_ms = s->start_ms - o->query->reach_ms;
    o->from_ms = from_ms < o->from_ms ? from_ms : o->from_ms;
    o->asked_at = loop_now(s->env->loop);
    o->store = s->env->store;
    buf_init(&o->result, s->env->max_answer);
    source_work(s, SIZE_MAX);
}

static void otlp_ran(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);

    s->result->fetch_s += (double)mono_diff(o->asked_at, loop_now(s->env->loop)) / 1000;
    if (o->error < 0) {
        source_fail(s, o->error == -EFBIG ? ROUND_TOO_LARGE : ROUND_QUERY, o->why);
    } else if (http_share_hold(s->share, s->env->http, o->result.n) < 0) {
        source_fail(s, ROUND_MEMORY, "over limits.memory: no room for the result of the query");
    } else {
        s->result->source_series += o->series;
        o->results[s->n] = buf_take(&o->result);
        s->parts[s->n] = buf_str(&o->results[s->n]);
        s->n++;
        otlp_ask(o);
    }
}

/* Starts the first query; then it is the deadline. */
static void source_otlp_on_timer(struct source *s)
{
    struct otlp_source *o = CONTAINER_OF(s, struct otlp_source, source);

    if (s->is_working) {
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were answered");
    } else if (!s->env->store) {
        source_fail(s, ROUND_QUERY,
                    "the agent receives no OpenTelemetry metrics: start it with --otlp.listen-address");
    } else {
        o->from_ms = s->start_ms;
        loop_timer_set(s->env->loop, &s->timer, s->deadline);
        otlp_ask(o);
    }
}

const struct source_ops source_otlp = {sizeof(struct otlp_source), source_otlp_on_timer, otlp_run, otlp_ran,
                                       otlp_done};
