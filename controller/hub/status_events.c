/* Events for what changes in conditions: a fleet that is rolled out is no news, nor is what is seen again after a restart. */
#include "controller/hub/status_conditions.h"

static const struct {
    const char *type;
    bool from_unknown; /* that it has turned out well is worth telling even when nothing was wrong before */
} told[] = {
    {"Healthy", true}, {"ConfigSynced", true}, {"Valid", false}, {"UniqueScoreName", false}, {"Ready", true},
};

/* Reasons of conditions that come and go by themselves, as clusters and scorers do. */
static bool passing(const json_t *condition)
{
    static const char *const reasons[] = {"Progressing", "NotSelected", "NotNeeded", "Deleting"};
    const char *reason = cstr(kube_str(condition, "reason", NULL));

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool has_status(const json_t *condition, const char *status)
{
    return strcmp(cstr(kube_str(condition, "status", NULL)), status) == 0;
}

static bool worth_telling(const json_t *was, const json_t *is, bool from_unknown)
{
    if (passing(is))
        return false;
    if (has_status(is, "False"))
        return !has_status(was, "False");
    if (!has_status(is, "True") || passing(was))
        return false;
    return has_status(was, "False") || (from_unknown && has_status(was, "Unknown"));
}

void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                   const json_t *after)
{
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        const json_t *is = condition_find(after, told[i].type);
        if (!worth_telling(condition_find(before, told[i].type), is, told[i].from_unknown))
            continue;
        kube_events_add(e, &(const struct kube_event){.about = object,
                                                      .api_version = HUB_API,
                                                      .kind = kind,
                                                      .warning = has_status(is, "False"),
                                                      .reason = cstr(kube_str(is, "reason", NULL)),
                                                      .action = "Reconcile",
                                                      .note = cstr(kube_str(is, "message", NULL))});
    }
}
