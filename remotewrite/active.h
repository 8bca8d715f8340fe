/* The active series of an endpoint on disk, so that they get stale markers after a crash: the file "active"
 * of its folder. Endpoint's thread; called by queue.c, to which the intake hands over its sets.
 *
 * It is a segment (format.h) of sets, each with one record for each frame of its scorer:
 *
 *     "DSRWSEG1"
 *     seq 7  kind samples  first_ms 0  last_ms 2  samples 10000  lane "cpu"     payload: a frame's block
 *     seq 7  kind samples  first_ms 1  last_ms 2  samples   500  lane "cpu"     payload: likewise
 *     seq 8  kind markers  first_ms 0  last_ms 0  samples     0  lane "memory"  no payload
 *
 * seq numbers the sets, first_ms the frames of one, and last_ms is how many it has. A set replaces its
 * scorer's one before, and a scorer without series has one record of markers. "active.new" is a file that
 * is to take the name, and is not read. */
#pragma once

#include "exporter/base/str.h"
#include "remotewrite/folder.h"
#include "remotewrite/frame.h"

/* What one scorer has. Embedded in its owner. */
struct active_set {
    struct str lane;
    const struct frames *frames;
    bool is_unsaved; /* it is not on disk as it is now */
    size_t stored;   /* bytes of it in the file; active.c alone writes this */
};

/* The file. Nothing is owned. */
struct active {
    struct folder *folder; /* NULL: none is open, and nothing is stored */
    uint64_t sets;         /* stored in this run */
    size_t stored;         /* bytes of the file; 0: it is not ours yet */
};

/* Takes a set of the previous run. It may take the frames, too, and leaves an empty list then. */
typedef void (*active_load_fn)(void *arg, struct str lane, struct frames *frames);

/* Calls fn with each set that the previous run has left, in their order. What is damaged is ignored: such
 * series get no markers, and end after the receiver's lookback of five minutes. A set that was not finished
 * is ignored, too, unless another follows: then its last frame is damaged. */
void active_open(struct active *a, struct folder *folder, active_load_fn fn, void *arg);
/* The folder is about to be closed. */
void active_close(struct active *a);
/* Stores the sets that are not on disk as they are now; `sets` are all that there are. A negative errno: none
 * of them may be there. */
MUST_USE int active_save(struct active *a, struct active_set *const *sets, size_t n);
