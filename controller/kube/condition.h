/* Conditions: metav1.Condition. Pure. */
#pragma once

#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>

struct kube_condition {
    const char *type, *status, *reason, *message; /* status: "True", "False" or "Unknown" */
    int64_t generation;                           /* observedGeneration; 0 leaves it out */
};

/* The condition of that type in a status, or in any object with a list `conditions`; NULL without. */
json_t *kube_condition(const json_t *status, const char *type);
/* Whether the condition has that status ("True", ...). NULL has none. */
bool kube_condition_is(const json_t *condition, const char *status);
/* The message, or else the reason, as one line; empty without either. */
void kube_condition_why(const json_t *condition, char *ret, size_t size);
/* The lastTransitionTime that c keeps from its last one in `status`; NULL if its own status has changed. */
const char *kube_condition_since(const json_t *status, const struct kube_condition *c);
/* The condition as JSON; since NULL: now. A new reference. */
json_t *kube_condition_value(const struct kube_condition *c, const char *since, unix_ms now);
