/* Events (events.k8s.io/v1) about objects, as `kubectl describe` shows them. At most 512 wait, and at most 20
 * a second are sent. */
#ifndef DS_KUBE_EVENT_H
#define DS_KUBE_EVENT_H

#include "controller/kube/client.h"

struct kube_events;

struct kube_event {
    const json_t *about; /* the object with metadata.namespace, .name and .uid; borrowed during the call */
    const char *api_version; /* the object's, "v1" */
    const char *kind;
    bool warning;       /* else Normal */
    const char *reason; /* UpperCamelCase, at most 128 bytes */
    const char *action; /* what the controller was doing, at most 128 bytes */
    const char *note;   /* a sentence; cut at 1024 bytes */
};

/* controller: "domain/name"; instance: the pod's name. Both are copied. */
struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance);
/* Drops events that wait. */
struct kube_events *kube_events_free(struct kube_events *e);

/* Queues an event. Never fails: a dropped event is counted. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);
uint64_t kube_events_dropped(const struct kube_events *e);

#endif
