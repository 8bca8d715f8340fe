/* Whether the API server answers, and whether its store is still the one that was read. Part of the client;
 * on the loop.
 *
 * When a call gets no answer, or one of 5xx, the server itself is asked (/readyz), about every five seconds
 * until any answer but 5xx comes. If the first question gets none, the server is away, and queues, watches
 * and events start nothing.
 *
 * After a restore of etcd from a backup, versions begin again at an older one, and what is remembered of
 * later ones is wrong: also of objects whose version is the same. An era ends with each such restore, and
 * versions of different eras are never compared. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct kube;
struct kube_answer;
struct kube_reach;

enum { KUBE_GRACE_MS = 60 * 1000 }; /* after this an absence is worth reporting */

/* Who waits for the server's return; embedded in its owner. */
struct kube_waiter {
    void (*on_return)(struct kube_waiter *w); /* only moves timers, by kube_return_ms() */
    /* The store went back in time, as found_by has seen; NULL: does not care. Starts no call. */
    void (*on_restore)(struct kube_waiter *w, const void *found_by);
    LIST_ENTRY(kube_waiter) entry;
};

/* Whether the server itself was asked and did not answer. */
bool kube_is_unreachable(const struct kube *k);
/* Milliseconds since the server's last absence began, or may have begun; INT64_MAX without one. */
int64_t kube_absence_ms(const struct kube *k);
/* LIST_REMOVE() ends it. */
void kube_waiter_add(struct kube *k, struct kube_waiter *w);
/* When to go on after the return: in up to 10 s, since a whole fleet does. */
int64_t kube_return_ms(void);

/* The number of the era: 1 at the start. */
unsigned kube_era(const struct kube *k);
/* A watch has seen it: a new era begins, and all watches list anew. */
void kube_note_restore(struct kube *k, const void *found_by);

/* ---- For the client ---- */

struct kube_reach *kube_reach_new(struct kube *k);
/* After its calls were cancelled. Takes NULL, returns NULL. */
struct kube_reach *kube_reach_free(struct kube_reach *r);
/* What the outcome of a call says about the server. */
void kube_reach_note(struct kube_reach *r, const struct kube_answer *a);
