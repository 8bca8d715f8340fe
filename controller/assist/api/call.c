#include "controller/assist/api/call.h"

#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"

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
    json_t *error = json_object();
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(&detail, fmt, ap);
    va_end(ap);
    if (r < 0 ||
        json_object_set_new(error, "detail",
                            json_stringn(cstr(detail.p), utf8_valid_prefix(buf_str(&detail)))) < 0 ||
        (more && json_object_update_missing(error, more) < 0)) {
        json_decref(error);
        error = NULL;
    }
    json_decref(more);
    c->status = error ? status : 500;
    c->answer = error;
    c->ended(c);
}
