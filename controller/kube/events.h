/* Events (events.k8s.io/v1) about objects, as `kubectl describe` shows them. On the loop.
 *
 * At most 512 wait, and at most 20 a second are sent; about one object 25 at once, then one every ten
 * seconds. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct kube;
struct kube_events;

struct kube_event {
    const json_t *about; /* the object with metadata.namespace, .name and .uid; borrowed during the call */
    const char *api_version, *kind; /* the object's: "v1" */
    bool warning;                   /* else Normal */
    const char *reason, *action;    /* UpperCamelCase, and what the controller was doing: 128 bytes each */
    const char *note;               /* a sentence; cut at 1024 bytes */
};

/* controller: "domain/name", not copied; instance: the pod's name, copied. */
struct kube_events *kube_events_new(struct kube *k, const char *controller, const char *instance);
/* Drops events that wait. */
struct kube_events *kube_events_free(struct kube_events *e);
/* Queues an event. Never fails: a dropped event is counted. */
void kube_events_add(struct kube_events *e, const struct kube_event *event);
uint64_t kube_events_dropped(const struct kube_events *e);
