#include "exporter/models/call.h"

#include "exporter/base/buf.h"
#include "exporter/base/inflate.h"
#include "exporter/base/text.h"
#include "exporter/models/last_call.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    ANSWER_MAX_BYTES = 256 << 20,
    WAITING_BODY_MAX_BYTES = 8 << 20, /* of a decoded body that is kept while the model waits */
    PATIENCE_SECONDS = 30,            /* a call that has waited longer is not scored: its caller is gone */
    COMPRESSION = 16,                 /* how much larger than its compressed form a body is, about */
    RETRY_SECONDS = 5,
};

static double call_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double call_seconds(const struct call *c)
{
    return call_now() - c->began;
}

struct call *call_new(const struct model *m, void *state, size_t endpoint, const struct httpd_request *rq,
                      struct httpd_reply *reply)
{
    struct call *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->model = m;
    c->state = state;
    c->rq = rq;
    c->reply = reply;
    c->scoring.endpoint = endpoint;
    c->scoring.authorization = str_of(rq->authorization);
    c->began = call_now();
    buf_init(&c->body, m->begin ? WAITING_BODY_MAX_BYTES : CALL_MAX_BODY_BYTES);
    buf_init(&c->answer, ANSWER_MAX_BYTES);
    buf_init(&c->shown, LAST_CALL_MAX_BYTES);
    return c;
}

struct call *call_free(struct call *c)
{
    if (!c)
        return NULL;
    request_abandon(&c->scoring.request);
    buf_done(&c->body);
    buf_done(&c->answer);
    buf_done(&c->shown);
    free(c);
    return NULL;
}

static bool is_compressed(const struct call *c)
{
    return *c->rq->content_encoding && !str_eq_nocase(str_of(c->rq->content_encoding), STR("identity"));
}

/* Decodes the body. */
static int call_read_body(struct call *c, struct str *ret)
{
    static const char *const known[] = {"gzip", "x-gzip", "deflate"};
    struct str coding = str_of(c->rq->content_encoding);
    CLEANUP(cleanup_free) char *why = NULL;
    bool is_known = false;
    int r;

    *ret = c->rq->body;
    if (!is_compressed(c))
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        is_known |= str_eq_nocase(coding, str_of(known[i]));
    if (!is_known) {
        (void)snprintf(c->scoring.why, sizeof(c->scoring.why),
                       "unsupported Content-Encoding; supported are gzip and deflate");
        return -EPROTONOSUPPORT;
    }
    r = inflate_body(c->rq->body, &c->body, &why);
    *ret = buf_str(&c->body);
    if (r == -EFBIG)
        (void)snprintf(c->scoring.why, sizeof(c->scoring.why), "the decoded body is larger than %zu MiB",
                       c->body.max >> 20);
    else if (r < 0)
        (void)snprintf(c->scoring.why, sizeof(c->scoring.why), "the body %s", why ? why : "is damaged");
    return r == -EFBIG ? -E2BIG : r == -EBADMSG ? -EINVAL : r;
}

/* Ends reading and writing; the first error counts. */
static int call_conclude(struct call *c, int r)
{
    struct scoring *s = &c->scoring;
    int read = request_end(&s->request), written = results_end(&s->results);

    if (read < 0) {
        (void)snprintf(s->why, sizeof(s->why), "%s", s->request.why);
        return read;
    }
    return r ?: written;
}

static void call_run(struct job *j)
{
    struct call *c = CONTAINER_OF(j, struct call, job);
    struct scoring *s = &c->scoring;
    struct str body = STR("{\"data\":[]}");

    c->ran = true;
    if (call_seconds(c) > PATIENCE_SECONDS) {
        c->result = -ETIME;
        return;
    }
    if (!c->model->takes_any_body)
        c->result = call_read_body(c, &body);
    if (c->result < 0)
        return;
    request_begin(&s->request, body);
    results_begin(&s->results, &c->answer);
    if (!c->model->score)
        return;
    c->result = call_conclude(c, c->model->score(c->state, s));
    if (c->result == 0 && last_call_show(body, buf_str(&c->answer), &c->shown) < 0)
        buf_done(&c->shown);
}

static void call_ended(struct job *j)
{
    struct call *c = CONTAINER_OF(j, struct call, job);

    if (!c->ran)
        c->result = -ECANCELED;
    if (c->result == 0 && c->model->begin)
        c->model->begin(c->state, &c->scoring);
    else
        c->done(c);
}

void scoring_done(struct scoring *s, int r)
{
    struct call *c = CONTAINER_OF(s, struct call, scoring);
    struct str body = s->request.body;

    c->result = call_conclude(c, r);
    if (c->result == 0 && last_call_show(body, buf_str(&c->answer), &c->shown) < 0)
        buf_done(&c->shown);
    c->done(c);
}

void call_start(struct call *c, struct worker *w)
{
    size_t n = c->rq->body.n;

    c->job = (struct job){.run = call_run, .done = call_ended};
    worker_do(w, &c->job, is_compressed(c) ? n * COMPRESSION : n);
}

/* ---- The reply ---- */

static unsigned call_status(const struct call *c, const char **ret_why)
{
    const char *own = *c->scoring.why ? c->scoring.why : NULL;

    switch (c->result) {
    case 0:
        return 200;
    case -EINVAL:
        *ret_why = own ? own : "invalid request";
        return 400;
    case -E2BIG:
        *ret_why = own;
        return 413;
    case -EPROTONOSUPPORT:
        *ret_why = own;
        return 415;
    case -EIO:
        *ret_why = own ? own : "the model's service failed";
        return 502;
    case -ETIME:
        *ret_why = "too many calls: this one waited too long";
        return 503;
    case -ECANCELED:
        *ret_why = "shutting down";
        return 503;
    case -EFBIG:
        *ret_why = "the answer would be larger than 256 MiB";
        return 500;
    default:
        *ret_why = "out of memory";
        return 503;
    }
}

static void call_release(void *arg)
{
    (void)call_free(arg);
}

void call_reply(struct call *c)
{
    struct httpd_reply *reply = c->reply;
    const char *why = "";

    c->status = call_status(c, &why);
    if (c->status != 200) {
        struct out o;

        if (why != c->scoring.why)
            text_line(c->scoring.why, sizeof(c->scoring.why), str_of(why));
        buf_truncate(&c->answer, 0);
        o = out_begin(&c->answer);
        out_puts(&o, "{");
        member_text(&o, "error", c->scoring.why);
        out_puts(&o, "}");
        if (out_end(&o) < 0)
            buf_truncate(&c->answer, 0);
    }
    c->part = (struct iovec){c->answer.p, c->answer.n};
    reply->status = c->status;
    reply->content_type = "application/json";
    reply->retry_after = c->status == 503 ? RETRY_SECONDS : 0;
    reply->parts = &c->part;
    reply->n_parts = c->answer.n ? 1 : 0;
    reply->release = call_release;
    reply->arg = c;
}
