/* The event loop: timers, file descriptors, work posted by other threads, and libcurl's transfers, all on one
 * thread. Everything that is not explicitly shared belongs to it.
 *
 * The loop stamps `now` once per turn, so all that happens in one turn happens at one time. */
#ifndef DS_BASE_LOOP_H
#define DS_BASE_LOOP_H

#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <curl/curl.h>

struct loop;

/* Embedded in its owner; zeroed, with fn set, before first use. */
struct timer {
    void (*fn)(struct timer *); /* on the loop, once per setting; may set the timer again */
    mono_ms at;
    size_t place; /* 1-based place in the heap, 0 while not set */
};

/* Embedded in its owner; watches one descriptor for reading. */
struct watch {
    void (*fn)(struct watch *);
    int fd;
    struct watch *next;
};

/* A piece of work handed to the loop by another thread; embedded in its owner, which must live until fn
 * ran. */
struct post {
    void (*fn)(struct post *);
    struct post *next;
};

/* -ENOMEM. The clock is not owned and must outlive the loop. */
MUST_USE int loop_new(struct loop **ret, const struct clock *clock);
/* Posted work that has not run yet is not run. */
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop, loop_free)

/* The time of this turn. */
mono_ms loop_now(const struct loop *l);
/* The wall clock, read afresh. */
unix_ms loop_wall(const struct loop *l);
/* The multi handle for the HTTP client; its finished transfers are handed to `done`. One client per loop. */
CURLM *loop_multi(struct loop *l, void (*done)(void *arg, CURL *easy, CURLcode code), void *arg);

/* Sets or moves a timer. -ENOMEM only when it was not set before and the heap cannot grow. */
MUST_USE int loop_timer_set(struct loop *l, struct timer *t, mono_ms at);
/* Does nothing when the timer is not set. */
void loop_timer_clear(struct loop *l, struct timer *t);

void loop_watch_add(struct loop *l, struct watch *w);
void loop_watch_remove(struct loop *l, struct watch *w);

/* From any thread: runs p->fn on the loop, in order of posting. Wakes the loop. */
void loop_post(struct loop *l, struct post *p);

/* One turn: waits at most max_wait_ms for anything to do, then does all that is due.
 * 0, or a negative errno when the wait itself failed. */
int loop_turn(struct loop *l, int max_wait_ms);
/* Turns until loop_stop(). */
int loop_run(struct loop *l);
/* From the loop's own thread. */
void loop_stop(struct loop *l);

#endif
