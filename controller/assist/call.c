/* Owns nothing: a call is embedded in its owner, which is told once that it has ended. On the loop; what
 * reads arguments also on the worker that fills in an answer. */
#include "controller/assist/call.h"

#include "controller/kube/json.h"
#include "exporter/base/doc.h"
#include "exporter/base/utf8.h"

#include <stdio.h>

const char *call_text(const struct call *c, const char *name)
{
    const char *text = kube_str(c->input, name, NULL);

    return text && *text ? text : NULL;
}

static void call_end(struct call *c, unsigned status, json_t *answer)
{
    c->status = status;
    c->answer = answer;
    if (!c->hub)
        c->ended(c);
}

void call_done(struct call *c, json_t *answer)
{
    call_end(c, 200, answer);
}

void call_refuse(struct call *c, const struct api_error *error, json_t *more)
{
    bool is_busy = error->status == 503 || error->status == 504;
    json_t *answer = json_object();

    kube_set(answer, "detail", json_stringn(error->detail, utf8_valid_prefix(str_of(error->detail))));
    if (*error->field)
        kube_set_str(answer, "field", error->field);
    if (is_busy)
        kube_set_int(answer, "retryAfterSeconds", CALL_RETRY_AFTER_S);
    (void)json_object_update_missing(answer, more);
    json_decref(more);
    call_end(c, error->status, answer);
}

void call_fail(struct call *c, unsigned status, const char *field, const char *fmt, ...)
{
    struct api_error error = {.status = status};
    va_list args;

    api_error_at(&error, "%s", cstr(field));
    va_start(args, fmt);
    (void)vsnprintf(error.detail, sizeof(error.detail), fmt, args);
    va_end(args);
    call_refuse(c, &error, NULL);
}

bool call_deadline(struct call *c, int64_t *ret_ms)
{
    const char *text = kube_str(c->input, "deadline", NULL);

    if (!text || (duration_parse(str_of(text), ret_ms) && *ret_ms >= 10 && *ret_ms <= 600 * 1000))
        return true;
    call_fail(c, 422, "deadline", "deadline: expected a duration of 10 ms to 600 s, such as \"5s\"");
    return false;
}
