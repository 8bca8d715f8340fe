/* One endpoint: a thread with its own loop, queue and sender. The agent's loop puts items into an inbox
 * and reads a copy of the state; one lock guards both, and its holder never blocks. */
#pragma once

#include "exporter/base/clock.h"
#include "remotewrite/intake.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"

struct endpoint;

enum { ENDPOINT_DURATIONS = 64 };

/* How far it has come. It never goes back: who needs it again starts another one. */
enum endpoint_phase {
    ENDPOINT_RUNNING,
    ENDPOINT_ENDING, /* takes no more items: sends what it can in time, and closes its spool */
    ENDPOINT_ENDED,  /* another one may have the spool; the thread returns, and to join it takes no time */
};

struct endpoint_state {
    struct queue_stats queue;
    struct sender_stats sender;
    size_t series; /* that are active */
    bool ready;    /* the thread has begun */
    /* The last members, which are no part of what is compared: */
    enum endpoint_phase phase;
    int64_t newest_in_ms;                /* the last timestamp from the agent's loop, by last_ms_after() */
    float durations[ENDPOINT_DURATIONS]; /* seconds of requests since the last look */
    size_t n_durations;
};

/* Starts the thread, which drains from the start if `drain`; takes a reference to c. storage_path: NULL for
 * memory only. The thread calls changed(arg), if any, when the state has changed, at last to ENDPOINT_ENDED.
 * -EAGAIN, -EMFILE. */
MUST_USE int endpoint_new(struct endpoint **ret, struct rw_endpoint_config *c, const char *storage_path,
                          bool drain, void (*changed)(void *arg), void *arg);
/* Has the thread queue stale markers, send what it can within flush_ms, and end, and does not wait for it.
 * Another call can only shorten that time. */
void endpoint_stop(struct endpoint *e, int64_t flush_ms);
/* Another agent continues the series: sends what is queued, without stale markers, and ends the thread, at
 * once if that agent wants the spool. Nothing may be published until endpoint_lead(). */
void endpoint_drain(struct endpoint *e);
/* This agent continues the series, as it does at first. False if the endpoint no longer runs, as it has
 * drained. */
bool endpoint_lead(struct endpoint *e);
/* Waits for the thread, unless it has ended; endpoint_state() then tells what it has left. */
void endpoint_join(struct endpoint *e);
/* Waits for the thread, which ends soon after the flush time (1 s if endpoint_stop() was not called). */
struct endpoint *endpoint_free(struct endpoint *e);

/* A scorer's batch, new or sent again, see intake_publish(). */
void endpoint_publish(struct endpoint *e, struct batch *b, unix_ms at);
/* Goes on with another configuration of the same place; endpoint_renew() is to follow for each scorer's
 * batch. */
void endpoint_configure(struct endpoint *e, struct rw_endpoint_config *c);
/* The current batch of a scorer, see intake_renew(). */
void endpoint_renew(struct endpoint *e, struct batch *b, unix_ms at);
void endpoint_withdraw(struct endpoint *e, const char *score_name, unix_ms at);
/* Sends a copy of the program's own metrics. */
void endpoint_metrics(struct endpoint *e, const struct metrics *m, unix_ms at);
/* A copy of the state; request durations are returned once. */
void endpoint_state(struct endpoint *e, struct endpoint_state *ret);
const struct rw_endpoint_config *endpoint_config(const struct endpoint *e);
