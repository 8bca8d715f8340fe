/* Private to endpoint*.c. */
#ifndef DS_REMOTEWRITE_ENDPOINT_INTERNAL_H
#define DS_REMOTEWRITE_ENDPOINT_INTERNAL_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "remotewrite/endpoint.h"
#include "remotewrite/intake.h"
#include "remotewrite/metadata.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"
#include "remotewrite/spool.h"
#include "remotewrite/transport.h"

#include <pthread.h>

/* What the agent's loop hands over: a batch, the name of a scorer to withdraw, or the program's own
 * metrics. */
struct endpoint_item {
    struct endpoint_item *next;
    struct batch *batch;
    char *withdraw;
    struct metrics *metrics;
    unix_ms at;
    size_t bytes;
};

struct endpoint {
    struct rw_endpoint_config *config;
    char *dir; /* of the spool; NULL: memory only */
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    /* Guarded by the lock. */
    struct endpoint_item *inbox, **inbox_end;
    size_t inbox_bytes, inbox_items;
    uint64_t busy; /* samples dropped because the inbox was full, not yet counted by the thread */
    uint64_t samples_in;
    int64_t newest_in_ms;
    bool woken, stop, drain;
    bool ended; /* the thread takes no more items */
    int64_t flush_ms;
    struct endpoint_state state;
    /* The thread's own, except that loop_post() is for any thread. */
    struct loop *loop;
    struct http *http;
    struct transport *transport, *metadata_transport;
    struct spool *spool;
    struct queue *queue;
    struct intake *intake;
    struct sender *sender;
    struct metadata metadata;
    int spool_error; /* of the last try to open it */
    unsigned spool_failures;
    mono_ms spool_retry_at;
    struct post wake;
    struct timer tick, flush;
    bool stopping;
    bool draining; /* `drain`, as the thread last saw it */
    uint64_t drops_logged;
    mono_ms drops_logged_at;
    bool disk_failing;
};

/* Opens the spool, or keeps samples in memory and tries again later; makes queue and intake. -ENOMEM. */
MUST_USE int endpoint_spool_open(struct endpoint *e);
/* Once a second: what the spool needs while it runs. */
void endpoint_spool_tick(struct endpoint *e);
void endpoint_spool_log(struct endpoint *e);
/* Whether an agent that leads waits for the spool of this one, which drains. */
bool endpoint_spool_is_wanted(const struct endpoint *e);
/* Stores what waits and tells what is lost; closes queue, intake and spool. */
void endpoint_spool_close(struct endpoint *e);

void endpoint_item_free(struct endpoint_item *i);
/* Sets the callbacks of the thread's loop; before the thread starts. */
void endpoint_thread_init(struct endpoint *e);
/* The thread: until endpoint_stop(). */
void *endpoint_thread_run(void *arg);

#endif
