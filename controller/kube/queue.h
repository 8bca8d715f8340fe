/* A work queue of keys. A key is worked on by one at a time, however often it is added; a key added during
 * its work is worked on once more afterwards; a failed key is retried after a back-off of its own. A key
 * says what to look at, not what to do, so the newest state always wins.
 *
 * While the API server is away no work starts. After its return ready and failed keys are worked on within
 * 10 s, as far as the rate allows, and their back-offs start anew. */
#ifndef DS_KUBE_QUEUE_H
#define DS_KUBE_QUEUE_H

#include "controller/kube/client.h"
#include "exporter/base/loop.h"

#include <stdbool.h>

struct kube_queue;

/* KUBE_HIGH keys start before KUBE_NORMAL ones, but every fourth start is a normal key while one is ready,
 * so that neither starves. Both draw on the one rate. */
enum kube_priority { KUBE_NORMAL, KUBE_HIGH, KUBE_PRIORITIES };

struct kube_queue_options {
    /* Starts the work on a key; copies the key if it is needed longer. The key is active until
     * kube_queue_done(), which `work` may call itself. */
    void (*work)(void *arg, const char *key);
    void *arg;
    struct kube *kube;          /* whose API server the work needs; NULL: none. Must outlive the queue */
    size_t max_active;          /* active keys; 0: 8 */
    size_t reserved_active;     /* of these, kept free for KUBE_HIGH keys */
    int64_t min_retry_ms;       /* 0: 1 s */
    int64_t max_retry_ms;       /* 0: 5 min */
    unsigned per_second, burst; /* starts of all keys together; 0: 20 and 50 */
};

/* -ENOMEM. */
struct kube_queue *kube_queue_new(struct loop *loop, const struct kube_queue_options *o);
/* Forgets active keys too. May be called from `work`, which must not touch the queue afterwards. */
struct kube_queue *kube_queue_free(struct kube_queue *q);
DEFINE_CLEANUP(struct kube_queue, kube_queue_free)

/* Adds the key: it is worked on as soon as possible, but never before its back-off after a failure ends,
 * or a source of changes would defeat the back-off. -ENOMEM. */
void kube_queue_add(struct kube_queue *q, const char *key);
/* Adds the key to be worked on in `ms`, or earlier if an earlier time was asked for. -ENOMEM. */
void kube_queue_add_after(struct kube_queue *q, const char *key, int64_t ms);
/* Like kube_queue_add_after(), and sets the key's priority. The two above add a key as KUBE_NORMAL and
 * leave the priority of a known key. -ENOMEM. */
void kube_queue_add_as(struct kube_queue *q, const char *key, enum kube_priority priority, int64_t ms);
/* The work on the key ended: well, or to be retried after its back-off and no sooner than retry_after_ms
 * (-1: none). Ignores an unknown key. Never fails. */
void kube_queue_done(struct kube_queue *q, const char *key, bool ok, int64_t retry_after_ms);
/* Forgets the key: a waiting key is dropped, an active one is not repeated. */
void kube_queue_forget(struct kube_queue *q, const char *key);
/* Keys that wait or are active. */
size_t kube_queue_length(const struct kube_queue *q);

#endif
