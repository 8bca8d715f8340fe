/* The series that an endpoint rejected, by hash. They are left out of later requests for a while, so that
 * they are not searched for again: five minutes at first, because a cause such as a sample out of order
 * passes, then twice as long each time, up to an hour. */
#ifndef DS_REMOTEWRITE_REJECTS_H
#define DS_REMOTEWRITE_REJECTS_H

#include "exporter/base/clock.h"

#include <stddef.h>
#include <stdint.h>

enum { REJECTS_MAX = 1024, REJECTS_MIN_MS = 5 * 60 * 1000, REJECTS_MAX_MS = 3600 * 1000 };

struct reject {
    uint64_t hash;
    mono_ms until;
    int64_t ms; /* how long it was left out the last time */
};

struct rejects {
    struct reject list[REJECTS_MAX]; /* sorted by hash */
    size_t n;
    mono_ms last_until; /* no series is left out after it */
};

/* If there is no room, the one that ends first makes room. */
void rejects_add(struct rejects *r, uint64_t hash, mono_ms now);
bool rejects_has(const struct rejects *r, uint64_t hash, mono_ms now);
/* True if no series is left out now. */
bool rejects_empty(const struct rejects *r, mono_ms now);

#endif
