/* Whether an API server answers; see client.h. Owned by its client, on the loop. */
#ifndef DS_KUBE_REACH_H
#define DS_KUBE_REACH_H

#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

struct kube_reach {
    struct kube *kube;
    enum { REACH_UP, REACH_DOUBTED, REACH_AWAY } state;
    mono_ms doubted_at;     /* the first call without an answer */
    mono_ms away_at;        /* that of the last absence; 0: none so far */
    mono_ms cleared_at;     /* when it last answered instead, and only the call had failed; 0: never */
    struct timer timer;     /* always set; to ask */
    struct kube_call *call; /* that asks */
    mono_ms asked_at;
    unsigned asked; /* since doubted_at */
    LIST_HEAD(, kube_waiter) waiters;
};

struct kube_reach *kube_reach(const struct kube *k);
/* Sets the timer. -ENOMEM. */
void kube_reach_init(struct kube *k);
/* What the outcome of a call says about the server. */
void kube_reach_note(struct kube *k, const struct kube_answer *a);

#endif
