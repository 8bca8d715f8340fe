/* Events (events.k8s.io/v1) about objects: what `kubectl describe` shows to whoever wonders. They are a
 * courtesy: at most 512 wait, about one object at most 25 are sent at once and then one every ten seconds,
 * and after a few tries one is dropped. What is the same as before is sent all the same: whoever adds
 * events does so for what has changed. */
#ifndef DS_KUBE_EVENT_H
#define DS_KUBE_EVENT_H

#include "controller/kube/client.h"

struct kube_events;

struct kube_event {
    const json_t *about; /* the object, with metadata.namespace, .name and .uid; only read during the call */
    const char *api_version; /* of it, "v1" */
    const char *kind;
    bool warning;       /* else Normal */
    const char *reason; /* UpperCamelCase, at most 128 bytes */
    const char *action; /* what was being done, at most 128 bytes */
    const char *note;   /* a sentence; cut at 1024 bytes */
};

/* controller as "domain/name"; instance: the pod's name. Copied. -ENOMEM. */
MUST_USE int kube_events_new(struct kube_events **ret, struct kube *k, const char *controller,
                             const char *instance);
/* Events not yet sent are dropped. */
struct kube_events *kube_events_free(struct kube_events *e);
DEFINE_CLEANUP(struct kube_events, kube_events_free)

/* Sends one, some time. Never fails: what cannot be sent is counted. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);
/* How many were dropped so far, and the last reason ("" without one). */
uint64_t kube_events_dropped(const struct kube_events *e, const char **ret_why);

#endif
