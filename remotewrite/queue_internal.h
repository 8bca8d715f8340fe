/* A queue, as its two files see it: queue.c, the records that wait, and queue_spool.c, the spool behind them.
 * Endpoint's thread. */
#pragma once

#include "remotewrite/active.h"
#include "remotewrite/folder.h"
#include "remotewrite/lane.h"
#include "remotewrite/queue.h"
#include "remotewrite/record.h"
#include "remotewrite/spool.h"

enum { QUEUE_MAX_RECORDS = 500000 /* limits the memory of the records themselves, about 100 bytes each */ };

struct queue {
    struct queue_options o;
    struct lanes lanes;
    struct backlog backlog;
    unsigned picks;
    uint64_t next_seq;
    uint64_t dropped[DROPS];
    int64_t last_ms;  /* timestamp queued, by last_ms_after(); 0: none */
    int append_error; /* of a record since the last sync */
    int disk_error;   /* of the last sync, or write of positions */
    /* The spool. */
    struct folder folder;
    struct spool *spool;  /* in use; NULL: none */
    struct spool *left;   /* no longer in use, as something in it cannot be read: queue_watch() closes it */
    struct active active; /* in the same folder */
    int spool_error;      /* why it is not open */
    struct spool_stats unopened; /* what was found when it was tried last; all zero while it is open */
    uint64_t generation;         /* of the read positions */
    bool position_changed, position_unsynced;
};

/* ---- queue.c ---- */

/* Frees a record that waits. On disk it stays as it is. */
void queue_forget(struct queue *q, struct record *r);
/* Removes the record, which was delivered or is dropped, from its lane, and frees it. Its segment is not
 * told. */
void queue_end_record(struct queue *q, struct record *r);
/* Tries to store the records that are in memory only. */
void queue_store_waiting(struct queue *q);

/* ---- queue_spool.c ---- */

/* Something in the spool cannot be read: what it holds waits there, unused, until it can. */
void queue_leave_spool(struct queue *q);
/* Removes segments whose records are all delivered or dropped, if a spool is open. */
void queue_remove_empty(struct queue *q);
/* Without a last look at anything. */
void queue_close_spool(struct queue *q);
