/* What one endpoint has to send: lanes of records with their limits, in memory and in the spool, and the
 * files of the spool, which only the queue touches: folder.h, spool.h and active.h. Lanes without a backlog
 * are served first; a series is in exactly one lane. The spool may come or go at any time; what cannot be
 * written stays in memory.
 *
 * The endpoint's thread calls everything here, and the records are its own. Others get copies of the
 * statistics (endpoint_state()). */
#pragma once

#include "exporter/base/clock.h"
#include "remotewrite/active.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"
#include "remotewrite/record.h"
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
    const char *dir;      /* of the spool, read by queue_new() alone; NULL: memory only */
    size_t segment_bytes; /* of its files, about */
    bool is_standby;      /* another agent leads: the folder is not asked for, nor missed */
    uint64_t max_bytes;   /* on disk, or in memory without a spool */
    uint64_t max_memory;  /* of payloads that are in memory only; 0: max_bytes */
    enum rw_full_policy policy;
    int64_t age_limit_ms; /* 0: none */
    size_t memory_bytes;  /* limit of payloads cached in memory while they are on disk */
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
    bool has_spool;            /* it is open */
    int spool_error; /* negative errno: why it is not open; 0: it is, was not tried yet, or there is none */
    struct spool_stats spool; /* of the open one, or of the last try to open it */
};

struct queue *queue_new(const struct queue_options *o);
/* As kill -9 leaves it: what was not synced may be lost. */
struct queue *queue_free(struct queue *q);
/* New limits, for what is queued from now on. */
void queue_configure(struct queue *q, const struct queue_options *o);
DEFINE_CLEANUP(struct queue, queue_free)

/* ---- The spool ---- */

/* Opens the spool if it is not open and its next try is due: takes the records that it holds before those
 * in memory, and stores the latter in it. True if it is open since this call: queue_load_active() is to
 * follow. */
bool queue_open(struct queue *q, mono_ms now);
/* To be called every second, before queue_open(): closes a spool of which something cannot be read, and
 * tries to store what is in memory only. False if someone has removed the folder: the spool is closed, what
 * was only there is lost and counted, and queue_open() is due. */
MUST_USE bool queue_watch(struct queue *q, mono_ms now);
/* The next queue_watch() and queue_open() try again what has failed. */
void queue_retry_now(struct queue *q, mono_ms now);
/* Stores the read positions and closes the spool, which another queue may open. The queue is only to be asked
 * for its statistics from now on, and to be freed. */
void queue_close(struct queue *q);
/* Whether another agent asks for the folder, which is open. */
bool queue_is_wanted(const struct queue *q);

/* Calls fn with each set of active series that the previous run has left, see active_open(). */
void queue_load_active(struct queue *q, active_load_fn fn, void *arg);
/* Whether queue_save_active() has a file to write to. */
bool queue_has_active(const struct queue *q);
/* Stores the sets that are not on disk as they are now, see active_save(). */
MUST_USE int queue_save_active(struct queue *q, struct active_set *const *sets, size_t n);

/* ---- Records in ---- */

/* Takes ownership of the payload. What exceeds a limit is dropped and counted. */
void queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n);
/* Syncs everything appended to disk; what cannot be synced stays in memory. */
void queue_sync(struct queue *q);
/* The last timestamp appended to the lane, by last_ms_after(); INT64_MIN if none. */
int64_t queue_last_ms(struct queue *q, struct str lane);
/* The timestamp of the lane's next record at this time, see lane_next_ms(). */
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

/* ---- Records out ---- */

/* The record to send next or NULL. One at a time: until queue_finish() or queue_put_back(). */
struct record *queue_pick(struct queue *q, int64_t now_ms);
/* The payload of a record that was picked, valid until it is removed or put back. -EBADMSG: damaged.
 * -ESTALE: its segment cannot be read: the spool is not used until queue_open() has opened it again, and what
 * was picked is not in flight any more. */
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
/* Removes the picked record and its companions: what became of each sample is decided. */
void queue_finish(struct queue *q, struct record *r);
/* The request was given up: the picked record and its companions wait again. */
void queue_put_back(struct queue *q);
/* How many records are in flight: the picked one and its companions. */
size_t queue_in_flight(const struct queue *q);
/* Counts samples that were dropped elsewhere. */
void queue_count_drop(struct queue *q, enum queue_drop why, uint64_t samples);

struct queue_stats queue_stats(const struct queue *q);
/* Writes the read positions if they have changed; a power cut may undo that. */
void queue_save_position(struct queue *q);
/* Likewise, and waits until they are on disk. */
void queue_sync_position(struct queue *q);
