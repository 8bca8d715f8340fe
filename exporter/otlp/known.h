/* The series that were received of late, by a hash of the bytes that name them, so that a point of a known
 * series costs one lookup; and what the accumulation of deltas and the detection of a second writer need
 * to remember. */
#ifndef DS_OTLP_KNOWN_H
#define DS_OTLP_KNOWN_H

#include "exporter/base/def.h"

#include <stdbool.h>

struct known_series {
    uint64_t ref;               /* of the tsdb */
    uint64_t start_ns, last_ns; /* of the last point */
    double total;               /* of a delta series */
};

struct known_slot;

struct known {
    struct known_slot *slots;
    size_t cap, used; /* cap: a power of two, or 0 */
    struct known_series *series;
    size_t n, room;
    size_t max; /* series; when there are as many, all are forgotten */
};

enum { KNOWN_NONE = UINT32_MAX };

void known_done(struct known *c);
/* The index of a series' state, or KNOWN_NONE. A hash of 0 is none. */
uint32_t known_find(const struct known *c, uint64_t hash);
/* Makes `hash` another name of the series whose labels have the hash `labels`, which is created if it is
 * not known. Sets its reference. -ENOMEM. */
MUST_USE int known_enter(struct known *c, uint64_t hash, uint64_t labels, uint64_t ref, uint32_t *ret);

#endif
