/* One thread for work that would hold the loop for too long: reading a large response, rendering its
 * scores. */
#ifndef DS_BASE_WORKER_H
#define DS_BASE_WORKER_H

#include "exporter/base/loop.h"

#include <pthread.h>
#include <sys/queue.h>

struct worker;

/* Reading fewer bytes takes less than about a millisecond. */
enum { WORKER_MIN_BYTES = 256 << 10 };

/* Starts a thread that no signal interrupts: they are for the loop, which reads them from a descriptor. A
 * negative errno. */
MUST_USE int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

/* Embedded in its owner, with both functions set. */
struct job {
    /* On the worker's thread; nothing that it uses may be used elsewhere meanwhile. */
    void (*run)(struct job *j);
    /* On the loop's thread, after run() or instead of it. May free the job. */
    void (*done)(struct job *j);
    STAILQ_ENTRY(job) entry;
};

/* -EAGAIN. */
MUST_USE int worker_new(struct worker **ret, struct loop *loop);
/* Waits for the job that is running. All others are done() without run(). Takes NULL, returns NULL. */
struct worker *worker_free(struct worker *w);
DEFINE_CLEANUP(struct worker, worker_free)

/* Loop thread. Jobs run one after the other. */
void worker_start(struct worker *w, struct job *j);
/* Runs a job that reads `bytes`: on the worker, or at once if they are few or w is NULL. */
void worker_do(struct worker *w, struct job *j, size_t bytes);

#endif
