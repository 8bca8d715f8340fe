/* A request's way from the call to the answer. */
#include "controller/assist/api/api_internal.h"
#include "controller/assist/api/call.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* An answer of fewer values and bytes of text is printed within about a millisecond. */
enum { SMALL_VALUES = 5000, SMALL_BYTES = 256 << 10 };

/* ---- Answers ---- */

/* Counts values and bytes until they are too many; false then. */
static bool json_is_small(const json_t *o, long *values, long *bytes)
{
    const char *name;
    json_t *part;

    if (--*values < 0)
        return false;
    if (json_is_string(o))
        return (*bytes -= (long)json_string_length(o)) >= 0;
    for (size_t i = 0; i < json_array_size(o); i++)
        if (!json_is_small(json_array_get(o, i), values, bytes))
            return false;
    json_object_foreach((json_t *)(uintptr_t)o, name,
                        part) if (!json_is_small(part, values, bytes)) return false;
    return true;
}

/* A body that the server sends, with the array that its parts are in. */
struct sent_body {
    struct iovec part;
    struct buf text;
};

static void sent_body_free(void *arg)
{
    struct sent_body *s = arg;

    buf_done(&s->text);
    free(s);
}

/* Has the reply send the text, which is taken. */
static void reply_take(struct httpd_reply *reply, unsigned status, struct buf *text)
{
    struct sent_body *s = malloc(sizeof(*s));

    if (!s) {
        buf_done(text);
        httpd_reply_text(reply, 500, STR("out of memory\n"));
        return;
    }
    *s = (struct sent_body){.text = buf_take(text)};
    s->part = (struct iovec){.iov_base = s->text.p, .iov_len = s->text.n};
    reply->status = status;
    reply->content_type = "application/json";
    reply->parts = &s->part;
    reply->n_parts = 1;
    reply->release = sent_body_free;
    reply->arg = s;
}

void api_reply_json(struct httpd_reply *reply, unsigned status, json_t *o)
{
    BUF_AUTO(text, API_MAX_ANSWER);

    if (!o || kube_json_print(o, &text) < 0)
        httpd_reply_text(reply, 500, STR("out of memory\n"));
    else
        reply_take(reply, status, &text);
    json_decref(o);
}

/* ---- Life ---- */

/* Worker's thread, or the loop's. */
static void request_write(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, job);

    r->r = r->print(r, &r->body);
    /* Freeing a large tree takes time, too. */
    call_clear(&r->call);
}

static void request_done(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, job);
    struct httpd_reply *reply = r->reply;

    if (r->r < 0)
        httpd_reply_text(reply, 500,
                         r->r == -EFBIG ? STR("the answer is too large\n") : STR("out of memory\n"));
    else
        reply_take(reply, r->http_status ? r->http_status : r->call.status, &r->body);
    if (reply->status == 503)
        reply->retry_after = CALL_RETRY_AFTER_S;
    if (r->deferred)
        httpd_finish(reply);
    json_decref(r->id);
    call_end(&r->call);
    buf_done(&r->body);
    free(r);
}

static void request_answer(struct api_request *r, const struct api *a)
{
    long values = SMALL_VALUES, bytes = SMALL_BYTES;
    bool is_small = r->call.later.n == 0 && json_is_small(r->call.answer, &values, &bytes);

    if (!is_small && r->starting) {
        httpd_defer(r->reply);
        r->deferred = true;
    }
    if (!is_small) {
        worker_start(a->worker, &r->job);
        return;
    }
    request_write(&r->job);
    request_done(&r->job);
}

static void request_on_ended(struct call *c)
{
    struct api_request *r = CONTAINER_OF(c, struct api_request, call);
    char code[16];

    (void)snprintf(code, sizeof(code), "%u", c->status);
    metric_add(r->operation->api->metrics, METRIC_OPTIMIZER_REQUESTS,
               LV(code, r->interface, r->operation->o->name), 1);
    r->ended = true;
    if (!r->starting)
        request_answer(r, r->operation->api);
}

struct api_request *api_request_new(struct httpd_reply *reply)
{
    struct api_request *r = calloc(1, sizeof(*r));

    if (!r) {
        httpd_reply_text(reply, 500, STR("out of memory\n"));
        return NULL;
    }
    r->reply = reply;
    r->body.max = API_MAX_ANSWER;
    r->job.run = request_write;
    r->job.done = request_done;
    r->r = -ENOMEM; /* unless it is printed */
    r->call.max_bytes = SIZE_MAX;
    r->call.ended = request_on_ended;
    return r;
}

void api_request_start(const struct api_operation *op, struct api_request *r, json_t *input)
{
    r->operation = op;
    r->call.input = input;
    r->starting = true;
    call_run(&r->call, op->o, op->api->arg);
    if (r->ended) {
        request_answer(r, op->api);
        return;
    }
    r->starting = false;
    r->deferred = true;
    httpd_defer(r->reply);
}

int api_request_print(struct api_request *r, struct buf *into)
{
    return call_print(&r->call, into);
}

void api_answer(const struct api *a, struct httpd_reply *reply, json_t *answer)
{
    struct api_request *r = api_request_new(reply);

    if (!r) {
        json_decref(answer);
        return;
    }
    r->call.answer = answer;
    r->call.status = 200;
    r->print = api_request_print;
    r->starting = true;
    request_answer(r, a);
}

/* ---- Bodies ---- */

static bool json_is_deeper(const json_t *o, unsigned levels)
{
    const char *name;
    json_t *part;

    if (!json_is_object(o) && !json_is_array(o))
        return false;
    if (levels == 0)
        return true;
    for (size_t i = 0; i < json_array_size(o); i++)
        if (json_is_deeper(json_array_get(o, i), levels - 1))
            return true;
    json_object_foreach((json_t *)(uintptr_t)o, name, part) if (json_is_deeper(part, levels - 1)) return true;
    return false;
}

int api_parse(json_t **ret, struct str body, char why[256])
{
    json_t *o = NULL;
    int r = kube_json_parse(&o, body, why);

    if (r == 0 && json_is_deeper(o, API_MAX_DEPTH)) {
        (void)snprintf(why, 256, "more than %d levels of JSON", API_MAX_DEPTH);
        json_decref(o);
        return -EINVAL;
    }
    if (r == 0)
        *ret = o;
    return r;
}

bool api_media_type_is(const char *content_type, const char *type)
{
    size_t n = strcspn(content_type, "; \t");

    return n == strlen(type) && strncasecmp(content_type, type, n) == 0;
}
