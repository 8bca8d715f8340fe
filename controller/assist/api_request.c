/* Owns each request until it is answered, and what its arguments take of the memory for all. On the loop,
 * but for the two jobs that say so. No request is answered twice, and each is, also when the optimizer
 * ends. */
#include "controller/assist/api_request.h"

#include "controller/assist/api_table.h"
#include "controller/assist/listing.h"
#include "controller/assist/schema.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    /* Memory for the arguments of one request, and of all that are under way. The largest that the schema
     * of a plan allows, 10,000 clusters with 64 Policies each, takes 290 MB. */
    REQUEST_MAX_BYTES = 320 << 20,
    REQUESTS_MAX_BYTES = 640 << 20,
};

void api_reply_json(struct httpd_reply *reply, unsigned status, struct buf *text)
{
    httpd_reply_take(reply, text);
    reply->status = status;
    reply->content_type = "application/json";
}

bool api_body_is_json(const struct httpd_request *rq)
{
    struct str type = {rq->content_type, strcspn(rq->content_type, "; \t")};

    return str_eq_nocase(type, STR("application/json")) && !*rq->content_encoding;
}

int api_call_print(const struct call *c, struct buf *into)
{
    kube_json_print(c->answer, into);
    if (buf_failed(into) < 0 || !c->has_items || c->status != 200)
        return buf_failed(into);
    buf_truncate(into, into->n - 1); /* the brace: the answer has other members */
    buf_puts(into, ",\"items\":[");
    buf_put_str(into, buf_str(&c->items));
    buf_puts(into, "]}");
    return buf_failed(into);
}

static void request_defer(struct api_request *r)
{
    if (!r->is_deferred)
        httpd_defer(r->reply);
    r->is_deferred = true;
}

/* Large trees take time to free: call it on the worker where possible. */
static void request_release(struct api_request *r)
{
    struct call *c = &r->call;

    c->hub = snapshot_free(c->hub);
    json_decref(TAKE_PTR(c->input));
    (void)atomic_fetch_sub(&r->api->argument_bytes, c->input_bytes);
    c->input_bytes = 0;
    json_decref(TAKE_PTR(c->answer));
    buf_done(&c->items);
}

/* Worker's thread, or the loop's. */
static void request_write(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, writing);
    struct call *c = &r->call;

    if (c->hub)
        listing_fill(c);
    r->printed = r->by->print(r, &r->body);
    request_release(r);
}

static void request_on_written(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, writing);
    struct httpd_reply *reply = r->reply;
    struct call *c = &r->call;
    char code[16];

    if (r->printed == -ECANCELED)
        httpd_reply_text(reply, c->status = 503, STR("the optimizer is shutting down\n"));
    else if (r->printed < 0)
        httpd_reply_text(reply, c->status = 500, STR("the answer is too large\n"));
    else
        api_reply_json(reply, r->by->answers_200 ? 200 : c->status, &r->body);
    if (reply->status == 503)
        reply->retry_after = CALL_RETRY_AFTER_S;
    (void)snprintf(code, sizeof(code), "%u", c->status);
    if (r->op)
        metric_add(r->api->o.metrics, METRIC_OPTIMIZER_REQUESTS, LV(code, r->by->name, r->op->o->name), 1);
    if (r->is_deferred)
        httpd_finish(reply);
    request_release(r);
    buf_done(&r->query);
    buf_done(&r->id);
    buf_done(&r->body);
    free(r);
}

static void request_on_ended(struct call *c)
{
    struct api_request *r = CONTAINER_OF(c, struct api_request, call);

    if (r->has_returned)
        worker_start(r->api->worker, &r->writing);
}

/* After run(), or instead of it. */
void api_request_return(struct api_request *r)
{
    r->has_returned = true;
    if (!r->call.status)
        request_defer(r);
    else if (r->is_deferred)
        worker_start(r->api->worker, &r->writing);
    else {
        request_write(&r->writing);
        request_on_written(&r->writing);
    }
}

/* Worker's thread, or the loop's. */
static void request_read(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, reading);
    const json_t *schema = r->by->schema(r->op);
    size_t taken = atomic_load(&r->api->argument_bytes), all = REQUESTS_MAX_BYTES;
    size_t room = taken < all ? all - taken : 0, max = size_min(room, REQUEST_MAX_BYTES), bytes = 0;
    int e = schema_read(&r->call.input, schema, r->text, r->by->arguments, max, &bytes, &r->api_error);

    r->has_read = true;
    if (e == 0) {
        r->call.input_bytes = bytes;
        (void)atomic_fetch_add(&r->api->argument_bytes, bytes);
    } else if (e == -EFBIG && max < REQUEST_MAX_BYTES) {
        (void)api_error_set(&r->api_error, 503,
                            "the requests under way leave no memory for this one; try again");
    } else if (e == -EFBIG) {
        (void)api_error_set(&r->api_error, 413, "the request would take more than %d MiB of memory",
                            REQUEST_MAX_BYTES >> 20);
    }
}

static void request_call(struct api_request *r)
{
    json_t *input = r->call.input;
    const json_t *max_bytes = json_object_get(input, "maxBytes"); /* of a tool */

    if (max_bytes)
        r->call.max_bytes = (size_t)json_integer_value(max_bytes);
    (void)json_object_del(input, "maxBytes");
    if (r->forces_dry_run)
        (void)json_object_set_new(input, "dryRun", json_true());
    r->op->o->run(r->api->o.arg, &r->call);
}

static void request_on_read(struct job *j)
{
    struct api_request *r = CONTAINER_OF(j, struct api_request, reading);

    if (!r->has_read || r->api->is_ending) {
        request_on_written(&r->writing); /* as if writing had been cancelled */
        return;
    }
    if (r->api_error.status)
        call_refuse(&r->call, &r->api_error, NULL);
    else
        request_call(r);
    api_request_return(r);
}

struct api_request *api_request_new(struct api *api, const struct api_operation *op,
                                    const struct api_interface *by, struct httpd_reply *reply)
{
    struct api_request *r = xmalloc(sizeof(*r));

    *r = (struct api_request){
        .call = {.max_bytes = SIZE_MAX,
                 .ended = request_on_ended,
                 .items.max = API_MAX_ANSWER,
                 .operation = op ? op->o : NULL},
        .op = op,
        .by = by,
        .reading = {.run = request_read, .done = request_on_read},
        .writing = {.run = request_write, .done = request_on_written},
        .api = api,
        .reply = reply,
        .query.max = API_MAX_BODY,
        .body.max = API_MAX_ANSWER,
        .printed = -ECANCELED,
        .id.max = API_MAX_BODY,
    };
    return r;
}

void api_request_start(struct api_request *r, struct str text)
{
    r->text = text;
    if (worker_takes(r->api->worker, text.n))
        request_defer(r);
    worker_do(r->api->worker, &r->reading, text.n);
}

static int answer_print(const struct api_request *r, struct buf *into)
{
    return api_call_print(&r->call, into);
}

void api_answer(struct api *a, struct httpd_reply *reply, json_t *answer)
{
    static const struct api_interface plain = {.name = "rest", .print = answer_print};
    struct api_request *r = api_request_new(a, NULL, &plain, reply);

    r->has_returned = true;
    request_defer(r);
    call_done(&r->call, answer);
}
