/* The event loop: timers, a descriptor, work posted by other threads, and libcurl's transfers, all on one
 * thread. Unless stated otherwise, data belongs to this thread. `now` is read once per turn. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/queue.h>

struct loop;

/* Embedded in its owner. Before first use: zeroed, with fn set. */
struct timer {
    void (*fn)(struct timer *); /* runs once for each loop_timer_set(); may set the timer again */
    mono_ms at;
    uint64_t order; /* of settings */
    size_t place;   /* 1-based index in the heap; 0 if not set */
};

/* Embedded in its owner; watches one descriptor for reading. */
struct watch {
    void (*fn)(struct watch *);
    int fd;
};

/* Work posted to the loop by another thread. Embedded in its owner, which must live until fn runs. */
struct post {
    void (*fn)(struct post *);
    STAILQ_ENTRY(post) entry;
};

/* Waits in line for a share of a turn. Embedded in its owner. Before first use: zeroed, with fn set. */
struct share_wait {
    void (*fn)(struct share_wait *); /* runs once for each loop_share_wait(); may wait again */
    TAILQ_ENTRY(share_wait) entry;
    bool is_waiting;
    uint64_t since; /* the turn in which it lined up */
};

/* -EMFILE: no descriptors left; -ENOMEM. The clock must outlive the loop. */
MUST_USE int loop_new(struct loop **ret, const struct clock *clock);
/* Pending posts are dropped. */
struct loop *loop_free(struct loop *l);

/* Whether this thread may use what belongs to the loop: no other one is inside of a turn. For invariants. */
bool loop_is_own(const struct loop *l);
/* The time of this turn: does not go back even if the clock does. */
mono_ms loop_now(const struct loop *l);
/* Reads the wall clock. */
unix_ms loop_wall(const struct loop *l);
/* The wall clock less the monotonic one, both read now: it changes when the wall clock is set. */
int64_t loop_clock_ms(const struct loop *l);
/* The multi handle for the HTTP client, which gets its finished transfers by `done`. One client per loop. */
CURLM *loop_multi(struct loop *l, void (*done)(CURL *easy, CURLcode code));

/* Sets or moves a timer. */
void loop_timer_set(struct loop *l, struct timer *t, mono_ms at);
void loop_timer_clear(struct loop *l, struct timer *t);

/* One for each loop: signals. -ENOSPC, -ENOMEM. */
MUST_USE int loop_watch(struct loop *l, struct watch *w);
/* Before the descriptor is closed. */
void loop_unwatch(struct loop *l);

/* Any thread. Wakes the loop to run p->fn, in order of posting. */
void loop_post(struct loop *l, struct post *p);
/* Takes back a post that has not run yet. Loop thread; the poster has ended. */
void loop_unpost(struct loop *l, struct post *p);

/* ---- Work whose length a peer decides: each turn has a share for it ----
 *
 * Whoever unpacks, copies or parses what peers sent asks first, counts it, and lines up for a later turn if
 * there is not enough left. So neither one large answer nor many hold up the loop. */

enum {
    LOOP_TURN_BYTES = 1 << 20,   /* test/bench/bench_turn.c: a few milliseconds */
    LOOP_PIECE_BYTES = 64 << 10, /* the largest piece that is worked on without asking again */
};

/* Bytes that may still be worked on in this turn. */
size_t loop_bytes_left(const struct loop *l);
/* Counts bytes that were worked on, or what took as long as unpacking so many. */
void loop_spend(struct loop *l, size_t bytes);
/* Lines up behind all who wait for a share; does nothing if it waits already. A later turn that has at least
 * LOOP_PIECE_BYTES left for it runs w->fn. */
void loop_share_wait(struct loop *l, struct share_wait *w);
void loop_share_leave(struct loop *l, struct share_wait *w);
/* The most that any turn has spent so far. */
size_t loop_most_bytes(const struct loop *l);
/* The number of this turn. */
uint64_t loop_turns(const struct loop *l);

/* Called after each turn with the time that it took, waiting excluded. One for each loop; NULL for none. */
void loop_on_turn(struct loop *l, void (*fn)(void *arg, double seconds), void *arg);
/* Time since this turn's events began to be handled. */
double loop_turn_seconds(const struct loop *l);
/* One turn: waits at most max_wait_ms for an event, then runs all that is due. A negative errno. */
int loop_turn(struct loop *l, int max_wait_ms);
/* Runs turns until loop_stop(). */
int loop_run(struct loop *l);
/* On the loop's thread. */
void loop_stop(struct loop *l);

/* ---- The worker: one thread for what would hold the loop for too long ---- */

struct worker;

enum {
    WORKER_MIN_BYTES = 256 << 10, /* reading fewer takes less than about a millisecond */
    WORKER_SLICE_BYTES = 1 << 20, /* that a job reads before it lets smaller ones go first */
};

/* Blocks all signals on the calling thread except those that its own faults raise: blocked, they would kill
 * the process before a sanitizer can report where (sigprocmask(2) calls it undefined). */
void thread_block_signals(sigset_t *ret_before);

/* Starts a thread that blocks these signals: they are for the loop. A negative errno. */
MUST_USE int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* Embedded in its owner, with both functions set. */
struct job {
    /* On the worker's thread; nothing that it uses may be used elsewhere meanwhile. */
    void (*run)(struct job *j);
    /* On the loop's thread, after run() or instead of it. May free the job. */
    void (*done)(struct job *j);
    size_t bytes; /* that it reads; set by worker_do(), 0: not known */
    STAILQ_ENTRY(job) entry;
};

/* -EAGAIN. */
MUST_USE int worker_new(struct worker **ret, struct loop *loop);
/* Waits for the job that is running. All others are done() without run(). Takes NULL, returns NULL. */
struct worker *worker_free(struct worker *w);

/* Jobs run in their order, except for those that worker_slice() lets go first. */
void worker_start(struct worker *w, struct job *j);
/* Whether a job that reads `bytes` is for the worker: unless w is NULL, or they are few and the turn has a
 * share left for them. Loop thread. */
bool worker_takes(const struct worker *w, size_t bytes);
/* Runs the job on the worker if it takes it, else at once. */
void worker_do(struct worker *w, struct job *j, size_t bytes);
/* For whatever reads much: to be called each WORKER_SLICE_BYTES. On the worker's thread it first runs the
 * waiting jobs that read at most half as much as the running one, so that large answers hold up no small one
 * for longer than a slice. As each is at most half of the one around it, few jobs nest. Elsewhere it does
 * nothing. */
void worker_slice(void);
