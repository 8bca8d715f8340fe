#include "controller/assist/api/call.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"

#include <errno.h>

enum { DETAIL_BYTES = 64 << 10 };

void call_run(struct call *c, const struct operation *o, void *arg)
{
    o->run(arg, c);
}

void call_clear(struct call *c)
{
    json_decref(TAKE_PTR(c->input));
    json_decref(TAKE_PTR(c->answer));
}

void call_end(struct call *c)
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

        r = !item ? -ENOMEM : i ? buf_putc(into, ',') : 0;
        r = r ?: kube_json_print(item, into);
    }
    return r ?: buf_putc(into, ']');
}

int call_print(const struct call *c, struct buf *into)
{
    bool first = true;
    const char *name;
    json_t *value;
    int r;

    if (!c->answer || !c->later.item)
        return c->answer ? kube_json_print(c->answer, into) : -ENOMEM;
    r = buf_putc(into, '{');
    json_object_foreach(c->answer, name, value)
    {
        r = r ?: buf_printf(into, "%s\"%s\":", first ? "" : ",", name);
        r = r ?: strcmp(name, "items") == 0 ? call_print_items(c, into) : kube_json_print(value, into);
        first = false;
    }
    return r ?: buf_putc(into, '}');
}

const json_t *call_input(const struct call *c)
{
    return c->input;
}

size_t call_max_bytes(const struct call *c)
{
    return c->max_bytes;
}

void call_done(struct call *c, json_t *answer)
{
    c->status = answer ? 200 : 500;
    c->answer = answer;
    c->ended(c);
}

void call_fail(struct call *c, unsigned status, json_t *more, const char *fmt, ...)
{
    BUF_AUTO(detail, DETAIL_BYTES);
    bool may_retry = status == 503 || status == 504;
    json_t *error = json_object();
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(&detail, fmt, ap);
    va_end(ap);
    if (r < 0 ||
        json_object_set_new(error, "detail",
                            json_stringn(cstr(detail.p), utf8_valid_prefix(buf_str(&detail)))) < 0 ||
        (may_retry &&
         json_object_set_new(error, "retryAfterSeconds", json_integer(CALL_RETRY_AFTER_S)) < 0) ||
        (more && json_object_update_missing(error, more) < 0)) {
        json_decref(error);
        error = NULL;
    }
    json_decref(more);
    c->status = error ? status : 500;
    c->answer = error;
    c->ended(c);
}
