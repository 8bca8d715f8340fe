/* The records waiting to be sent to one endpoint, in memory and on disk. Sender thread only.
 *
 * A lane holds the records of one scorer in order; a series is in exactly one lane. It is remembered as long
 * as its read position or its last timestamp is needed. Lanes without a backlog are served first. The spool
 * may come or go at any time; what cannot be written stays in memory. */
#pragma once

#include "exporter/base/clock.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"
#include "remotewrite/spool.h"

struct queue;

enum queue_drop {
    DROP_FULL_OLDEST, /* over the byte limit, with the policy drop_oldest */
    DROP_FULL_NEWEST,
    DROP_TOO_OLD,
    DROP_DAMAGED, /* in a spool file that was damaged or removed */
    DROP_MEMORY,  /* over a limit of the format */
    DROP_REJECTED,
    DROP_INVALID, /* invalid labels */
    DROP_BUSY,    /* the inbox was full: disk or CPU cannot keep up */
    DROP_UNSAVED, /* in memory only at the end of the queue */
    DROPS
};
extern const char *const queue_drop_words[DROPS];

struct queue_options {
    uint64_t max_bytes;  /* on disk, or in memory without a spool */
    uint64_t max_memory; /* of payloads that are in memory only; 0: max_bytes */
    enum rw_full_policy policy;
    int64_t age_limit_ms; /* 0: none */
    size_t memory_bytes;  /* limit of payloads cached in memory while they are on disk */
};

/* Where a record's payload is. */
enum record_place {
    RECORD_IN_MEMORY, /* only there */
    RECORD_WRITTEN,   /* also in a segment, but not synced: after a power cut it may not be there */
    RECORD_CACHED,    /* synced, and in memory, too */
    RECORD_STORED,    /* synced, and only on disk */
};

/* The request in flight holds the picked record and its companions, small ones of other lanes. Until its
 * response has come, they stay the first of their lanes and in memory, and nothing drops them. A record that
 * is delivered or dropped is freed: there is no state for that. */
enum record_delivery { RECORD_WAITS, RECORD_PICKED, RECORD_TRAVELS };

struct record {
    TAILQ_ENTRY(record) entry; /* in its lane */
    enum record_place place;
    enum record_delivery delivery;
    LIST_ENTRY(record) companion; /* RECORD_TRAVELS only */
    LIST_ENTRY(record) unsynced;  /* RECORD_WRITTEN only */
    struct lane *lane;
    struct record_head head;
    struct spool_segment *segment; /* NULL: RECORD_IN_MEMORY */
    uint32_t at;                   /* offset in the segment */
    char *payload;                 /* NULL: RECORD_STORED */
    size_t payload_n;
};

struct queue_stats {
    uint64_t samples, records; /* waiting, or in flight */
    size_t in_flight;          /* records of the request in flight */
    size_t lanes;              /* remembered */
    uint64_t memory;           /* of payloads in memory */
    uint64_t unsaved;          /* samples waiting that are in memory only */
    uint64_t dropped[DROPS];   /* samples, since the start */
    int64_t oldest_ms;         /* timestamp waiting; 0 for none */
    int64_t last_ms;           /* timestamp queued, see last_ms_after(); 0 for none */
    int disk_error;            /* negative errno of the last write, 0 if it succeeded */
};

struct queue *queue_new(const struct queue_options *o);
struct queue *queue_free(struct queue *q);
/* New limits, for what is queued from now on. */
void queue_configure(struct queue *q, const struct queue_options *o);
DEFINE_CLEANUP(struct queue, queue_free)

/* Takes the records of a spool, which is not owned, before those in memory, and stores the latter in it. A
 * negative errno if a file cannot be read: nothing has changed. */
MUST_USE int queue_attach(struct queue *q, struct spool *spool);
/* The spool is gone: keeps what is in memory and drops the rest. The number of samples dropped. */
uint64_t queue_detach(struct queue *q);

/* Takes ownership of the payload. What exceeds a limit is dropped and counted. */
void queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n);
/* Syncs everything appended to disk; what cannot be synced stays in memory. */
void queue_sync(struct queue *q);
/* The last timestamp appended to the lane, by last_ms_after(); INT64_MIN if none. */
int64_t queue_last_ms(struct queue *q, struct str lane);
/* The timestamp of the lane's next record at this time. Receivers insist on order within a series, so a clock
 * that was set back yields the last timestamp plus 1 ms. */
int64_t queue_next_ms(struct queue *q, struct str lane, int64_t at_ms);
/* The last timestamp of all lanes, 0 if none. */
int64_t queue_newest_ms(const struct queue *q);
/* Forgets lanes, so that names that come and go cost nothing for good: those that are not in use, of which
 * nothing waits, no segment holds a record (the next start would send it again), and which have been so for
 * CLOCK_BACK_MS, by both clocks, so that order needs the last timestamp no more. To be called regularly: a
 * lane's time begins with the first call that finds it idle. */
void queue_forget_lanes(struct queue *q, mono_ms now, int64_t wall_ms,
                        bool (*is_used)(void *arg, struct str lane), void *arg);
/* Drops records that exceed the age limit. */
void queue_expire(struct queue *q, int64_t now_ms);
/* The record to send next or NULL. One at a time: until queue_finish() or queue_put_back(). */
struct record *queue_pick(struct queue *q, int64_t now_ms);
/* The payload of a record that was picked, valid until it is removed or put back. -EBADMSG: damaged.
 * -ESTALE: its segment cannot be read: the queue has left the spool to the next queue_attach(). */
MUST_USE int queue_payload(struct queue *q, struct record *r, struct str *ret);
/* Records that may travel with the picked one: the first of each other lane, so that no series repeats, none
 * of the own metrics; at most max, and so many samples. */
size_t queue_pick_more(struct queue *q, uint32_t samples, struct record **ret, size_t max);
/* Makes one of these a companion of the picked record, once its payload was read. */
void queue_take_along(struct queue *q, struct record *r);
/* The companions do not travel after all: they wait again. */
void queue_send_alone(struct queue *q);
/* Drops a record that waits. */
void queue_drop(struct queue *q, struct record *r, enum queue_drop why);
/* Removes the picked record and its companions; `dropped` of their samples are counted under `why`. */
void queue_finish(struct queue *q, struct record *r, enum queue_drop why, uint32_t dropped);
/* The request was given up: the picked record and its companions wait again. */
void queue_put_back(struct queue *q);
void queue_count_drop(struct queue *q, enum queue_drop why, uint64_t samples);

struct queue_stats queue_stats(const struct queue *q);
/* Writes the read positions if they have changed; a power cut may undo that. */
void queue_save_position(struct queue *q);
/* Likewise, and waits until they are on disk. */
void queue_sync_position(struct queue *q);
/* Tries to store the records that are in memory only. */
void queue_store_waiting(struct queue *q);
