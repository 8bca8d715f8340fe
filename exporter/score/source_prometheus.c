/* The Prometheus query API as a source. Queries are sent one after the other, so that a scorer of many
 * queries puts no more load on a small Prometheus than one of a single query. The scoring API gets slices of
 * the responses' bodies. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/score/credentials.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <stdio.h>

enum {
    GET_MAX_BYTES = 2000,
    URL_MAX_BYTES = 1 << 20,
    QUERY_MAX_BYTES = 1 << 20,
    FORM_MAX_BYTES = QUERY_MAX_BYTES * 3 + 256, /* each byte of a query may become three */
};

struct prometheus;

struct fetched {
    struct buf body;
    struct prom_answer answer;
};

/* Reading a response: on the loop, or beside it, when nothing here belongs to the fetch. */
struct checking {
    struct job job;
    struct prometheus *fetch; /* NULL if it was cancelled */
    struct fetched fetched;
    enum round_error error;
    char reason[ROUND_REASON_BYTES];
};

struct prometheus {
    struct source source;
    const struct source_env *env;
    struct summary_source from; /* its strings are the summary's */
    mono_ms deadline;
    struct http_share *share;
    source_done_fn done;
    void *arg;
    struct timer late; /* ends a fetch that failed inside start() */
    struct http_call *call;
    struct checking *checking; /* in progress */
    struct credentials *credentials;
    struct buf form; /* of the running request */
    struct str form_part;
    size_t query_at;
    int64_t start_ms, end_ms; /* Unix time, the same for all queries */
    struct fetched fetched[SUMMARY_MAX_QUERIES];
    struct str parts[SUMMARY_MAX_QUERIES];
    size_t n;
    struct source_result result;
};

static void prometheus_free(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);

    loop_timer_clear(p->env->loop, &p->late);
    p->call = http_cancel(p->call);
    if (p->checking)
        p->checking->fetch = NULL;
    for (size_t i = 0; i < p->n; i++) {
        buf_done(&p->fetched[i].body);
        prom_answer_done(&p->fetched[i].answer);
    }
    (void)credentials_free(p->credentials);
    buf_done(&p->form);
    free(p);
}

static void prometheus_finish(struct prometheus *p)
{
    p->result.parts = p->parts;
    p->result.n_parts = p->n;
    p->done(p->arg, &p->result);
}

static void prometheus_on_late_timer(struct timer *t)
{
    prometheus_finish(CONTAINER_OF(t, struct prometheus, late));
}

static int put_arguments(struct buf *b, const struct prometheus *p, struct str query)
{
    int r = query.n > QUERY_MAX_BYTES ? -EFBIG : buf_puts(b, "query=");

    r = r ?: buf_put_url(b, query);
    return r
               ?: buf_printf(b, "&start=%lld.%03lld&end=%lld.%03lld&step=%lld",
                             (long long)(p->start_ms / 1000), (long long)(p->start_ms % 1000),
                             (long long)(p->end_ms / 1000), (long long)(p->end_ms % 1000),
                             (long long)p->from.step_s);
}

static void got_answer(void *arg, struct http_answer *a);

/* By GET, or by form POST if proxies might reject the length of the URL. */
static int send_query(struct prometheus *p, struct str query)
{
    const char *endpoint = p->from.endpoint;
    struct http_request r = {
        .max_answer = p->env->max_answer,
        .timeout_ms = mono_diff(loop_now(p->env->loop), p->deadline),
        .share = p->share,
    };
    BUF_AUTO(url, URL_MAX_BYTES);
    int e;

    if (r.timeout_ms <= 0)
        return -ETIME;
    credentials_apply(p->credentials, &r);
    p->form.n = 0;
    e = put_arguments(&p->form, p, query);
    e = e ?: buf_puts(&url, endpoint);
    if (e == 0 && url.n + p->form.n <= GET_MAX_BYTES) {
        e = buf_putc(&url, strchr(endpoint, '?') ? '&' : '?') ?: buf_put_str(&url, buf_str(&p->form));
    } else if (e == 0) {
        p->form_part = buf_str(&p->form);
        r.body = &p->form_part;
        r.body_parts = 1;
        r.content_type = "application/x-www-form-urlencoded";
    }
    e = e ?: buf_putc(&url, '\0');
    r.url = url.p;
    return e == 0 ? http_start(&p->call, p->env->http, &r, got_answer, p) : e;
}

static void set_error(struct prometheus *p, enum round_error e, const char *reason)
{
    p->result.error = e;
    (void)snprintf(p->result.reason, sizeof(p->result.reason), "%s", reason);
}

