/* Delivers the records of one endpoint: one request at a time in queue order, with back-off, falling back to
 * simpler wire formats, and finding out what the receiver rejects. */
#ifndef DS_REMOTEWRITE_SENDER_H
#define DS_REMOTEWRITE_SENDER_H

#include "exporter/base/loop.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"
#include "remotewrite/transport.h"

struct sender;

enum { SENDER_PROBE_MS = 3600 * 1000, SENDER_HALVE_MS = 60 * 1000 };

struct sender_options {
    const struct rw_endpoint_config *config;
    struct loop *loop;
    struct transport *transport, *metadata_transport;
    struct queue *queue;
    const struct families *families;
};

enum sender_state { SENDER_IDLE, SENDER_SENDING, SENDER_BACKING_OFF };

struct sender_stats {
    enum sender_state state;
    enum rw_form form;
    uint64_t samples, bytes, requests; /* delivered; bytes as compressed */
    uint64_t failed, retried;          /* samples that the endpoint rejected; samples sent again */
    uint64_t metadata_sent, metadata_failed, metadata_retried; /* requests */
    int64_t highest_sent_ms;                                   /* timestamp; 0 for none */
    int64_t last_sent_at_ms;                                   /* wall clock; 0 for never */
    int64_t retry_at_ms; /* wall clock of the next try while backing off */
    unsigned failures;   /* consecutive */
    char error[512];     /* the last failure, in the receiver's words; empty after recovery */
    int64_t error_at_ms;
    double seconds; /* that the last request took */
};

struct sender *sender_new(const struct sender_options *o);
struct sender *sender_free(struct sender *s);
/* To be called when something was queued. */
void sender_kick(struct sender *s);
/* To be called about every second: sends the metadata that is due. */
void sender_tick(struct sender *s);
/* For the flush of a stop, which lasts ms: ends a wait, but not before the receiver's Retry-After has passed,
 * and gives up at the first failure from now on. */
void sender_hurry(struct sender *s, int64_t ms);
/* True if nothing is in flight or waiting, or if a hurried sender has given up. */
bool sender_done(const struct sender *s);
const struct sender_stats *sender_stats(const struct sender *s);

#endif
