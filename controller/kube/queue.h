/* A work queue of keys: each is worked on by one at a time, however often it is added; what is added while it is being worked
 * on comes once more after; a failed one comes again after a growing back-off of its own. Keys say what to look at, not what to
 * do, so the newest state always wins. */
#ifndef DS_KUBE_QUEUE_H
#define DS_KUBE_QUEUE_H

#include "exporter/base/loop.h"

#include <stdbool.h>

struct kube_queue;

struct kube_queue_options {
    /* Begins work on a key, which is copied where it is needed longer. It is under way until kube_queue_done(), which may also be called
     * from inside. */
    void (*work)(void *arg, const char *key);
    void *arg;
    size_t max_active;          /* keys under way at a time; 0: 8 */
    int64_t min_retry_ms;       /* 0: 1 s */
    int64_t max_retry_ms;       /* 0: 5 min */
    unsigned per_second, burst; /* starts of work, all keys together; 0: 20 and 50 */
};

/* -ENOMEM. */
MUST_USE int kube_queue_new(struct kube_queue **ret, struct loop *loop, const struct kube_queue_options *o);
/* Work under way is forgotten. Also from inside `work`, when nothing of the queue is touched after. */
struct kube_queue *kube_queue_free(struct kube_queue *q);
DEFINE_CLEANUP(struct kube_queue, kube_queue_free)

/* Wants the key worked on as soon as may be. A back-off after a failure is not cut short by it, else a source of changes
 * would defeat it. -ENOMEM. */
MUST_USE int kube_queue_add(struct kube_queue *q, const char *key);
/* Wants it worked on in so long, unless it comes sooner anyway. -ENOMEM. */
MUST_USE int kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms);
/* Work on the key has ended: well, or to be tried again after its back-off, no sooner than retry_after_ms (-1: none). The
 * key may be unknown. Never fails. */
void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms);
/* Forgets the key: what waits is dropped, what is under way is not repeated. */
void kube_queue_forget(struct kube_queue *q, const char *key);
/* Keys that wait or are under way. */
size_t kube_queue_length(const struct kube_queue *q);
/* Failures of the key in a row. */
unsigned kube_queue_failures(const struct kube_queue *q, const char *key);

#endif
