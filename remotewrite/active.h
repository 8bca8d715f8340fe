/* The active series of an endpoint on disk, so that they get stale markers after a crash: two files of its
 * folder. Endpoint's thread: the intake says what becomes of each set, and hands them to the queue, which
 * alone opens, saves and closes the files.
 *
 * "active" has whole sets. It is a segment (format.h), with a record for each frame of a scorer:
 *
 *     "DSRWSEG1"
 *     seq 107  kind samples  first_ms 0  last_ms 2  samples 10000  lane "cpu"     payload: a frame's block
 *     seq 107  kind samples  first_ms 1  last_ms 2  samples   500  lane "cpu"     payload: likewise
 *     seq 108  kind markers  first_ms 0  last_ms 0  samples     0  lane "memory"  no payload
 *
 * seq numbers the sets, first_ms the frames of one, and last_ms is how many it has. A set replaces its
 * scorer's one before, and a scorer without series has one record of markers.
 *
 * "active.changes" has what came and went since, so that one new series costs what one series costs. It is a
 * segment, too:
 *
 *     "DSRWSEG1"
 *     seq 107  kind samples  first_ms 0  last_ms 0  samples 3  lane "cpu"  payload: a block of 3 that came
 *     seq 107  kind markers  first_ms 0  last_ms 0  samples 2  lane "cpu"  payload: a block of 2 that went
 *
 * A change counts, in the order of the file, if its seq is that of its scorer's set; all others are of a set
 * that was replaced. No number is used twice, by whatever version of the program: one from before
 * "active.changes" existed knows nothing of that file, leaves it where it is, and numbers its sets from 0;
 * ours begin at 2^32.
 *
 * Such an older version, started after a crash, therefore finds the sets as they were stored whole last. It
 * sends no stale marker for a series that came since, if it ends before that version has taken its first
 * batch: the receiver's lookback of five minutes ends it. It sends a second marker for one that went since,
 * which changes nothing. It never ends a series that lives, since it compares what it finds with the first
 * batch of each scorer. After a clean stop both files are right, as no series is active then.
 *
 * "active.new" and "active.changes.new" are files that are to take the names, and are not read. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/str.h"
#include "remotewrite/folder.h"
#include "remotewrite/frame.h"

enum active_state {
    ACTIVE_IS_STORED,
    ACTIVE_HAS_CHANGED, /* `changes` are missing on disk */
    ACTIVE_IS_UNSTORED, /* it is not on disk as it is now, and is to be stored whole */
};

/* What one scorer has. Embedded in its owner, which writes `lane` and `frames`; active.c alone writes the
 * rest. */
struct active_set {
    struct str lane;
    const struct frames *frames;
    enum active_state state;
    struct buf changes; /* records, to be appended to the file of changes */
    uint64_t seq;       /* of the set that was stored last, */
    size_t stored;      /* and its bytes; 0: the file has none */
};

/* The files. Nothing is owned. */
struct active {
    struct folder *folder; /* NULL: none is open, and nothing is stored */
    uint64_t next_seq;     /* of the set to be stored next */
    size_t stored;         /* bytes of "active"; 0: it is not ours yet */
    size_t changes;        /* bytes of "active.changes"; 0: there is none that counts */
};

void active_set_init(struct active_set *set, struct str lane, const struct frames *frames);
void active_set_done(struct active_set *set);
/* The set is another one: it is to be stored whole. */
void active_set_replace(struct active_set *set);
/* The series of this frame came, or went. */
void active_set_add(struct active_set *set, const struct frame *came);
void active_set_remove(struct active_set *set, const struct frame *went);

/* Takes a set of the previous run. It may take the frames, too, and leaves an empty list then. They are only
 * blocks. */
typedef void (*active_load_fn)(void *arg, struct str lane, struct frames *frames);

/* Calls fn with the set of each scorer that the content of the two files has, unless it is empty. What is
 * damaged is ignored: such series get no markers, and end after the receiver's lookback of five minutes. A
 * set that was not finished is ignored, too, unless another follows: then its last frame is damaged. Returns
 * a number above those of all sets. */
uint64_t active_read(struct str sets, struct str changes, active_load_fn fn, void *arg);
/* Begins to use the folder: reads what the previous run has left, as active_read() does. */
void active_open(struct active *a, struct folder *folder, active_load_fn fn, void *arg);
/* The folder is about to be closed. */
void active_close(struct active *a);
/* Stores what is not on disk as it is now; `sets` are all that there are. A negative errno: none of that may
 * be there. */
MUST_USE int active_save(struct active *a, struct active_set *const *sets, size_t n);
