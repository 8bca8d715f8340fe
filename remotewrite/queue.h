/* What waits to be sent to one endpoint: lanes of records, in memory and on disk. Belongs to the sender thread.
 *
 * A lane is one scorer's records in order; a series is in one lane only. Lanes without a backlog are served first, so that
 * what is fresh does not wait while an old backlog drains, and within a lane nothing overtakes. */
#ifndef DS_REMOTEWRITE_QUEUE_H
#define DS_REMOTEWRITE_QUEUE_H

#include "remotewrite/config.h"
#include "remotewrite/spool.h"

struct queue;
struct lane;

enum queue_drop {
    DROP_FULL_OLDEST, /* "full_oldest": the byte ceiling, and the policy is to drop the oldest */
    DROP_FULL_NEWEST,
    DROP_TOO_OLD,
    DROP_DAMAGED, /* the spool's file was damaged */
    DROP_MEMORY,  /* no memory to queue it */
    DROP_REJECTED,
    DROP_INVALID, /* labels that are not valid */
    DROP_BUSY,    /* the inbox was full: the disk or the processor does not keep up */
    DROPS
};
extern const char *const queue_drop_words[DROPS];

struct queue_options {
    struct spool *spool; /* NULL: memory only; not owned */
    uint64_t max_bytes;
    enum rw_full_policy policy;
    int64_t age_limit_ms; /* 0: none */
    size_t memory_bytes;  /* payloads kept in memory although they are on disk */
};

struct record {
    struct record *next; /* in its lane */
    struct lane *lane;
    uint64_t seq;
    enum record_kind kind;
    uint32_t samples;
    int64_t first_ms, last_ms;
    struct spool_place place;
    char *payload; /* NULL: on disk only */
    size_t payload_n;
    struct record *next_unsynced;
};

struct queue_stats {
    uint64_t samples, records;    /* waiting */
    uint64_t bytes;               /* of payloads waiting */
    uint64_t memory;              /* of payloads in memory */
    uint64_t dropped[DROPS];      /* samples, ever */
    int64_t oldest_ms, newest_ms; /* timestamps waiting; 0 for none */
    int64_t newest_ever_ms;       /* the latest timestamp ever queued */
    int disk_error;               /* negative errno of the last write, 0 when it was well */
};

/* Recovers what the spool holds; *ret_found may be NULL. -ENOMEM or what the spool says. */
MUST_USE int queue_new(struct queue **ret, const struct queue_options *o, struct spool_found *ret_found);
struct queue *queue_free(struct queue *q);
DEFINE_CLEANUP(struct queue, queue_free)

/* Takes the payload over, also on failure, and gives the record its number. What is refused or thrown out by the ceilings is
 * counted. The latest timestamp of a lane never goes back. -ENOMEM: counted as dropped too. */
MUST_USE int queue_append(struct queue *q, struct record_head *h, char *payload, size_t payload_n,
                          int64_t now_ms);
/* Everything appended is on disk, or will be kept in memory. */
void queue_sync(struct queue *q);
/* The latest timestamp ever appended to this lane, INT64_MIN for none. */
int64_t queue_last_ms(const struct queue *q, struct str lane);
/* Throws out what is older than the limit. */
void queue_expire(struct queue *q, int64_t now_ms);

/* The record to send next, NULL for none: no other is given out until queue_sent() or queue_put_back(). */
struct record *queue_pick(struct queue *q, int64_t now_ms);
/* Its payload, read from disk when needed; valid while the record is out. -EBADMSG, -EIO, -ENOMEM. */
MUST_USE int queue_payload(struct queue *q, struct record *r, struct str *ret);
/* Delivered, or never to be sent: it goes. Samples that were not delivered are counted under why (dropped of them). */
void queue_finish(struct queue *q, struct record *r, enum queue_drop why, uint32_t dropped);
void queue_put_back(struct queue *q, struct record *r);
void queue_count_drop(struct queue *q, enum queue_drop why, uint64_t samples);

void queue_stats(const struct queue *q, struct queue_stats *ret);
/* Writes the read positions if they have changed. */
void queue_save_position(struct queue *q, bool wait_for_disk);

#endif
