/* Private to queue*.c. */
#ifndef DS_REMOTEWRITE_QUEUE_INTERNAL_H
#define DS_REMOTEWRITE_QUEUE_INTERNAL_H

#include "remotewrite/queue.h"
#include "remotewrite/spool.h"

/* Limits the memory of the records themselves, about 100 bytes each. */
enum { QUEUE_MAX_RECORDS = 500000 };

struct lane {
    struct lane *next;
    struct record *head, *tail;
    size_t n;
    uint64_t done;   /* this record of the lane and all before it were sent or dropped */
    int64_t last_ms; /* newest timestamp ever appended */
    /* While segments are read: the record inserted last, and `done` of the segment. */
    struct record *inserted;
    uint64_t segment_done;
    size_t name_n;
    char name[];
};

/* What damage in the spool has cost. */
struct lost_record {
    uint64_t seq;
    uint32_t samples;
};

struct queue {
    struct spool *spool;
    uint64_t max_bytes, max_memory; /* limits on disk, and of payloads in memory only */
    enum rw_full_policy policy;
    int64_t age_limit_ms;
    size_t memory_bytes;
    struct lane *lanes, **lanes_end;
    struct lane *served; /* the lane picked last */
    unsigned picks;
    struct record *picked;
    struct record *unsynced, **unsynced_end;
    uint64_t next_seq, memory_only; /* bytes of payloads in memory only */
    uint64_t generation;            /* of the position files */
    bool position_changed, position_unsynced;
    struct lost_record *lost; /* while segments are read */
    size_t n_lost;
    int append_error; /* of a record since the last sync */
    struct queue_stats stats;
};

/* Finds or creates the lane; NULL when out of memory. */
struct lane *queue_lane(struct queue *q, struct str name);
struct lane *queue_find_lane(const struct queue *q, struct str name);
/* Removes the record *at from its lane and its spool segment, and frees it. */
void queue_remove(struct queue *q, struct record **at);
/* Drops records until `need` more bytes fit; false if the new record has to be dropped instead. */
bool queue_make_room(struct queue *q, uint64_t need, enum queue_drop *ret_why);
/* Reads the positions and the records of the spool. */
MUST_USE int queue_recover(struct queue *q);
/* After segments were read: counts the records found lost. */
void queue_end_reading(struct queue *q);
struct spool_reader queue_reader(struct queue *q);
/* Adds a record, whose payload and place are set, to the lane by its sequence number, but not before the
 * picked one. False if the lane has this number. */
bool queue_link(struct queue *q, struct lane *l, struct record *r);
/* Removes the record *at from its lane only. */
struct record *queue_unlink(struct queue *q, struct record **at);
/* Without payload and place; NULL when out of memory. */
struct record *queue_new_record(const struct record_head *h);
void queue_free_record(struct record *r);
/* Writes the record to disk; it stays in memory only if that fails. */
void queue_store(struct queue *q, struct record *r, const struct record_head *h);
/* Gives up the record's place on disk, in a segment that may hold it (forget) or is gone. */
void queue_leave_disk(struct queue *q, struct record *r, bool forget);

#endif
