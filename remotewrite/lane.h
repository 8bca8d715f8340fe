/* The lanes of a queue. A lane is what one scorer has waiting: its records, in order. It is remembered
 * without any as long as its read position or its last timestamp is needed. Endpoint's thread; called by
 * the queue and record.c. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/map.h"
#include "exporter/base/str.h"

#include <sys/queue.h>

struct record;

struct lane {
    TAILQ_ENTRY(lane) turn;
    TAILQ_HEAD(lane_records, record) records; /* by number, except that one in flight is the first */
    uint64_t done;     /* this record of the lane and all before it were sent or dropped */
    int64_t last_ms;   /* timestamp appended, by last_ms_after(); INT64_MIN: none */
    int64_t before_ms; /* likewise before last_ms went more than an hour ahead */
    int64_t stored_ms; /* likewise in the spool that is being opened */
    uint64_t segment;  /* number of the newest with a record of it; 0: none */
    mono_ms used_at;   /* when it had a record or was in use, as last seen by */
    bool is_idle;      /* queue_forget_lanes() */
    struct str name;
    char text[];
};

/* A map for finding a lane, and a list for taking turns. */
struct lanes {
    struct map by_name;
    TAILQ_HEAD(lane_turns, lane) turns;
    struct lane *served; /* the lane picked last; NULL: none, the first is next */
    size_t n;
};

void lanes_init(struct lanes *all);
/* Frees the lanes, none of which has a record. */
void lanes_done(struct lanes *all);
/* NULL if there is none of this name. */
struct lane *lanes_find(const struct lanes *all, struct str name);
/* The lane of this name, which is made if need be. */
struct lane *lanes_make(struct lanes *all, struct str name);
/* Forgets a lane, which has no record. */
void lanes_remove(struct lanes *all, struct lane *l);
/* Whose turn comes after that of l, which may be l itself; NULL for none that was served yet. NULL if there
 * are no lanes. */
struct lane *lanes_after(const struct lanes *all, struct lane *l);

/* ---- Timestamps ---- */

/* The lane goes on from `last` to `next`: the last timestamp from then on. */
int64_t lane_go_on(struct lane *l, int64_t last, int64_t next);
/* The timestamp of the next record at this time: receivers insist on order within a series, so a clock that
 * was set back yields the last timestamp plus 1 ms. */
int64_t lane_next_ms(const struct lane *l, int64_t at_ms);
