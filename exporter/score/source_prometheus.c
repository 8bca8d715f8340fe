/* The Prometheus query API as a source. Queries are sent one after the other, so that a scorer of many
 * queries puts no more load on a small Prometheus than one of a single query. The scoring API gets slices
 * of the responses' bodies, which the source owns until it is freed. On the loop; a large response is read
 * by the worker, as a job of its own. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"
#include "exporter/score/credentials.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/round_error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>

enum {
    GET_MAX_BYTES = 2000,
    URL_MAX_BYTES = 1 << 20,
    FORM_MAX_BYTES = SOURCE_QUERY_BYTES * 3 + 256, /* each byte of a query may become three */
};

struct prometheus {
    struct source source;
    struct http_call *call;
    struct credentials *credentials;
    struct buf form;    /* of the running request */
    bool posts;         /* the running request is a POST */
    bool refuses_posts; /* the server, in this round */
    struct str form_part;
    struct buf kept[SUMMARY_MAX_QUERIES]; /* the parts are slices of these */
};

/* ---- The job: reads a response ---- */

struct prometheus_job {
    struct source_job base;
    /* Input */
    struct buf body;
    char content_type[128];
    /* Output */
    struct prom_answer answer; /* its series are a slice of its own buffer, or of the body */
    enum round_error error;
    char reason[ROUND_REASON_BYTES];
};

static void prometheus_run(struct source_job *base)
{
    struct prometheus_job *j = CONTAINER_OF(base, struct prometheus_job, base);

    j->error = prom_answer_parse(buf_str(&j->body), &j->answer, j->reason);
    if (j->error == ROUND_JSON)
        text_show_body(j->reason, sizeof(j->reason), j->content_type, buf_str(&j->body));
}

static void prometheus_job_free(struct source_job *base)
{
    struct prometheus_job *j = CONTAINER_OF(base, struct prometheus_job, base);

    buf_keep(&j->body);
    buf_keep(&j->answer.made);
    free(j);
}

static void prometheus_read(struct prometheus *p, struct http_response *a)
{
    struct prometheus_job *j = xcalloc(1, sizeof(*j));

    j->body = buf_take(&a->body);
    memcpy(j->content_type, a->content_type, sizeof(j->content_type));
    source_work(&p->source, &j->base, j->body.n);
}

/* ---- Queries ---- */

static void prometheus_done(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);

    p->call = http_cancel(p->call);
    for (size_t i = 0; i < s->n; i++)
        buf_keep(&p->kept[i]);
    (void)credentials_free(p->credentials);
    buf_done(&p->form);
}

static void prometheus_on_response(void *arg, struct http_response *a);

static int prometheus_put_form(struct prometheus *p, struct str query)
{
    const struct source *s = &p->source;
    long long start = s->start_ms, end = s->end_ms;

    buf_clear(&p->form);
    buf_puts(&p->form, "query=");
    buf_put_url(&p->form, query);
    buf_printf(&p->form, "&start=%lld.%03lld", start / 1000, start % 1000);
    buf_printf(&p->form, "&end=%lld.%03lld", end / 1000, end % 1000);
    buf_printf(&p->form, "&step=%lld", (long long)s->rq.from->step_s);
    return buf_failed(&p->form);
}

/* Sends the form: by GET, or by POST if proxies might reject the length of the URL, and the server has not
 * refused that. -EINVAL, -EFBIG. */
static int prometheus_send(struct prometheus *p)
{
    const struct source *s = &p->source;
    const char *endpoint = s->rq.from->endpoint ? s->rq.from->endpoint : s->rq.env->otlp_url;
    struct http_request rq = {
        .max_answer = s->rq.env->max_answer,
        .timeout_ms = mono_diff(loop_now(s->rq.env->loop), s->rq.deadline),
        .share = s->rq.share,
        .trace = s->rq.trace,
    };
    BUF_AUTO(url, URL_MAX_BYTES);

    credentials_apply(p->credentials, &rq);
    buf_puts(&url, endpoint);
    p->posts = url.n + p->form.n > GET_MAX_BYTES && !p->refuses_posts;
    if (!p->posts) {
        buf_putc(&url, strchr(endpoint, '?') ? '&' : '?');
        buf_put_str(&url, buf_str(&p->form));
    } else {
        p->form_part = buf_str(&p->form);
        rq.body = &p->form_part;
        rq.body_parts = 1;
        rq.content_type = "application/x-www-form-urlencoded";
    }
    buf_putc(&url, '\0');
    if (buf_failed(&url) < 0)
        return buf_failed(&url);
    rq.url = url.p;
    return http_start(&p->call, s->rq.env->http, &rq, prometheus_on_response, p);
}

