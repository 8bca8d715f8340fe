/* metav1.Condition: finding one in a status, and writing one with its transition time. */
#ifndef DS_KUBE_CONDITION_H
#define DS_KUBE_CONDITION_H

#include "controller/kube/json.h"
#include "exporter/base/clock.h"

struct kube_condition {
    const char *type;
    const char *status; /* "True", "False" or "Unknown" */
    const char *reason, *message;
    int64_t generation; /* observedGeneration; 0 leaves it out */
};

/* The condition of that type in a status, or in any object with a list `conditions`; NULL when there is
 * none. */
const json_t *kube_condition(const json_t *status, const char *type);
/* Whether the condition has that status ("True", ...). NULL has none. */
bool kube_condition_is(const json_t *condition, const char *status);
/* The message, or else the reason, as one line; empty without either. */
void kube_condition_why(const json_t *condition, char *ret, size_t size);
/* The lastTransitionTime that c keeps: that of the same type in `status`, while c's own status is the
 * same. Otherwise NULL. */
const char *kube_condition_since(const json_t *status, const struct kube_condition *c);
/* The condition as JSON; since NULL: now. A new reference, NULL when out of memory. */
json_t *kube_condition_value(const struct kube_condition *c, const char *since, unix_ms now);

#endif
