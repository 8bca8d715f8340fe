#include "controller/hub/state/status_conditions.h"

#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const truth_words[] = {
    [TRUTH_UNKNOWN] = "Unknown", [TRUTH_TRUE] = "True", [TRUTH_FALSE] = "False"};

void condition_set(struct status_condition *c, enum truth status, const char *reason, const char *fmt, ...)
{
    char text[2 * sizeof(c->message)];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    c->status = status;
    /* The API server refuses an empty one, and with it the whole status. */
    text_line(c->reason, sizeof(c->reason), str_of(*reason ? reason : "Failing"));
    text_line(c->message, sizeof(c->message), n < 0 ? STR("") : str_of(text));
}

const json_t *condition_find(const json_t *status, const char *type)
{
    const json_t *value;
    size_t i;

    json_array_foreach(kube_list(status, "conditions", NULL), i,
                       value) if (strcmp(cstr(kube_str(value, "type", NULL)), type) == 0) return value;
    return NULL;
}

json_int_t status_generation(const json_t *object)
{
    int64_t n = 0;

    (void)kube_int(object, &n, "metadata", "generation", NULL);
    return n;
}

static bool truth_read(const char *word, enum truth *ret)
{
    for (enum truth t = 0; word && t < ARRAY_SIZE(truth_words); t++)
        if (strcmp(word, truth_words[t]) == 0) {
            *ret = t;
            return true;
        }
    return false;
}

bool condition_resume(struct status_condition *c, const json_t *object)
{
    const json_t *value = condition_find(kube_get(object, "status", NULL), c->type);
    const char *reason = kube_str(value, "reason", NULL), *message = kube_str(value, "message", NULL);
    int64_t generation;
    enum truth status;

    if (!reason || !message || !truth_read(kube_str(value, "status", NULL), &status) ||
        !kube_int(value, &generation, "observedGeneration", NULL) || generation != status_generation(object))
        return false;
    condition_set(c, status, reason, "%s", message);
    return true;
}

/* Since when the condition has had its status, by one account; NULL when that does not say. */
static const char *since(const struct status_condition *c, const json_t *status)
{
    const json_t *value = condition_find(status, c->type);
    enum truth was;

    if (!truth_read(kube_str(value, "status", NULL), &was) || was != c->status)
        return NULL;
    return kube_str(value, "lastTransitionTime", NULL);
}

static json_t *condition_value(const struct status_condition *c, const char *since_when,
                               json_int_t generation)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "type", c->type, "status", truth_words[c->status],
                     "reason", c->reason, "message", c->message, "lastTransitionTime", since_when,
                     "observedGeneration", generation);
}

json_t *conditions_value(const struct status_condition *list, size_t n, const json_t *object,
                         const struct written *written, unix_ms now)
{
    json_auto_t *values = json_array();
    char time[32];

    unix_ms_format(now, time);
    memcpy(time + strlen("2026-11-21T06:23:01"), "Z", sizeof("Z"));
    for (size_t i = 0; i < n; i++) {
        const struct status_condition *c = &list[i];
        const char *when = since(c, kube_get(object, "status", NULL)) ?: since(c, written->sent) ?: time;
        if (json_array_append_new(values, condition_value(c, when, status_generation(object))) < 0)
            return NULL;
    }
    return TAKE_PTR(values);
}

json_t *status_line(const char *text)
{
    char line[1024];

    text_line(line, sizeof(line), str_of(text));
    return json_string(line);
}

static int null_what_went(json_t *value, json_t *before)
{
    const char *name;
    json_t *was;
    int r = 0;

    if (!json_is_object(value))
        return 0;
    json_object_foreach(before, name, was)
    {
        json_t *is = json_object_get(value, name);
        if (is)
            r = null_what_went(is, was);
        else if (!json_is_null(was))
            r = json_object_set_new(value, name, json_null());
        if (r < 0)
            return -ENOMEM;
    }
    return 0;
}

int status_put(json_t *status, const char *member, json_t *value, const json_t *object)
{
    if (json_object_set_new(status, member, value) < 0)
        return -ENOMEM;
    return null_what_went(value, kube_get(object, "status", member, NULL));
}

int status_drop(json_t *status, const char *member, const json_t *object)
{
    json_t *was = kube_get(object, "status", member, NULL);

    if (!was || json_is_null(was))
        return 0;
    return json_object_set_new(status, member, json_null()) < 0 ? -ENOMEM : 0;
}

const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

void condition_distributed(struct status_condition *c, size_t n)
{
    condition_set(c, TRUTH_TRUE, "Distributed", "on %s%zu cluster%s", n == 1 ? "" : "all ", n, plural(n));
}

void condition_failing(struct status_condition *c, const char *head, size_t n, size_t of, const char *tail,
                       const char *name, const char *why)
{
    condition_set(c, TRUTH_FALSE, "ClustersFailing", "%s%zu of %zu clusters%s%s%s%s%s", head, n, of, tail,
                  name ? ": " : "", cstr(name), name && *why ? ": " : "", name ? why : "");
}