/* False if there are no more queries, or on an error, which is in the result. */
static bool send_next_query(struct prometheus *p)
{
    struct str query = summary_next_query(str_of(p->from.query), &p->query_at);
    BUF_AUTO(text, QUERY_MAX_BYTES);
    int r;

    if (query.n == 0)
        return false;
    r = summary_put_query(&text, query, str_of(p->env->cluster_name));
    if (r == -EINVAL) {
        set_error(
            p, ROUND_QUERY,
            "sourceQuery: a string between backticks cannot contain the name of this cluster, which has one");
        return false;
    }
    r = r ?: send_query(p, buf_str(&text));
    if (r == -ETIME)
        set_error(p, ROUND_TIMEOUT, "timed out before all queries were sent");
    else if (r == -EINVAL)
        set_error(p, ROUND_URL, "sourceEndpoint is not a valid URL");
    else if (r == -EFBIG)
        set_error(p, ROUND_QUERY, "query longer than 1 MiB");
    else if (r < 0)
        set_error(p, ROUND_MEMORY, "out of memory");
    return r == 0;
}

static void read_failed_answer(struct prometheus *p, enum round_error e, const struct http_answer *a)
{
    p->result.error = e;
    p->result.retry_after_ms = a->retry_after_ms;
    if (a->error != HTTP_OK)
        (void)snprintf(p->result.reason, sizeof(p->result.reason), "%s", a->reason);
    else if (prom_answer_error(buf_str(&a->body), p->result.reason))
        /* 503: a query that timed out, or an overloaded engine. Either may pass. */
        p->result.error = e == ROUND_HTTP_5XX ? e : ROUND_QUERY;
    else
        text_http_status(p->result.reason, sizeof(p->result.reason), a->status, buf_str(&a->body));
}

static void go_on(struct prometheus *p)
{
    if (p->result.error != ROUND_OK || !send_next_query(p))
        prometheus_finish(p);
}

static void checking_run(struct job *j)
{
    struct checking *c = CONTAINER_OF(j, struct checking, job);

    c->error = prom_answer_parse(buf_str(&c->fetched.body), &c->fetched.answer, c->reason);
    if (c->error != ROUND_OK)
        buf_done(&c->fetched.body);
}

static void checking_free(struct checking *c)
{
    buf_done(&c->fetched.body);
    prom_answer_done(&c->fetched.answer);
    free(c);
}

static void checking_done(struct job *j)
{
    struct checking *c = CONTAINER_OF(j, struct checking, job);
    struct prometheus *p = c->fetch;
    const struct prom_answer *a = &c->fetched.answer;

    if (!p) {
        checking_free(c);
        return;
    }
    p->checking = NULL;
    if (c->error != ROUND_OK) {
        set_error(p, c->error, c->reason);
        checking_free(c);
    } else {
        if (p->result.warnings == 0)
            memcpy(p->result.warning, a->warning, sizeof(p->result.warning));
        p->result.warnings += a->warnings;
        p->result.series += a->n_series;
        p->parts[p->n] = a->series;
        p->fetched[p->n++] = c->fetched;
        free(c);
    }
    go_on(p);
}

static void read_good_answer(struct prometheus *p, struct http_answer *a)
{
    struct checking *c = xcalloc(1, sizeof(*c));

    *c = (struct checking){.job = {.run = checking_run, .done = checking_done}, .fetch = p};
    c->fetched.body = buf_take(&a->body);
    p->checking = c;
    worker_do(p->env->worker, &c->job, c->fetched.body.n);
}

static void got_answer(void *arg, struct http_answer *a)
{
    struct prometheus *p = arg;
    enum round_error e = round_error_of_answer(a);

    p->call = NULL;
    p->result.seconds += a->seconds;
    p->result.received += a->received;
    p->result.sent += a->sent;
    if (e == ROUND_OK) {
        read_good_answer(p, a);
        return;
    }
    read_failed_answer(p, e, a);
    prometheus_finish(p);
}

static bool prometheus_read_secret(struct prometheus *p)
{
    const struct secret_ref *auth = &p->from.auth;
    char why[256];

    if (credentials_read(&p->credentials, p->env->secrets, auth->name, auth->key, why) == 0)
        return true;
    set_error(p, ROUND_SECRET, why);
    return false;
}

static struct source *prometheus_start(const struct source_request *rq, source_done_fn done, void *arg)
{
    struct prometheus *p = xcalloc(1, sizeof(*p));

    *p = (struct prometheus){
        .source = {&source_prometheus},
        .env = rq->env,
        .from = summary_source(rq->summary, rq->index),
        .deadline = rq->deadline,
        .share = rq->share,
        .done = done,
        .arg = arg,
        .late = {.fn = prometheus_on_late_timer},
        .end_ms = rq->now.ms,
        .result = {.retry_after_ms = -1},
    };
    if (!p->from.endpoint)
        p->from.endpoint = (char *)rq->env->otlp_url;
    p->start_ms = p->end_ms - p->from.range_s * 1000;
    if (p->start_ms < 0) /* the clock was never set */
        p->start_ms = 0;
    buf_init(&p->form, FORM_MAX_BYTES);
    if (!prometheus_read_secret(p) || !send_next_query(p))
        loop_timer_set(rq->env->loop, &p->late, loop_now(rq->env->loop));
    return &p->source;
}

const struct source_ops source_prometheus = {.start = prometheus_start, .free = prometheus_free};
