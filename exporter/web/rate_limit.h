/* A token bucket: `burst` requests at once, and one more for each interval. */
#ifndef DS_WEB_RATE_LIMIT_H
#define DS_WEB_RATE_LIMIT_H

#include "exporter/base/clock.h"

/* Zeroed: no limit. */
struct rate_limit {
    int64_t interval_ms, burst;
    mono_ms full_at; /* when the bucket will be full again */
};

/* False if the request is over the limit. */
bool rate_limit_take(struct rate_limit *l, mono_ms now);

#endif
