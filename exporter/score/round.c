#include "exporter/score/round.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/score/credentials.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

/* Reading a response: on the loop, or beside it, when nothing here belongs to the round. */
struct reading {
    struct job job;
    struct round *round; /* NULL if it was cancelled */
    struct batch_builder *builder;
    struct buf body;
    size_t label_max;
    unix_ms at;
    enum round_error error;
    char reason[ROUND_REASON_BYTES];
    struct answer_stats stats;
    size_t duplicates;
    struct batch *batch;
};

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
    struct http_call *call;
    struct http_share share;
    struct reading *reading; /* in progress */
    struct round_result result;
};

static const struct source_ops *const source_types[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS] = &source_prometheus,
    [SOURCE_OPENTELEMETRY] = &source_otlp,
};

WORD_TABLE(round_stage_word, enum round_stage, STAGE_SCORING + 1,
           {[STAGE_SOURCE] = "source", [STAGE_SCORING] = "scoring"});

static void round_free_sources(struct round *r)
{
    while (r->n_sources) {
        struct source *s = r->sources[--r->n_sources];

        s->ops->free(s);
    }
}

struct round *round_free(struct round *r)
{
    if (!r)
        return NULL;
    loop_timer_clear(r->rq.env->loop, &r->begin);
    r->call = http_cancel(r->call);
    if (r->reading)
        r->reading->round = NULL;
    round_free_sources(r);
    (void)credentials_free(r->credentials);
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

static void reading_run(struct job *j)
{
    struct reading *g = CONTAINER_OF(j, struct reading, job);

    g->error = answer_parse(buf_str(&g->body), g->builder, g->label_max, &g->stats, g->reason);
    if (g->error == ROUND_OK && batch_seal(g->builder, g->at, &g->batch, &g->duplicates) < 0)
        g->error = round_error_because(g->reason, ROUND_MEMORY, "out of memory");
    if (g->error != ROUND_OK)
        batch_abandon(g->builder);
    else if (g->body.n > WORKER_MIN_BYTES)
        (void)batch_prepare(g->batch); /* the page reports a failure */
    buf_done(&g->body);
}

static void reading_end(struct job *j)
{
    struct reading *g = CONTAINER_OF(j, struct reading, job);
    struct round *r = g->round;

    if (r) {
        r->reading = NULL;
        *r->rq.builder = TAKE_PTR(g->builder);
        r->result.answer = g->stats;
        r->result.duplicates = g->duplicates;
        r->result.batch = TAKE_PTR(g->batch);
    }
    if (r && g->error != ROUND_OK)
        round_fail(r, STAGE_SCORING, g->error, g->reason);
    else if (r)
        r->done(r->arg, &r->result);
    buf_done(&g->body);
    (void)batch_builder_free(g->builder);
    (void)batch_unref(g->batch);
    free(g);
}

static void got_scores(void *arg, struct http_answer *a)
{
    struct round *r = arg;
    struct round_result *res = &r->result;
    enum round_error e = round_error_of_answer(a);
    char reason[ROUND_REASON_BYTES];
    struct reading *g;

    r->call = NULL;
    res->perform_s = a->seconds;
    res->received[STAGE_SCORING] = a->received;
    res->sent[STAGE_SCORING] = a->sent;
    if (e == ROUND_OK) {
        /* First, so that a round never holds its two largest pieces together. */
        round_free_sources(r);
        r->result.answered = loop_now(r->rq.env->loop);
        r->reading = g = xcalloc(1, sizeof(*g));
        *g = (struct reading){
            .job = {.run = reading_run, .done = reading_end},
            .round = r,
            .builder = TAKE_PTR(*r->rq.builder),
            .body = buf_take(&a->body),
            .label_max = r->rq.label_max,
            .at = loop_wall(r->rq.env->loop),
        };
        worker_do(r->rq.env->worker, &g->job, g->body.n);
        return;
    }
    res->retry_after_ms = a->retry_after_ms;
    if (a->error == HTTP_OK)
        text_http_status(
            reason, sizeof(reason), a->status,
            credentials_shown(r->credentials, " without credentials (scoringEndpointAuthName is not set)"),
            buf_str(&a->body));
    round_fail(r, STAGE_SCORING, e, a->error == HTTP_OK ? reason : a->reason);
}

/* Appends to `{"data":[` part `,` part `]}`. */
static void round_put_body(struct round *r, struct str part)
{
    if ((r->n_body & (r->n_body - 1)) == 0)
        r->body = xreallocarray(r->body, r->n_body ? 2 * r->n_body : 1, sizeof(*r->body));
    r->body[r->n_body++] = part;
}

static void ask_for_scores(struct round *r)
{
    const struct secret_ref *auth = &r->rq.summary->scoring_auth;
    struct http_request q = {
        .url = r->rq.summary->scoring_endpoint,
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
    round_put_body(r, STR("]}"));
    q.body = r->body;
    q.body_parts = r->n_body;
    credentials_apply(r->credentials, &q);
    if (http_start(&r->call, r->rq.env->http, &q, got_scores, r) < 0)
        round_fail(r, STAGE_SCORING, ROUND_URL, "scoringEndpoint is not a valid URL");
    else
        r->result.performed = true;
}

/* Sources are fetched one after the other, each with its own token and range. The first failure fails the
 * round. */
static void round_next_source(struct round *r)
{
    const struct summary *s = r->rq.summary;
    struct source like = {.round = r,
                          .env = r->rq.env,
                          .deadline = r->deadline,
                          .share = &r->share,
                          .result = &r->result,
                          .end_ms = r->now.ms};

    if (r->n_sources == summary_sources(s)) {
        ask_for_scores(r);
        return;
    }
    like.from = summary_source(s, r->n_sources);
    if (like.end_ms > like.from.range_s * 1000) /* else the clock was never set */
        like.start_ms = like.end_ms - like.from.range_s * 1000;
    r->sources[r->n_sources++] = source_types[like.from.type]->start(&like);
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

/* ---- What sources share ---- */

void source_init(struct source *s, const struct source_ops *ops, const struct source *like,
                 void (*on_timer)(struct timer *t))
{
    *s = *like;
    s->ops = ops;
    s->timer.fn = on_timer;
    loop_timer_set(s->env->loop, &s->timer, loop_now(s->env->loop));
}

void source_set_error(struct source *s, enum round_error e, const char *reason)
{
    s->result->error = round_error_because(s->result->reason, e, "%s", reason);
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
    struct round *r = s->round;
    struct round_result *res = &r->result;
    size_t sources = summary_sources(r->rq.summary), n = 0;
    char reason[ROUND_REASON_BYTES] = "";

    loop_timer_clear(s->env->loop, &s->timer);
    for (size_t i = 0; res->error == ROUND_OK && i < s->n; i++) {
        if (s->parts[i].n && r->n_body > 1)
            round_put_body(r, STR(","));
        if (s->parts[i].n)
            round_put_body(r, s->parts[i]);
    }
    if (res->error == ROUND_OK) {
        round_next_source(r);
        return;
    }
    res->source = r->n_sources - 1;
    res->source_series = res->source_warnings = 0;
    res->source_warning[0] = '\0';
    if (sources > 1) /* "source 2 of 3: <reason>" */
        n = (size_t)snprintf(reason, sizeof(reason), "source %zu of %zu: ", r->n_sources, sources);
    text_line(reason + n, sizeof(reason) - n, str_of(res->reason));
    round_fail(r, STAGE_SOURCE, res->error, reason);
}

void source_fail(struct source *s, enum round_error e, const char *reason)
{
    source_set_error(s, e, reason);
    source_end(s);
}
