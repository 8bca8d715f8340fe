/* One HTTP call after the other, as an agent would make them. */
#include "controller/check/check_internal.h"

#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"

#include <errno.h>

struct call_wait {
    struct http_answer *into;
    bool ended;
};

static void check_on_answer(void *arg, struct http_answer *a)
{
    struct call_wait *w = arg;
    struct buf body = buf_take(&a->body);

    *w->into = *a;
    w->into->body = body;
    w->ended = true;
}

int check_call(struct check *c, const struct check_request *rq, struct http_answer *ret)
{
    const struct http_request q = {
        .url = rq->url,
        .content_type = rq->body.n ? "application/json" : NULL,
        .bearer = rq->token,
        .body = &rq->body,
        .body_parts = rq->body.n > 0,
        .max_answer = rq->max_answer,
        .timeout_ms = c->options->timeout_ms ?: scorer_timeout_ms(&c->summary, &limits_default),
        .tls = &c->tls,
    };
    struct call_wait wait = {.into = ret};
    struct http_call *call = NULL;
    int r = http_start(&call, c->http, &q, check_on_answer, &wait);

    while (r == 0 && !wait.ended)
        r = loop_turn(c->loop, 1000);
    if (r < 0 && !wait.ended)
        (void)http_cancel(call);
    if (r == 0 && ret->error == HTTP_MEMORY)
        r = -ENOMEM;
    if (r < 0 && wait.ended)
        buf_done(&ret->body);
    return r;
}

void check_describe(const struct http_answer *a, char out[FINDINGS_TEXT_BYTES])
{
    if (a->error != HTTP_OK)
        text_line(out, FINDINGS_TEXT_BYTES, str_of(a->reason));
    else
        text_http_status(out, FINDINGS_TEXT_BYTES, a->status,
                         a->status / 100 == 2 ? STR("") : buf_str(&a->body));
}

static bool call_is_json(const char *content_type)
{
    size_t n = strcspn(content_type, ";");
    struct str type = str_trim((struct str){content_type, n});

    return str_eq_nocase(type, STR("application/json")) ||
           (type.n > 5 && str_eq_nocase((struct str){type.p + type.n - 5, 5}, STR("+json")));
}

void check_take_answer(struct check *c, struct call_row *row, const struct http_answer *a)
{
    row->status = a->status;
    row->seconds = a->seconds;
    check_describe(a, row->text);
    if (a->error == HTTP_OK && a->status / 100 == 2 && a->body.n && !call_is_json(a->content_type))
        findings_add(c->findings, RULE_CONTENT_TYPE, "%s%s", *a->content_type ? "it is " : "there is none",
                     a->content_type);
}
