/* Delivers the records of one endpoint: one request at a time in queue order, with back-off, and falling
 * back to simpler wire formats. Endpoint's thread. */
#pragma once

#include "exporter/base/loop.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"
#include "remotewrite/transport.h"

struct sender;

enum { SENDER_PROBE_MS = 3600 * 1000 };

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
    unsigned failures;   /* consecutive; what is refused for good is none */
    bool refused;        /* nothing was accepted of a record, nor anything since */
    char error[512];     /* the last failure, in the receiver's words; empty after recovery */
    int64_t error_at_ms;
    double seconds; /* that the last request took */
};

struct sender *sender_new(const struct sender_options *o);
struct sender *sender_free(struct sender *s);
/* From now on, this configuration counts; a request in flight ends as it began. What an earlier one has
 * taught is forgotten, and a wait ends, unless the receiver asked for it. */
void sender_configure(struct sender *s, const struct rw_endpoint_config *c);
/* To be called when something was queued. */
void sender_kick(struct sender *s);
/* To be called about every second: sends the metadata that is due. */
void sender_tick(struct sender *s);
/* For the flush of a stop, which lasts ms: ends a wait, but not before the receiver's Retry-After has passed,
 * and gives up at the first failure from now on. */
void sender_begin_flush(struct sender *s, int64_t ms);
/* True if nothing is in flight or waiting, or if a flush has given up. */
bool sender_done(const struct sender *s);
/* Whether requests fail and are retried, or the endpoint refuses all that it gets. */
static inline bool sender_is_failing(const struct sender_stats *s)
{
    return s->state == SENDER_BACKING_OFF || s->failures > 0 || s->refused;
}
const struct sender_stats *sender_stats(const struct sender *s);
