#include "controller/hub/state/status_conditions.h"

#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "exporter/base/clock.h"
#include "exporter/base/text.h"
#include "exporter/ui/members.h"

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
    /* The API server rejects a status with an empty reason. */
    text_line(c->reason, sizeof(c->reason), str_of(*reason ? reason : "Failing"));
    text_line(c->message, sizeof(c->message), n < 0 ? STR("") : str_of(text));
}

json_int_t status_generation(const json_t *object)
{
    int64_t n = 0;

    (void)kube_int(object, &n, "metadata", "generation", NULL);
    return n;
}

static bool condition_read_truth(const char *word, enum truth *ret)
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
    const json_t *value = kube_condition(kube_get(object, "status", NULL), c->type);
    const char *reason = kube_str(value, "reason", NULL), *message = kube_str(value, "message", NULL);
    int64_t generation;
    enum truth status;

    if (!reason || !message || !condition_read_truth(kube_str(value, "status", NULL), &status) ||
        !kube_int(value, &generation, "observedGeneration", NULL) || generation != status_generation(object))
        return false;
    condition_set(c, status, reason, "%s", message);
    return true;
}

json_t *conditions_value(const struct status_condition *list, size_t n, const json_t *object,
                         const struct last_status *written, unix_ms now)
{
    const json_t *status = kube_get(object, "status", NULL);
    json_auto_t *values = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct kube_condition c = {.type = list[i].type,
                                         .status = truth_words[list[i].status],
                                         .reason = list[i].reason,
                                         .message = list[i].message,
                                         .generation = status_generation(object)};
        const char *since = kube_condition_since(status, &c) ?: kube_condition_since(written->sent, &c);

        if (json_array_append_new(values, kube_condition_value(&c, since, now)) < 0)
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

static int status_null_removed(json_t *value, json_t *before)
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
            r = status_null_removed(is, was);
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
    return status_null_removed(value, kube_get(object, "status", member, NULL));
}

int status_drop(json_t *status, const char *member, const json_t *object)
{
    json_t *was = kube_get(object, "status", member, NULL);

    if (!was || json_is_null(was))
        return 0;
    return json_object_set_new(status, member, json_null()) < 0 ? -ENOMEM : 0;
}

const char *plural_s(size_t n)
{
    return n == 1 ? "" : "s";
}

void condition_distributed(struct status_condition *c, size_t n)
{
    condition_set(c, TRUTH_TRUE, "Distributed", "distributed to %s%zu cluster%s", n == 1 ? "" : "all ", n,
                  plural_s(n));
}

void condition_clusters(struct status_condition *c, const char *reason, const char *what, size_t n, size_t of,
                        const char *name, const char *why)
{
    condition_set(c, TRUTH_FALSE, reason, "%s %zu of %zu clusters%s%s%s%s", what, n, of, name ? ": " : "",
                  cstr(name), name && *why ? ": " : "", name ? why : "");
}

const char *cluster_unconfirmed_reason(const struct hub_cluster *c)
{
    return c->unavailable ? "the cluster is not available" : "the work agent has not applied it yet";
}

void condition_unconfirmed(struct status_condition *c, size_t n, size_t of, const struct hub_cluster *named)
{
    condition_clusters(c, "Progressing", "ManifestWork not yet applied on", n, of, named ? named->name : NULL,
                       named ? cluster_unconfirmed_reason(named) : "");
}
