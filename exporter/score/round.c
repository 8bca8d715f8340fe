/* Owns a round's calls, its sources and its deadline. On the loop; a worker reads large responses and
 * hands them back. A round never ends twice, and never from inside round_start(). */
#include "exporter/score/round.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/rule.h"

#include <errno.h>
#include <stdio.h>

/* ---- Errors ---- */

WORD_TABLE(scorer_state_word, enum scorer_state, SCORER_STATES,
           {[SCORER_WAITING] = "waiting",
            [SCORER_OK] = "ok",
            [SCORER_EMPTY] = "empty",
            [SCORER_FAILING] = "failing",
            [SCORER_STALE] = "stale",
            [SCORER_SUSPENDED] = "suspended"});

static const struct {
    const char *word;
    bool may_pass;
} table[ROUND_ERRORS] = {
    [ROUND_OK] = {"ok", false},
    [ROUND_URL] = {"url", false},
    [ROUND_DNS] = {"dns", true},
    [ROUND_CONNECT] = {"connect", true},
    [ROUND_TLS] = {"tls", true}, /* certificates are renewed */
    [ROUND_TIMEOUT] = {"timeout", true},
    [ROUND_TOO_LARGE] = {"too_large", false},
    [ROUND_BROKEN] = {"broken", true},
    [ROUND_MEMORY] = {"memory", true},
    [ROUND_AUTH] = {"auth", true},
    [ROUND_HTTP_4XX] = {"http_4xx", false},
    [ROUND_HTTP_5XX] = {"http_5xx", true}, /* and 429 */
    [ROUND_HTTP_OTHER] = {"http_other", false},
    [ROUND_QUERY] = {"query", false},
    [ROUND_JSON] = {"json", false},
    [ROUND_SHAPE] = {"shape", false},
    [ROUND_SECRET] = {"secret", true}, /* a Secret is often created after the scorer */
    [ROUND_SERIES] = {"series_limit", false},
};

const char *round_error_word(enum round_error e)
{
    return table[e].word;
}

bool round_error_may_pass(enum round_error e)
{
    return table[e].may_pass;
}

static const struct http_rule scoring_rules[] = {
    {200, 299, HTTP_OK, ROUND_OK},
    {429, 429, HTTP_OK, ROUND_HTTP_5XX}, /* it passes like one */
    {400, 499, HTTP_OK, ROUND_HTTP_4XX},
    {500, 599, HTTP_OK, ROUND_HTTP_5XX},
    {0, 0, HTTP_URL, ROUND_URL},
    {0, 0, HTTP_DNS, ROUND_DNS},
    {0, 0, HTTP_CONNECT, ROUND_CONNECT},
    {0, 0, HTTP_FORBIDDEN, ROUND_CONNECT}, /* agents do not ask for it */
    {0, 0, HTTP_TLS, ROUND_TLS},
    {0, 0, HTTP_TIMEOUT, ROUND_TIMEOUT},
    {0, 0, HTTP_TOO_LARGE, ROUND_TOO_LARGE},
    {0, 0, HTTP_BROKEN, ROUND_BROKEN},
    {0, 0, HTTP_MEMORY, ROUND_MEMORY},
    {0, 0, HTTP_AUTH, ROUND_AUTH},
    {0, HTTP_STATUS_MAX, HTTP_ANY, ROUND_HTTP_OTHER}, /* 3xx; a redirect to another origin */
};

enum round_error round_error_of_answer(const struct http_response *a)
{
    return (enum round_error)HTTP_VERDICT(scoring_rules, a->status, a->error);
}

enum round_error round_error_because(char why[ROUND_REASON_BYTES], enum round_error e, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, ROUND_REASON_BYTES, fmt, ap);
    va_end(ap);
    return e;
}

enum round_error round_error_of_json(struct str body, const struct jr *j, const char *what,
                                     char why[ROUND_REASON_BYTES])
{
    struct jr whole;
    unsigned line, column;
    bool is_json;

    jr_init(&whole, body, j->flags);
    (void)jr_skip(&whole, NULL);
    is_json = jr_end(&whole);
    jr_position(body, j->error_at, &line, &column);
    return round_error_because(why, is_json ? ROUND_SHAPE : ROUND_JSON, "%s: line %u, column %u: %s",
                               is_json ? what : "response is not JSON", line, column, j->error);
}

/* ---- Rounds ---- */

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
    struct job reading;            /* reads `answer` into the result; meanwhile, nothing else uses these */
    bool is_over;                  /* cancelled meanwhile: the end of the job frees it */
    struct batch_builder *builder; /* NULL: no response is being read */
    struct buf answer;
    char content_type[128]; /* of it */
    unix_ms answered;
    struct round_result result;
};

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

WORD_TABLE(round_stage_word, enum round_stage, STAGE_SCORING + 1,
           {[STAGE_SOURCE] = "source", [STAGE_SCORING] = "scoring"});

static void source_free(struct source *s)
{
    s->ops->done(s);
    free(s);
}

static void round_free_sources(struct round *r)
{
    while (r->n_sources) {
        struct source *s = r->sources[--r->n_sources];

        loop_timer_clear(s->env->loop, &s->timer);
        atomic_store(&s->is_over, true);
        if (!s->is_working)
            source_free(s);
    }
}

