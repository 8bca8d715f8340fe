/* Events for what changes in conditions, each time that it does: a fleet that is rolled out is no news, nor is what is seen again after a
 * restart. */
#include "controller/hub/state/status.h"
#include "controller/hub/state/status_conditions.h"

#include "controller/kube/condition.h"

static const struct {
    const char *type;
    bool from_unknown; /* that it has turned out well is worth telling even when nothing was wrong before */
} told[] = {
    {"Healthy", true},          {"ConfigSynced", true}, {"Valid", false},
    {"UniqueScoreName", false}, {"Scoring", false},     {"Ready", true},
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

static bool worth_telling(const json_t *was, const json_t *is, bool from_unknown)
{
    if (passing(is))
        return false;
    if (kube_condition_is(is, "False"))
        return !kube_condition_is(was, "False");
    if (!kube_condition_is(is, "True") || passing(was))
        return false;
    return kube_condition_is(was, "False") || (from_unknown && kube_condition_is(was, "Unknown"));
}

static bool same_words(const json_t *a, const json_t *b)
{
    return strcmp(cstr(kube_str(a, "reason", NULL)), cstr(kube_str(b, "reason", NULL))) == 0 &&
           strcmp(cstr(kube_str(a, "message", NULL)), cstr(kube_str(b, "message", NULL))) == 0;
}

static void tell(struct kube_events *e, const json_t *object, const char *kind, const json_t *condition)
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
    const json_t *news[ARRAY_SIZE(told)];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        const json_t *is = kube_condition(after, told[i].type);
        size_t k = 0;

        if (!worth_telling(kube_condition(before, told[i].type), is, told[i].from_unknown))
            continue;
        while (k < n && !same_words(news[k], is)) /* Ready often says what another one says */
            k++;
        if (k == n)
            tell(e, object, kind, news[n++] = is);
    }
}
