/* Owns a round's sources, its request to the scoring API, and its deadline. On the loop alone: what the
 * worker does for it are jobs of the sources and the answer's, which own what they read and write. A round
 * never ends twice, and never from inside round_start(). */
#include "exporter/score/round.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/metric/batch.h"
#include "exporter/score/credentials.h"
#include "exporter/score/scoring_url.h"

#include <stdio.h>

struct round {
    struct round_request rq;
    round_done_fn done;
    void *arg;
    unix_ms now; /* the end of all ranges */
    mono_ms deadline;
    struct timer begin;
    struct source *sources[SUMMARY_MAX_SOURCES]; /* they own the series */
    size_t n_sources;
    struct str *body; /* the request's parts: slices of the series, so that they are not copied */
    size_t n_body;
    struct credentials *credentials; /* of the scoring API */
    char *url;                       /* its own, with this cluster's name; outlives the call */
    struct http_call *call;
    struct http_share share;
    struct round_result result;
};

static void round_free_sources(struct round *r)
{
    while (r->n_sources)
        (void)source_free(r->sources[--r->n_sources]);
}

struct round *round_free(struct round *r)
{
    if (!r)
        return NULL;
    loop_timer_clear(r->rq.env->loop, &r->begin);
    r->call = http_cancel(r->call);
    answer_job_cancel(r->rq.answer_job);
    round_free_sources(r);
    (void)credentials_free(r->credentials);
    free(r->url);
    http_share_done(&r->share);
    free(r->body);
    (void)batch_unref(r->result.batch);
    free(r);
    return NULL;
}

static void round_fail(struct round *r, enum round_stage stage, enum round_error e, const char *reason)
{
    r->result.stage = stage;
    r->result.error = round_error_because(r->result.reason, e, "%s", reason);
    r->done(r->arg, &r->result);
}

/* ---- The scoring API ---- */

static void round_on_answer(void *arg, struct answer_job_output *out)
{
    struct round *r = arg;
    struct round_result *res = &r->result;

    res->error = out->error;
    res->answer = out->stats;
    res->duplicates = out->duplicates;
    res->batch = TAKE_PTR(out->batch);
    memcpy(res->reason, out->reason, sizeof(res->reason));
    if (res->error != ROUND_OK)
        res->stage = STAGE_SCORING;
    r->done(r->arg, res);
}

static void round_read(struct round *r, struct http_response *a)
{
    struct answer_job_input in = {
        .body = buf_take(&a->body),
        .label_max = r->rq.label_max,
        .answered = loop_wall(r->rq.env->loop),
    };

    /* First, so that a round never holds its two largest pieces together. */
    round_free_sources(r);
    memcpy(in.content_type, a->content_type, sizeof(in.content_type));
    r->result.answered = loop_now(r->rq.env->loop);
    answer_job_start(r->rq.answer_job, r->rq.env->worker, &in, round_on_answer, r);
}

static void round_on_response(void *arg, struct http_response *a)
{
    struct round *r = arg;
    struct round_result *res = &r->result;
    enum round_error e = round_error_of_response(a);
    const char *with =
        r->credentials ? r->credentials->shown : " without credentials (scoringEndpointAuthName is not set)";
    char reason[ROUND_REASON_BYTES];

    r->call = NULL;
    res->perform_s = a->seconds;
    res->received[STAGE_SCORING] = a->received;
    res->sent[STAGE_SCORING] = a->sent;
    if (e == ROUND_OK) {
        round_read(r, a);
        return;
    }
    res->retry_after_ms = a->retry_after_ms;
    res->cause = a->cause;
    if (a->error != HTTP_OK) {
        round_fail(r, STAGE_SCORING, e, a->reason);
        return;
    }
    text_http_status(reason, sizeof(reason), a->status, with, buf_str(&a->body));
    round_fail(r, STAGE_SCORING, e, reason);
}

/* Appends to `{"data":[` part `,` part `]}`. */
static void round_put_body(struct round *r, struct str part)
{
    if ((r->n_body & (r->n_body - 1)) == 0)
        r->body = xreallocarray(r->body, r->n_body ? 2 * r->n_body : 1, sizeof(*r->body));
    r->body[r->n_body++] = part;
}

