/* How far each lane has been delivered, in two files written alternately, so that a torn write leaves the
 * other intact. Written after each delivery without a sync: after kill -9 nothing is lost, after a power
 * cut records may be sent again. */
#ifndef DS_REMOTEWRITE_POSITION_H
#define DS_REMOTEWRITE_POSITION_H

#include "exporter/base/buf.h"

#include <stdint.h>

struct position_lane {
    struct str name;
    uint64_t seq;    /* this record of the lane and all before it were delivered or dropped */
    int64_t last_ms; /* the newest timestamp ever queued */
};

/* Appends the content of a file. The generation grows by one with each write. -ENOMEM, -EFBIG. */
MUST_USE int position_put(struct buf *into, uint64_t generation, const struct position_lane *lanes, size_t n);
/* Both read the content of a file: -EBADMSG if it is damaged. on_lane returns 0 or -ENOMEM; its name
 * points into bytes. */
MUST_USE int position_generation(struct str bytes, uint64_t *ret);
MUST_USE int position_read(struct str bytes, int (*on_lane)(void *arg, const struct position_lane *l),
                           void *arg);

#endif