static void round_drop(struct round *r)
{
    buf_done(&r->answer);
    (void)batch_builder_free(r->builder);
    (void)batch_unref(r->result.batch);
    free(r);
}

struct round *round_free(struct round *r)
{
    if (!r)
        return NULL;
    loop_timer_clear(r->rq.env->loop, &r->begin);
    r->call = http_cancel(r->call);
    round_free_sources(r);
    (void)credentials_free(r->credentials);
    http_share_done(&r->share);
    free(r->body);
    r->is_over = true;
    if (!r->builder)
        round_drop(r);
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
    struct round *r = CONTAINER_OF(j, struct round, reading);
    struct round_result *res = &r->result;

    res->error = answer_parse(buf_str(&r->answer), r->builder, r->rq.label_max, &res->answer, res->reason);
    if (res->error == ROUND_JSON)
        text_show_body(res->reason, sizeof(res->reason), r->content_type, buf_str(&r->answer));
    if (res->error != ROUND_OK)
        batch_abandon(r->builder);
    else
        batch_seal(r->builder, r->answered, &res->batch, &res->duplicates);
    buf_keep(&r->answer);
}

static void reading_end(struct job *j)
{
    struct round *r = CONTAINER_OF(j, struct round, reading);

    if (r->is_over) {
        round_drop(r);
        return;
    }
    *r->rq.builder = TAKE_PTR(r->builder);
    if (r->result.error != ROUND_OK)
        r->result.stage = STAGE_SCORING;
    r->done(r->arg, &r->result);
}

static void on_scores(void *arg, struct http_response *a)
{
    struct round *r = arg;
    struct round_result *res = &r->result;
    enum round_error e = round_error_of_answer(a);
    char reason[ROUND_REASON_BYTES];

    r->call = NULL;
    res->perform_s = a->seconds;
    res->received[STAGE_SCORING] = a->received;
    res->sent[STAGE_SCORING] = a->sent;
    if (e == ROUND_OK) {
        /* First, so that a round never holds its two largest pieces together. */
        round_free_sources(r);
        res->answered = loop_now(r->rq.env->loop);
        r->answered = loop_wall(r->rq.env->loop);
        r->builder = TAKE_PTR(*r->rq.builder);
        r->answer = buf_take(&a->body);
        memcpy(r->content_type, a->content_type, sizeof(r->content_type));
        worker_do(r->rq.env->worker, &r->reading, r->answer.n);
        return;
    }
    res->retry_after_ms = a->retry_after_ms;
    res->cause = a->cause;
    if (a->error == HTTP_OK)
        text_http_status(reason, sizeof(reason), a->status,
                         r->credentials ? r->credentials->shown
                                        : " without credentials (scoringEndpointAuthName is not set)",
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
    if (http_start(&r->call, r->rq.env->http, &q, on_scores, r) < 0)
        round_fail(r, STAGE_SCORING, ROUND_URL, "scoringEndpoint is not a valid URL");
    else
        r->result.performed = true;
}

static void source_on_timer(struct timer *t)
{
    struct source *s = CONTAINER_OF(t, struct source, timer);

    s->ops->on_timer(s);
}

static void source_run(struct job *j)
{
    struct source *s = CONTAINER_OF(j, struct source, job);

    s->ops->run(s);
}

static void source_ran(struct job *j)
{
    struct source *s = CONTAINER_OF(j, struct source, job);

    s->is_working = false;
    if (atomic_load(&s->is_over))
        source_free(s);
    else if (s->result->error == ROUND_OK) /* else the deadline has passed meanwhile */
        s->ops->ran(s);
}

/* Sources are fetched one after the other, each with its own token and range. The first failure fails the
 * round. */
static void round_next_source(struct round *r)
{
    const struct source_ops *ops;
    const struct summary_source *from;
    struct source *s;

    if (r->n_sources == r->rq.summary->n_sources) {
        ask_for_scores(r);
        return;
    }
    from = &r->rq.summary->sources[r->n_sources];
    ops = source_type_ops(from, r->rq.env);
    r->sources[r->n_sources++] = s = xcalloc(1, ops->size);
    *s = (struct source){.ops = ops,
                         .round = r,
                         .env = r->rq.env,
                         .from = *from,
                         .deadline = r->deadline,
                         .share = &r->share,
                         .result = &r->result,
                         .timer.fn = source_on_timer,
                         .job = {.run = source_run, .done = source_ran},
                         .end_ms = r->now.ms};
    if (s->end_ms > from->range_s * 1000) /* else the clock was never set */
        s->start_ms = s->end_ms - from->range_s * 1000;
    loop_timer_set(s->env->loop, &s->timer, loop_now(s->env->loop));
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
        .reading = {.run = reading_run, .done = reading_end},
        .result = {.retry_after_ms = -1},
    };
    http_trace_id(r->result.trace);
    round_put_body(r, STR("{\"data\":["));
    loop_timer_set(rq->env->loop, &r->begin, loop_now(rq->env->loop));
    return r;
}

/* ---- What sources share ---- */

void source_work(struct source *s, size_t bytes)
{
    s->is_working = true;
    worker_do(s->env->worker, &s->job, bytes);
}

static void source_set_error(struct source *s, enum round_error e, const char *reason)
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
    size_t sources = r->rq.summary->n_sources, n = 0;
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
