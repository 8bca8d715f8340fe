/* A record: the samples of one scorer for one request, and its two states, each with a function for every
 * transition. A record that is delivered or dropped is removed and freed: there is no state for that.
 * Endpoint's thread; made and moved by the queue alone. */
#pragma once

#include "remotewrite/format.h"
#include "remotewrite/lane.h"
#include "remotewrite/spool.h"

#include <sys/queue.h>

/* Where the payload is. */
enum record_place {
    RECORD_IN_MEMORY, /* only there */
    RECORD_WRITTEN,   /* also in a segment, but not synced: after a power cut it may not be there */
    RECORD_CACHED,    /* synced, and in memory, too */
    RECORD_STORED,    /* synced, and only on disk */
};

/* The request in flight holds the picked record and its companions, small ones of other lanes. Until its
 * response has come, they stay the first of their lanes and in memory, and nothing drops them. */
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

/* All records that are in lanes, summed up, and those in a passing state. */
struct backlog {
    uint64_t records, samples;
    uint64_t memory;                /* bytes of payloads in memory, */
    uint64_t memory_only;           /* and of those that are only there: RECORD_IN_MEMORY */
    uint64_t unsaved;               /* samples of these */
    struct record *picked;          /* RECORD_PICKED; NULL: none is */
    LIST_HEAD(, record) companions; /* RECORD_TRAVELS */
    size_t in_flight;               /* the picked one and these */
    LIST_HEAD(, record) unsynced;   /* RECORD_WRITTEN */
};

/* A record that is in memory only, and owns the payload; or one that was found in a segment. In no lane. */
struct record *record_new(struct lane *l, const struct record_head *h, char *payload, size_t payload_n);
struct record *record_found(struct lane *l, const struct segment_item *item, struct spool_segment *segment);
/* Frees a record that is in no lane. What is on disk stays. */
void record_free(struct record *r);

/* Adds the record to its lane, by number. False if the lane has that number. */
MUST_USE bool record_link(struct backlog *b, struct record *r);
/* Removes a record that waits from its lane. */
void record_unlink(struct backlog *b, struct record *r);
/* Whether older records follow, which came with a spool while this one was in flight: its delivery says
 * nothing about them. */
bool record_is_ahead(const struct record *r);

/* ---- Place ---- */

/* It is in this segment now, which was not synced since. */
void record_was_written(struct backlog *b, struct record *r, struct spool_segment *segment, uint32_t at);
void record_was_synced(struct backlog *b, struct record *r);
/* Frees the memory of a record that nobody needs there now. */
void record_uncache(struct backlog *b, struct record *r);
/* The payload, which becomes the record's, was read from its segment. */
void record_was_read(struct backlog *b, struct record *r, char *payload);
/* Its segment is gone, or is no longer counted on: it is in memory only. */
void record_leave_segment(struct backlog *b, struct record *r);

/* ---- Delivery ---- */

/* The first of its lane, when nothing is in flight. */
void record_pick(struct backlog *b, struct record *r);
/* The first of its lane, when another is picked, and its payload in memory. */
void record_accompany(struct backlog *b, struct record *r);
/* It is no longer in flight: it waits, maybe at a wrong place in its lane. The queue, which calls it, then
 * removes it, or links it anew where it belongs. */
void record_land(struct backlog *b, struct record *r);