static void round_ask_for_scores(struct round *r)
{
    const struct secret_ref *auth = &r->rq.summary->scoring_auth;
    struct http_request q = {
        .content_type = "application/json",
        .max_answer = r->rq.env->max_answer,
        .timeout_ms = mono_diff(loop_now(r->rq.env->loop), r->deadline),
        .share = &r->share,
        .trace = r->result.trace,
    };
    char why[CREDENTIALS_WHY_BYTES];

    r->result.fetched = true;
    if (credentials_read(&r->credentials, r->rq.env->secrets, auth->name, auth->key, why) < 0) {
        round_fail(r, STAGE_SCORING, ROUND_SECRET, why);
        return;
    }
    if (q.timeout_ms <= 0) {
        round_fail(r, STAGE_SCORING, ROUND_TIMEOUT, "the source took all of the round's time");
        return;
    }
    if (scoring_url_make(&r->url, r->rq.summary->scoring_endpoint, str_of(r->rq.env->cluster_name)) < 0) {
        round_fail(r, STAGE_SCORING, ROUND_URL,
                   "scoringEndpoint: the name of this cluster cannot be put for ${cluster} in the path");
        return;
    }
    q.url = r->url;
    round_put_body(r, STR("]}"));
    q.body = r->body;
    q.body_parts = r->n_body;
    credentials_apply(r->credentials, &q);
    if (http_start(&r->call, r->rq.env->http, &q, round_on_response, r) < 0)
        round_fail(r, STAGE_SCORING, ROUND_URL, "scoringEndpoint is not a valid URL");
    else
        r->result.performed = true;
}

/* ---- Sources: fetched one after the other, each with its own token and range. The first failure fails the
 * round ---- */

/* A source of type OpenTelemetry with an endpoint, its own or the agent's, is a Prometheus. */
static const struct source_ops *source_type_ops(const struct summary_source *from,
                                                const struct source_env *env)
{
    static const struct source_ops *const types[SOURCE_TYPES] = {
        [SOURCE_PROMETHEUS] = &source_prometheus,
        [SOURCE_OPENTELEMETRY] = &source_otlp,
    };

    if (from->type == SOURCE_OPENTELEMETRY && (from->endpoint || env->otlp_url))
        return types[SOURCE_PROMETHEUS];
    return types[from->type];
}

static void round_add_traffic(struct round *r, const struct source_outcome *o)
{
    r->result.fetch_s += o->seconds;
    r->result.received[STAGE_SOURCE] += o->received;
    r->result.sent[STAGE_SOURCE] += o->sent;
}

/* The last source that was started has failed. */
static void round_fail_source(struct round *r, const struct source_outcome *o)
{
    struct round_result *res = &r->result;
    size_t sources = r->rq.summary->n_sources, n = 0;
    char reason[ROUND_REASON_BYTES] = "";

    res->source = r->n_sources - 1;
    res->cause = o->cause;
    res->retry_after_ms = o->retry_after_ms;
    res->source_series = res->source_warnings = 0;
    res->source_warning[0] = '\0';
    if (sources > 1) /* "source 2 of 3: <reason>" */
        n = (size_t)snprintf(reason, sizeof(reason), "source %zu of %zu: ", r->n_sources, sources);
    text_line(reason + n, sizeof(reason) - n, str_of(o->reason));
    round_fail(r, STAGE_SOURCE, o->error, reason);
}

static void round_put_series(struct round *r, const struct source *s)
{
    struct round_result *res = &r->result;
    const struct source_outcome *o = &s->outcome;

    if (res->source_warnings == 0)
        memcpy(res->source_warning, o->warning, sizeof(res->source_warning));
    res->source_warnings += o->warnings;
    res->source_series += o->series;
    for (size_t i = 0; i < s->n; i++) {
        if (s->parts[i].n == 0)
            continue;
        if (r->n_body > 1)
            round_put_body(r, STR(","));
        round_put_body(r, s->parts[i]);
    }
}

static void round_next_source(struct round *r);

static void round_on_source_ended(void *arg, struct source *s)
{
    struct round *r = arg;

    round_add_traffic(r, &s->outcome);
    if (s->outcome.error != ROUND_OK) {
        round_fail_source(r, &s->outcome);
        return;
    }
    round_put_series(r, s);
    round_next_source(r);
}

static void round_next_source(struct round *r)
{
    struct source_request rq = {
        .env = r->rq.env,
        .deadline = r->deadline,
        .at = r->now,
        .share = &r->share,
        .trace = r->result.trace,
    };

    if (r->n_sources == r->rq.summary->n_sources) {
        round_ask_for_scores(r);
        return;
    }
    rq.from = &r->rq.summary->sources[r->n_sources];
    r->sources[r->n_sources] = source_start(source_type_ops(rq.from, rq.env), &rq, round_on_source_ended, r);
    r->n_sources++;
}

static void round_on_begin(struct timer *t)
{
    round_next_source(CONTAINER_OF(t, struct round, begin));
}

struct round *round_start(const struct round_request *rq, round_done_fn done, void *arg)
{
    struct round *r = xcalloc(1, sizeof(*r));

    *r = (struct round){
        .rq = *rq,
        .done = done,
        .arg = arg,
        .now = loop_wall(rq->env->loop),
        .deadline = mono_add(loop_now(rq->env->loop), rq->timeout_ms),
        .begin.fn = round_on_begin,
        .result = {.retry_after_ms = -1},
    };
    http_trace_id(r->result.trace);
    round_put_body(r, STR("{\"data\":["));
    loop_timer_set(rq->env->loop, &r->begin, loop_now(rq->env->loop));
    return r;
}
