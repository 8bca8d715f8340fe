/* What is known of our own writes of an object's status and finalizers, kept so that nothing is written
 * twice. Only written/statuses.c changes it. Loop thread. */
#pragma once

#include "controller/kube/json.h"
#include "controller/kube/writer.h"

struct last_status {
    json_t *sent;   /* the last one that the API server has accepted */
    json_t *result; /* what the server stored: a CRD of another make may prune members */
    char *key;      /* in the queue; NULL: nothing was written yet */
    struct kube_object status, finalizer;
    bool is_look_due; /* for another reason than that the watch shows our own write */
    bool event_sent;  /* of a fight that is on over either */
    json_t *sending;  /* the status under way */
    json_t *before;   /* the object's status until then */
};

/* The part of the object that others fight over; NULL: none. */
const struct kube_object *last_status_fought(const struct last_status *s);
/* Cancels what is under way, and forgets everything. */
void last_status_done(struct last_status *s);
