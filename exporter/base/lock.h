/* A mutex that knows its holder, so that "the lock is held" is code and not a comment:
 *
 *     invariant(lock_is_held(&q->lock));
 *
 * Its holder does not block: whatever waits, waits before it takes the lock, or in lock_wait(). Taking a lock
 * twice, or releasing one of another thread, is a failed invariant instead of undefined. Any thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
    _Atomic pthread_t holder; /* 0: nobody, which is no thread's */
};

/* For a static lock. */
#define LOCK_INIT ((struct lock){.mutex = PTHREAD_MUTEX_INITIALIZER})

void lock_init(struct lock *l);
/* Nobody holds it. */
void lock_done(struct lock *l);
void lock_take(struct lock *l);
void lock_release(struct lock *l);
/* Whether this thread holds it. */
bool lock_is_held(const struct lock *l);
/* Releases the lock, waits for the condition, and takes the lock again (pthread_cond_wait(3)): the caller
 * checks in a loop what it waits for. */
void lock_wait(struct lock *l, pthread_cond_t *condition);
