/* Events for transitions of conditions. The progress of a roll-out is none, nor is what an earlier process
 * has seen. */
#include "controller/hub/state/status.h"

#include "controller/kube/condition.h"
#include "controller/kube/event.h"
#include "controller/kube/json.h"

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
