/* One endpoint at work: a thread with a loop of its own, its queue and its sender. The agent's loop only puts batches into
 * an inbox and reads a copy of the state; one lock guards both, and no holder of it blocks. */
#ifndef DS_REMOTEWRITE_ENDPOINT_H
#define DS_REMOTEWRITE_ENDPOINT_H

#include "remotewrite/intake.h"
#include "remotewrite/sender.h"

struct endpoint;

struct endpoint_options {
    struct rw_endpoint_config *config; /* a reference is taken */
    const char *storage_path;          /* NULL: memory only */
    /* Called by the sender thread when there is news for the status page and the metrics. */
    void (*changed)(void *arg);
    void *arg;
};

struct endpoint_state {
    struct queue_stats queue;
    struct sender_stats sender;
    struct spool_found found;
    uint64_t spool_bytes;
    uint64_t samples_in; /* accepted from the loop, ever */
    int64_t newest_in_ms;
    size_t series;
    bool has_spool, ready;
};

/* Starts the thread. -ENOMEM, -EAGAIN. */
MUST_USE int endpoint_new(struct endpoint **ret, const struct endpoint_options *o);
/* Asks for a stop: markers, then what can still be sent within flush_ms. Does not wait. `markers` false: series live on. */
void endpoint_stop(struct endpoint *e, int64_t flush_ms, bool markers);
/* Waits for the thread; it ends within the flush time (1 s if endpoint_stop() was not called) and a little. */
struct endpoint *endpoint_free(struct endpoint *e);
DEFINE_CLEANUP(struct endpoint, endpoint_free)

void endpoint_publish(struct endpoint *e, struct batch *b);
void endpoint_withdraw(struct endpoint *e, const char *score_name, unix_ms at);
/* The agent's own metrics as text; copied. */
void endpoint_text(struct endpoint *e, struct str text, unix_ms at);
/* A copy of how it is doing; durations are handed over and start anew. */
void endpoint_state(struct endpoint *e, struct endpoint_state *ret);
const struct rw_endpoint_config *endpoint_config(const struct endpoint *e);

#endif
