/* The Prometheus query API as a source. Queries are sent one after the other, so that a scorer of many
 * queries puts no more load on a small Prometheus than one of a single query. The scoring API gets slices of
 * the responses' bodies. */
#include "exporter/base/buf.h"
#include "exporter/base/text.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/source.h"

#include <errno.h>
#include <stdio.h>

enum {
    GET_MAX_BYTES = 2000,
    URL_MAX_BYTES = 1 << 20,
    FORM_MAX_BYTES = SOURCE_QUERY_BYTES * 3 + 256, /* each byte of a query may become three */
};

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
    struct source source; /* its timer starts the first query */
    struct http_call *call;
    struct checking *checking; /* in progress */
    struct credentials *credentials;
    struct buf form; /* of the running request */
    struct str form_part;
    struct fetched fetched[SUMMARY_MAX_QUERIES];
};

static void fetched_done(struct fetched *f)
{
    buf_done(&f->body);
    prom_answer_done(&f->answer);
}

static void prometheus_free(struct source *s)
{
    struct prometheus *p = CONTAINER_OF(s, struct prometheus, source);

    loop_timer_clear(s->env->loop, &s->timer);
    p->call = http_cancel(p->call);
    if (p->checking)
        p->checking->fetch = NULL;
    for (size_t i = 0; i < s->n; i++)
        fetched_done(&p->fetched[i]);
    (void)credentials_free(p->credentials);
    buf_done(&p->form);
    free(p);
}

static int put_arguments(struct buf *b, const struct source *s, struct str query)
{
    long long start = s->start_ms, end = s->end_ms;

    return buf_puts(b, "query=")
               ?: buf_put_url(b, query)
               ?: buf_printf(b, "&start=%lld.%03lld&end=%lld.%03lld&step=%lld", start / 1000, start % 1000,
                             end / 1000, end % 1000, (long long)s->from.step_s);
}

static void got_answer(void *arg, struct http_answer *a);

/* By GET, or by form POST if proxies might reject the length of the URL. -EINVAL, -EFBIG. */
static int send_query(struct prometheus *p, struct str query)
{
    const struct source *s = &p->source;
    const char *endpoint = s->from.endpoint ? s->from.endpoint : s->env->otlp_url;
    struct http_request r = {
        .max_answer = s->env->max_answer,
        .timeout_ms = mono_diff(loop_now(s->env->loop), s->deadline),
        .share = s->share,
    };
    BUF_AUTO(url, URL_MAX_BYTES);
    int e;

    credentials_apply(p->credentials, &r);
    p->form.n = 0;
    e = put_arguments(&p->form, s, query) ?: buf_puts(&url, endpoint);
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
    return e ?: http_start(&p->call, s->env->http, &r, got_answer, p);
}

/* Sends the next query, or ends the fetch. */
static void prometheus_ask(struct prometheus *p)
{
    struct source *s = &p->source;
    BUF_AUTO(query, SOURCE_QUERY_BYTES);
    int r;

    if (!source_next_query(s, &query)) {
        source_end(s);
        return;
    }
    if (!mono_before(loop_now(s->env->loop), s->deadline)) {
        source_fail(s, ROUND_TIMEOUT, "timed out before all queries were sent");
        return;
    }
    r = send_query(p, buf_str(&query));
    if (r < 0)
        source_fail(s, r == -EINVAL ? ROUND_URL : ROUND_MEMORY,
                    r == -EINVAL ? "sourceEndpoint is not a valid URL" : "out of memory");
}

static void read_failed_answer(struct source_result *res, enum round_error e, const struct http_answer *a)
{
    res->error = e;
    res->retry_after_ms = a->retry_after_ms;
    if (a->error != HTTP_OK)
        (void)snprintf(res->reason, sizeof(res->reason), "%s", a->reason);
    else if (prom_answer_error(buf_str(&a->body), res->reason))
        /* 503: a query that timed out, or an overloaded engine. Either may pass. */
        res->error = e == ROUND_HTTP_5XX ? e : ROUND_QUERY;
    else
        text_http_status(res->reason, sizeof(res->reason), a->status, buf_str(&a->body));
}

static void checking_run(struct job *j)
{
    struct checking *c = CONTAINER_OF(j, struct checking, job);

    c->error = prom_answer_parse(buf_str(&c->fetched.body), &c->fetched.answer, c->reason);
    if (c->error != ROUND_OK)
        buf_done(&c->fetched.body);
}

static void checking_done(struct job *j)
{
    struct checking *c = CONTAINER_OF(j, struct checking, job);
    const struct prom_answer *a = &c->fetched.answer;
    struct prometheus *p = c->fetch;
    struct source *s = p ? &p->source : NULL;

    if (p)
        p->checking = NULL;
    if (p && c->error == ROUND_OK) {
        if (s->result.warnings == 0)
            memcpy(s->result.warning, a->warning, sizeof(s->result.warning));
        s->result.warnings += a->warnings;
        s->result.series += a->n_series;
        s->parts[s->n] = a->series;
        p->fetched[s->n++] = c->fetched;
        c->fetched = (struct fetched){.body.max = 0};
        prometheus_ask(p);
    } else if (p) {
        source_fail(s, c->error, c->reason);
    }
    fetched_done(&c->fetched);
    free(c);
}

static void got_answer(void *arg, struct http_answer *a)
{
    struct prometheus *p = arg;
    struct source *s = &p->source;
    enum round_error e = round_error_of_answer(a);
    struct checking *c;

    p->call = NULL;
    s->result.seconds += a->seconds;
    s->result.received += a->received;
    s->result.sent += a->sent;
    if (e != ROUND_OK) {
        read_failed_answer(&s->result, e, a);
        source_end(s);
        return;
    }
    p->checking = c = xcalloc(1, sizeof(*c));
    *c = (struct checking){.job = {.run = checking_run, .done = checking_done}, .fetch = p};
    c->fetched.body = buf_take(&a->body);
    worker_do(s->env->worker, &c->job, c->fetched.body.n);
}

static void prometheus_on_timer(struct timer *t)
{
    struct prometheus *p = CONTAINER_OF(t, struct prometheus, source.timer);
    struct source *s = &p->source;
    char why[256];

    if (credentials_read(&p->credentials, s->env->secrets, s->from.auth.name, s->from.auth.key, why) < 0)
        source_fail(s, ROUND_SECRET, why);
    else
        prometheus_ask(p);
}

static struct source *prometheus_start(const struct source_request *rq, source_done_fn done, void *arg)
{
    struct prometheus *p = xcalloc(1, sizeof(*p));

    source_init(&p->source, &source_prometheus, rq, done, arg, prometheus_on_timer);
    buf_init(&p->form, FORM_MAX_BYTES);
    return &p->source;
}

const struct source_ops source_prometheus = {.start = prometheus_start, .free = prometheus_free};
