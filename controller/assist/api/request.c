#include "controller/assist/api/request.h"

#include "controller/assist/api/operation.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "exporter/base/utf8.h"
#include "exporter/base/worker.h"
#include "exporter/metric/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- Calls ---- */

/* On any thread: frees input and answer. */
static void call_clear(struct call *c)
{
    json_decref(TAKE_PTR(c->input));
    json_decref(TAKE_PTR(c->answer));
}

static void call_close(struct call *c)
{
    call_clear(c);
    if (c->later.item)
        c->later.free_items(c->later.arg);
    c->later.item = NULL;
}

void call_items_later(struct call *c, json_t *(*item)(void *arg, size_t i), size_t n,
                      void (*free_items)(void *arg), void *arg)
{
    c->later.item = item;
    c->later.n = n;
    c->later.free_items = free_items;
    c->later.arg = arg;
}

static int call_print_items(const struct call *c, struct buf *into)
{
    int r = buf_putc(into, '[');

    for (size_t i = 0; i < c->later.n && r == 0; i++) {
        json_auto_t *item = c->later.item(c->later.arg, i);

        r = i ? buf_putc(into, ',') : 0;
        r = r ?: kube_json_print(item, into);
    }
    return r ?: buf_putc(into, ']');
}

static int call_print(const struct call *c, struct buf *into)
{
    bool first = true;
    const char *name;
    json_t *value;
    int r;

    if (!c->later.item)
        return kube_json_print(c->answer, into);
    r = buf_putc(into, '{');
    json_object_foreach(c->answer, name, value)
    {
        r = r ?: buf_printf(into, "%s\"%s\":", first ? "" : ",", name);
        r = r ?: strcmp(name, "items") == 0 ? call_print_items(c, into) : kube_json_print(value, into);
        first = false;
    }
    return r ?: buf_putc(into, '}');
}

const char *call_text(const struct call *c, const char *name)
{
    const char *text = json_string_value(json_object_get(c->input, name));

    return text && *text ? text : NULL;
}

void call_done(struct call *c, json_t *answer)
{
    c->status = 200;
    c->answer = answer;
    c->ended(c);
}

void call_fail(struct call *c, unsigned status, json_t *more, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *detail = NULL;
    va_list ap;

    va_start(ap, fmt);
    detail = xvasprintf(fmt, ap);
    va_end(ap);
    c->status = status;
    c->answer = json_pack("{s:s%}", "detail", detail, utf8_valid_prefix(str_of(detail)));
    if (status == 503 || status == 504)
        (void)json_object_set_new(c->answer, "retryAfterSeconds", json_integer(CALL_RETRY_AFTER_S));
    if (more)
        (void)json_object_update_missing(c->answer, more);
    json_decref(more);
    c->ended(c);
}

/* ---- Lists ---- */

/* Of the bytes of an answer, these are for the members around the items. */
enum { ENVELOPE_BYTES = 400, MIN_BYTES = 512 };

/* A number of the input; `otherwise` without. */
static size_t listing_number(const struct call *c, const char *name, size_t otherwise)
{
    const json_t *v = json_object_get(c->input, name);

    return json_is_integer(v) && json_integer_value(v) >= 0 ? (size_t)json_integer_value(v) : otherwise;
}

void listing_init(struct listing *l, const struct call *c)
{
    size_t max = c->max_bytes;

    *l = (struct listing){.items = json_array(),
                          .max_bytes = max == SIZE_MAX ? max : size_max(max, MIN_BYTES) - ENVELOPE_BYTES,
                          .from = listing_number(c, "offset", 0),
                          .limit = listing_number(c, "limit", SIZE_MAX)};
}

bool listing_wants(struct listing *l)
{
    size_t at = l->total++;

    return !l->is_full && at >= l->from && json_array_size(l->items) < l->limit;
}

void listing_add(struct listing *l, json_t *item)
{
    size_t n = l->max_bytes == SIZE_MAX ? 0 : json_dumpb(item, NULL, 0, JSON_COMPACT) + 1;

    if (l->bytes + n > l->max_bytes) {
        l->is_full = true;
        json_decref(item);
    } else {
        l->bytes += n;
        (void)json_array_append_new(l->items, item);
    }
}

json_t *listing_end(struct listing *l)
{
    size_t shown = json_array_size(l->items), next = l->from + shown;
    json_t *o = json_pack("{s:o,s:I,s:I}", "items", TAKE_PTR(l->items), "total", (json_int_t)l->total,
                          "shown", (json_int_t)shown);
    char note[200];

    if (next >= l->total)
        return o;
    if (shown == 0 && l->is_full)
        (void)snprintf(note, sizeof(note), "element %zu of %zu alone is too long: ask with a larger maxBytes",
                       next, l->total);
    else
        (void)snprintf(note, sizeof(note), "%zu of %zu shown%s: ask again with offset %zu for more", shown,
                       l->total, l->is_full ? ", cut at maxBytes" : "", next);
    (void)json_object_set_new(o, "next", json_integer((json_int_t)next));
    (void)json_object_set_new(o, "note", json_string(note));
    return o;
}

void list_note(json_t *list, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)json_array_append_new(list, json_vsprintf(fmt, ap));
    va_end(ap);
}

json_t *list_head(const json_t *list, size_t n)
{
    json_t *head = json_array();

    for (size_t i = 0; i < n && i < json_array_size(list); i++)
        (void)json_array_append(head, json_array_get(list, i));
    return head;
}

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
    struct sent_body *s = xmalloc(sizeof(*s));

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

    if (kube_json_print(o, &text) < 0)
        httpd_reply_text(reply, 500, STR("the answer is too large\n"));
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
        httpd_reply_text(reply, 500, STR("the answer is too large\n"));
    else
        reply_take(reply, r->http_status ? r->http_status : r->call.status, &r->body);
    if (reply->status == 503)
        reply->retry_after = CALL_RETRY_AFTER_S;
    if (r->deferred)
        httpd_finish(reply);
    json_decref(r->id);
    call_close(&r->call);
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
    struct api_request *r = xcalloc(1, sizeof(*r));

    r->reply = reply;
    r->body.max = API_MAX_ANSWER;
    r->job.run = request_write;
    r->job.done = request_done;
    r->r = -EFBIG; /* unless it is printed */
    r->call.max_bytes = SIZE_MAX;
    r->call.ended = request_on_ended;
    return r;
}

void api_request_start(const struct api_operation *op, struct api_request *r, json_t *input)
{
    r->operation = op;
    r->call.input = input;
    r->starting = true;
    op->o->run(op->api->arg, &r->call);
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
