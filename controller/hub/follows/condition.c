/* Owns nothing: conditions live on the stack of who makes a status. Loop thread. */
#include "controller/hub/follows/condition.h"

#include "controller/hub/follows/sentences.h"
#include "controller/hub/observed/object.h"
#include "controller/kube/condition.h"
#include "exporter/base/alloc.h"
#include "exporter/base/text.h"

#include <stdarg.h>

static const char *const truth_words[] = {
    [TRUTH_UNKNOWN] = "Unknown", [TRUTH_TRUE] = "True", [TRUTH_FALSE] = "False"};

static void condition_put(struct condition *c, enum truth status, const char *reason, struct str message)
{
    c->status = status;
    /* The API server rejects a status with an empty reason. */
    text_line(c->reason, sizeof(c->reason), str_of(*reason ? reason : "Failing"));
    text_line(c->message, sizeof(c->message), message);
}

void condition_set_as(struct condition *c, enum truth status, const char *reason, const char *message)
{
    condition_put(c, status, reason, str_of(message));
}

void condition_set(struct condition *c, enum truth status, enum hub_reason reason, const char *message)
{
    condition_put(c, status, hub_reason_word(reason), str_of(message));
}

void PRINTF_LIKE(4, 5)
    condition_format(struct condition *c, enum truth status, enum hub_reason reason, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    condition_put(c, status, hub_reason_word(reason), str_of(text));
}

void condition_say_as(struct condition *c, enum truth status, const char *reason, const struct buf *sentence)
{
    condition_put(c, status, reason, buf_str(sentence));
}

void condition_say(struct condition *c, enum truth status, enum hub_reason reason, const struct buf *sentence)
{
    condition_put(c, status, hub_reason_word(reason), buf_str(sentence));
}

void condition_copy(struct condition *c, const struct condition *from)
{
    c->status = from->status;
    memcpy(c->reason, from->reason, sizeof(c->reason));
    memcpy(c->message, from->message, sizeof(c->message));
}

bool condition_resume(struct condition *c, const json_t *object)
{
    const json_t *value = kube_condition(kube_get(object, "status", NULL), c->type);
    const char *reason = kube_str(value, "reason", NULL), *message = kube_str(value, "message", NULL);
    int64_t generation;

    if (!reason || !message || !kube_int(value, &generation, "observedGeneration", NULL) ||
        generation != object_generation(object))
        return false;
    for (enum truth t = 0; t < ARRAY_SIZE(truth_words); t++)
        if (kube_condition_is(value, truth_words[t])) {
            condition_set_as(c, t, reason, message);
            return true;
        }
    return false;
}

bool condition_set_contested(struct condition *c, const struct contest *contest)
{
    BUF_AUTO(sentence, SENTENCE_BYTES);

    if (!contest->text)
        return false;
    sentence_contested(&sentence, contest->text, contest->others);
    condition_say(c, TRUTH_TRUE, REASON_WRITE_CONFLICT, &sentence);
    return true;
}

json_t *conditions_value(const struct condition *list, size_t n, const json_t *object, const json_t *sent,
                         unix_ms now)
{
    const json_t *status = kube_get(object, "status", NULL);
    json_t *values = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct kube_condition c = {.type = list[i].type,
                                         .status = truth_words[list[i].status],
                                         .reason = list[i].reason,
                                         .message = list[i].message,
                                         .generation = object_generation(object)};
        const char *since = kube_condition_since(status, &c) ?: kube_condition_since(sent, &c);

        json_array_append_new(values,
                              kube_condition_value(&c, since, list[i].since.ms ? list[i].since : now));
    }
    return values;
}