/* Sends the next query, or ends the fetch. */
static void prometheus_ask(struct prometheus *p)
{
    struct source *s = &p->source;
    BUF_AUTO(query, SOURCE_QUERY_BYTES);

    if (!source_next_query(s, &query))
        source_end(s);
    else if (!mono_before(loop_now(s->rq.env->loop), s->rq.deadline))
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were sent");
    else if (prometheus_put_form(p, buf_str(&query)) < 0 || prometheus_send(p) < 0)
        source_fail(s, ROUND_URL, "sourceEndpoint is not a valid URL");
}

static void prometheus_ran(struct source *s, struct source_job *base)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);
    struct prometheus_job *j = CONTAINER_OF(base, struct prometheus_job, base);
    struct prom_answer *a = &j->answer;

    if (j->error != ROUND_OK) {
        source_fail(s, j->error, j->reason);
        return;
    }
    if (s->outcome.warnings == 0)
        memcpy(s->outcome.warning, a->warning, sizeof(s->outcome.warning));
    s->outcome.warnings += a->warnings;
    s->outcome.series += a->n_series;
    s->parts[s->n] = a->series;
    p->kept[s->n++] = buf_take(a->made.n ? &a->made : &j->body);
    prometheus_ask(p);
}

/* Some proxies let only GET through, and then it depends on their limits whether a long URL passes. */
static bool prometheus_refuses_post(const struct prometheus *p, const struct http_response *a)
{
    return p->posts && a->error == HTTP_OK && (a->status == 403 || a->status == 405 || a->status == 501);
}

/* What the query engine says, if it says something; else the status and the body. The status comes with what
 * was sent for credentials where these are in question. */
static void prometheus_explain(struct prometheus *p, const struct http_response *a, enum round_error e)
{
    struct source_outcome *o = &p->source.outcome;
    const char *with =
        p->credentials ? p->credentials->shown : " without credentials (sourceEndpointAuthName is not set)";
    char text[ROUND_REASON_BYTES] = "";

    /* 503: a query that timed out, or an overloaded engine. Either may pass. */
    if (prom_answer_error(buf_str(&a->body), text) && e != ROUND_HTTP_5XX)
        o->error = ROUND_QUERY;
    if (*text && a->status != 401 && a->status != 403)
        memcpy(o->reason, text, sizeof(o->reason));
    else
        text_http_status(o->reason, sizeof(o->reason), a->status, with,
                         *text ? str_of(text) : buf_str(&a->body));
}

static void prometheus_on_response(void *arg, struct http_response *a)
{
    struct prometheus *p = arg;
    struct source *s = &p->source;
    struct source_outcome *o = &s->outcome;
    enum round_error e = round_error_of_response(a);

    p->call = NULL;
    o->seconds += a->seconds;
    o->received += a->received;
    o->sent += a->sent;
    if (prometheus_refuses_post(p, a) && mono_before(loop_now(s->rq.env->loop), s->rq.deadline)) {
        p->refuses_posts = true;
        if (prometheus_send(p) == 0)
            return;
    }
    if (e == ROUND_OK) {
        prometheus_read(p, a);
        return;
    }
    o->error = e;
    o->cause = a->cause;
    o->retry_after_ms = a->retry_after_ms;
    if (a->error == HTTP_OK)
        prometheus_explain(p, a, e);
    else
        (void)round_error_because(o->reason, e, "%s", a->reason);
    source_end(s);
}

/* Starts the first query. */
static void prometheus_on_timer(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);
    const struct secret_ref *auth = &s->rq.from->auth;
    char why[CREDENTIALS_WHY_BYTES];

    buf_init(&p->form, FORM_MAX_BYTES);
    if (credentials_read(&p->credentials, s->rq.env->secrets, auth->name, auth->key, why) < 0)
        source_fail(s, ROUND_SECRET, why);
    else
        prometheus_ask(p);
}

const struct source_ops source_prometheus = {
    .size = sizeof(struct prometheus),
    .on_timer = prometheus_on_timer,
    .done = prometheus_done,
    .run = prometheus_run,
    .ran = prometheus_ran,
    .job_free = prometheus_job_free,
};
