/* The holder is written by whoever has the mutex, and read by any thread: another one reads either its own
 * identity, which only it can have written, or anything else. So no order of memory is needed. */
#include "exporter/base/lock.h"

#include "exporter/base/invariant.h"

#include <stdatomic.h>

void lock_init(struct lock *l)
{
    /* Linux's default mutex needs no resource: neither this nor taking it can fail. */
    (void)pthread_mutex_init(&l->mutex, NULL);
    atomic_init(&l->holder, 0);
}

void lock_done(struct lock *l)
{
    invariant(atomic_load_explicit(&l->holder, memory_order_relaxed) == 0);
    (void)pthread_mutex_destroy(&l->mutex);
}

bool lock_is_held(const struct lock *l)
{
    return atomic_load_explicit(&l->holder, memory_order_relaxed) == pthread_self();
}

void lock_take(struct lock *l)
{
    invariant(!lock_is_held(l));
    (void)pthread_mutex_lock(&l->mutex);
    atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

void lock_release(struct lock *l)
{
    invariant(lock_is_held(l));
    atomic_store_explicit(&l->holder, 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&l->mutex);
}

void lock_wait(struct lock *l, pthread_cond_t *condition)
{
    invariant(lock_is_held(l));
    atomic_store_explicit(&l->holder, 0, memory_order_relaxed);
    (void)pthread_cond_wait(condition, &l->mutex);
    atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}
