/* How far each lane has been delivered, in two files written in turn, so that a torn write leaves the other.
 * Written after each delivery without waiting for the disk: kill -9 loses nothing, a power cut at worst sends again. */
#ifndef DS_REMOTEWRITE_POSITION_H
#define DS_REMOTEWRITE_POSITION_H

#include "exporter/base/buf.h"

#include <stdint.h>

struct position_lane {
    struct str name;
    uint64_t seq;    /* delivered, and all before it of this lane */
    int64_t last_ms; /* the latest timestamp ever queued */
};

/* Appends the file's bytes. generation grows by one with each writing. -ENOMEM, -EFBIG. */
MUST_USE int position_put(struct buf *into, uint64_t generation, const struct position_lane *lanes, size_t n);
/* Reads one: -EBADMSG when it is not whole. on_lane returns 0 or -ENOMEM; its name points into bytes. */
MUST_USE int position_generation(struct str bytes, uint64_t *ret);
MUST_USE int position_read(struct str bytes, int (*on_lane)(void *arg, const struct position_lane *l),
                           void *arg);

#endif
