/* What the files of the queue share; nothing else includes it. */
#ifndef DS_REMOTEWRITE_QUEUE_INTERNAL_H
#define DS_REMOTEWRITE_QUEUE_INTERNAL_H

#include "remotewrite/queue.h"

/* A ceiling for the records' own memory, whatever their size: 100 bytes each. */
enum { QUEUE_MAX_RECORDS = 500000 };

struct lane {
    struct lane *next;
    struct record *head, *tail;
    size_t n;
    uint64_t done;   /* the last record that was sent or dropped, and all before it */
    int64_t last_ms; /* of the last record ever appended */
    size_t name_n;
    char name[];
};

struct queue {
    struct spool *spool;
    uint64_t max_bytes, max_memory; /* on disk; of what is in memory only */
    enum rw_full_policy policy;
    int64_t age_limit_ms;
    size_t memory_bytes;
    struct lane *lanes, **lanes_end;
    struct lane *served; /* last; the next in turn comes after it */
    unsigned picks;
    struct record *held;
    struct record *unsynced, **unsynced_end;
    uint64_t next_seq, memory_only; /* bytes of payloads that are nowhere else */
    uint64_t generation;            /* of the position files */
    bool position_changed, position_unsynced;
    struct queue_stats stats;
};

/* The lane, made if need be; NULL when memory is out. */
struct lane *queue_lane(struct queue *q, struct str name);
struct lane *queue_find_lane(const struct queue *q, struct str name);
/* Takes the record that *at points to out of its lane and frees it with its place on disk. */
void queue_remove(struct queue *q, struct record **at);
/* Throws out until `need` more bytes fit; false when it is the new ones that must go. */
bool queue_make_room(struct queue *q, uint64_t need, enum queue_drop *ret_why);
/* Reads the positions and all records of the spool. */
MUST_USE int queue_recover(struct queue *q, struct spool_found *ret);
void queue_link(struct queue *q, struct lane *l, struct record *r);

#endif
