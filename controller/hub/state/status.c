#include "controller/hub/state/status.h"

#include "controller/kube/event.h"
#include "controller/kube/json.h"
#include "controller/kube/writer.h"
#include "exporter/base/clock.h"
#include "exporter/base/text.h"
#include "exporter/ui/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- Comparing statuses ---- */

void last_status_done(struct last_status *s)
{
    kube_object_done(&s->status);
    kube_object_done(&s->finalizer);
    free(s->key);
    json_decref(s->sending);
    json_decref(s->before);
    json_decref(s->sent);
    json_decref(s->result);
    *s = (struct last_status){0};
}

bool status_would_change(const json_t *status, const json_t *patch)
{
    const char *name;
    const json_t *wanted;

    json_object_foreach((json_t *)(uintptr_t)patch, name, wanted)
    {
        const json_t *found = json_object_get(status, name);

        if (json_is_null(wanted) ? found != NULL : !found || !json_equal(found, wanted))
            return true;
    }
    return false;
}

/* A copy without these members, and without this one of each condition. */
static json_t *status_without(const json_t *status, const char *const *members, const char *of_condition)
{
    json_t *copy = json_deep_copy(status), *condition;
    size_t i;

    for (const char *const *m = members; *m; m++)
        (void)json_object_del(copy, *m);
    json_array_foreach(kube_list(copy, "conditions", NULL), i, condition)
    {
        (void)json_object_del(condition, of_condition);
    }
    return copy;
}

static bool status_equal_without(const json_t *a, const json_t *b, const char *const *members,
                                 const char *of_condition)
{
    json_auto_t *x = status_without(a, members, of_condition), *y = status_without(b, members, of_condition);

    return x && y && json_equal(x, y);
}

bool status_equal_but_times(const json_t *a, const json_t *b)
{
    static const char *const none[] = {NULL};

    return status_equal_without(a, b, none, "lastTransitionTime");
}

bool status_equal_but_counts(const json_t *a, const json_t *b)
{
    static const char *const counts[] = {"clusters", "failingClusters", "masks", "summariesBytes", NULL};

    return status_equal_without(a, b, counts, "message");
}

/* ---- Conditions and members ---- */

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
    (void)json_object_set_new(status, member, value);
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

/* ---- Events ----
 *
 * Events for transitions of conditions. The progress of a roll-out is none, nor is what an earlier process
 * has seen. */

static const struct {
    const char *type;
    bool from_unknown; /* Unknown → True is a transition, too */
} sources[] = {
    {"Healthy", true},          {"ConfigSynced", true}, {"Valid", false},
    {"UniqueScoreName", false}, {"Scoring", false},     {"Ready", true},
};

/* Reasons that come and go without anyone's doing. */
static bool event_is_transient(const json_t *condition)
{
    static const char *const reasons[] = {"Progressing", "NotSelected", "NotNeeded", "Deleting"};
    const char *reason = cstr(kube_str(condition, "reason", NULL));

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool event_is_due(const json_t *was, const json_t *is, bool from_unknown)
{
    if (event_is_transient(is))
        return false;
    if (kube_condition_is(is, "False"))
        return !kube_condition_is(was, "False");
    if (!kube_condition_is(is, "True") || event_is_transient(was))
        return false;
    return kube_condition_is(was, "False") || (from_unknown && kube_condition_is(was, "Unknown"));
}

static bool event_same_text(const json_t *a, const json_t *b)
{
    return strcmp(cstr(kube_str(a, "reason", NULL)), cstr(kube_str(b, "reason", NULL))) == 0 &&
           strcmp(cstr(kube_str(a, "message", NULL)), cstr(kube_str(b, "message", NULL))) == 0;
}

static void event_send(struct kube_events *e, const json_t *object, const char *kind, const json_t *condition)
{
    kube_events_add(e, &(const struct kube_event){.about = object,
                                                  .api_version = HUB_API,
                                                  .kind = kind,
                                                  .warning = kube_condition_is(condition, "False"),
                                                  .reason = cstr(kube_str(condition, "reason", NULL)),
                                                  .action = "Reconcile",
                                                  .note = cstr(kube_str(condition, "message", NULL))});
}

void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                   const json_t *after)
{
    const json_t *news[ARRAY_SIZE(sources)];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const json_t *is = kube_condition(after, sources[i].type);
        size_t k = 0;

        if (!event_is_due(kube_condition(before, sources[i].type), is, sources[i].from_unknown))
            continue;
        while (k < n && !event_same_text(news[k], is)) /* Ready often repeats another condition */
            k++;
        if (k == n)
            event_send(e, object, kind, news[n++] = is);
    }
}
