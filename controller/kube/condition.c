/* Reads and makes conditions. Owns nothing: what it returns is borrowed, or a new reference. Any thread. */
#include "controller/kube/condition.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/text.h"

json_t *kube_condition(const json_t *status, const char *type)
{
    json_t *condition;
    size_t i;

    json_array_foreach(kube_list(status, "conditions", NULL), i, condition)
    {
        if (strcmp(cstr(kube_str(condition, "type", NULL)), type) == 0)
            return condition;
    }
    return NULL;
}

bool kube_condition_is(const json_t *condition, const char *status)
{
    return strcmp(cstr(kube_str(condition, "status", NULL)), status) == 0;
}

void kube_condition_why(const json_t *condition, char *ret, size_t size)
{
    text_line(ret, size, kube_text(condition, "message", NULL));
    if (!*ret)
        text_line(ret, size, kube_text(condition, "reason", NULL));
}

const char *kube_condition_since(const json_t *status, const struct kube_condition *c)
{
    const json_t *condition = kube_condition(status, c->type);

    return kube_condition_is(condition, c->status) ? kube_str(condition, "lastTransitionTime", NULL) : NULL;
}

json_t *kube_condition_value(const struct kube_condition *c, const char *since, unix_ms now)
{
    json_t *value = json_object();
    char time[KUBE_TIME_BYTES];

    kube_time_format(now, time);
    kube_set_str(value, "type", c->type);
    kube_set_str(value, "status", c->status);
    kube_set_str(value, "reason", c->reason);
    kube_set_str(value, "message", c->message);
    kube_set_str(value, "lastTransitionTime", since ? since : time);
    if (c->generation)
        kube_set_int(value, "observedGeneration", c->generation);
    return value;
}
