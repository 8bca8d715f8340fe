/* A work queue of keys. On the loop.
 *
 * A key is worked on by one at a time, however often it is added, and once more if it was added meanwhile; a
 * failed key is retried after a back-off of its own. While the API server is away no work starts. */
#pragma once

#include "exporter/base/loop.h"

#include <stdbool.h>

struct kube;
struct kube_queue;

struct kube_queue_options {
    /* Starts the work on a key, which stays where it is until kube_queue_done(); `work` may call that. */
    void (*work)(void *arg, const char *key);
    void *arg;
    struct kube *kube;                  /* whose API server the work needs; NULL: none */
    size_t max_active;                  /* active keys; 0: 8 */
    int64_t min_retry_ms, max_retry_ms; /* 0: 1 s and 5 min */
    unsigned per_second, burst;         /* starts of all keys together; 0: 20 and 50 */
};

struct kube_queue *kube_queue_new(struct loop *loop, const struct kube_queue_options *o);
/* Forgets active keys too. Not from `work`. */
struct kube_queue *kube_queue_free(struct kube_queue *q);

/* Adds the key: it is worked on as soon as possible, but not before its back-off after a failure ends. */
void kube_queue_add(struct kube_queue *q, const char *key);
/* Adds the key to be worked on in `ms`, or earlier if an earlier time was asked for. */
void kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms);
/* Like kube_queue_add(), and starts before those that are not urgent. */
void kube_queue_add_urgent(struct kube_queue *q, const char *key);
/* The work on the key ended: well, or to be retried after its back-off and no sooner than retry_after_ms
 * (-1: none). Ignores an unknown key. */
void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms);
/* Forgets the key: a waiting key is dropped, an active one is not repeated. */
void kube_queue_forget(struct kube_queue *q, const char *key);
/* Whether the key waits or is active. */
bool kube_queue_has(const struct kube_queue *q, const char *key);
/* How many keys do. */
size_t kube_queue_length(const struct kube_queue *q);
