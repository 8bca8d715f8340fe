/* Delivers one endpoint's records: one request at a time, in the queue's order, with back-off, stepping between forms of
 * the wire, and halving of what is refused. Driven by a loop; knows no thread. */
#ifndef DS_REMOTEWRITE_SENDER_H
#define DS_REMOTEWRITE_SENDER_H

#include "remotewrite/queue.h"
#include "remotewrite/transport.h"
#include "remotewrite/verdict.h"

struct sender;

enum { SENDER_PROBE_MS = 3600 * 1000, SENDER_DURATIONS = 64 };

struct sender_options {
    const struct rw_endpoint_config *config;
    struct loop *loop;
    struct transport *transport;
    struct queue *queue;
    /* Something has changed that stats show. */
    void (*changed)(void *arg);
    void *arg;
};

enum sender_state { SENDER_IDLE, SENDER_SENDING, SENDER_BACKING_OFF };

struct sender_stats {
    enum sender_state state;
    enum rw_form form;
    uint64_t samples, bytes, requests; /* delivered; bytes as compressed */
    uint64_t failed, retried;          /* samples refused for good; samples sent again */
    uint64_t metadata, metadata_failed;
    int64_t highest_sent_ms; /* timestamp; 0 for none */
    int64_t last_sent_at_ms; /* wall clock; 0 for never */
    int64_t retry_at_ms;     /* wall clock of the next try while backing off */
    unsigned failures;       /* in a row */
    char error[512];         /* of the last failure, in the receiver's words; empty once it is well again */
    int64_t error_at_ms;
    float durations[SENDER_DURATIONS]; /* seconds of requests not yet taken by sender_take_durations() */
    size_t n_durations;
};

/* -ENOMEM. */
MUST_USE int sender_new(struct sender **ret, const struct sender_options *o);
struct sender *sender_free(struct sender *s);
DEFINE_CLEANUP(struct sender, sender_free)
/* There may be something to send. */
void sender_kick(struct sender *s);
/* From now on a failure is the end of it: for a stop that flushes. Waits that are under way end at once. */
void sender_hurry(struct sender *s);
/* Nothing under way and nothing that waits; or hurried, and the receiver did not take it. */
bool sender_done(const struct sender *s);
struct sender_stats *sender_stats(struct sender *s);

#endif
