/* Which timestamp may follow another one in a sequence of samples, in milliseconds. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A step back of the clock of less than this is a correction, and timestamps go on from the last. After a
 * larger one the earlier timestamps were wrong, such as those of a machine that began in the future: what
 * follows them must not be compared with the highest ever, or order would be off until that time. */
enum { CLOCK_BACK_MS = 3600 * 1000 };

/* Whether `next` may not follow `last`. */
static inline bool is_behind(int64_t last, int64_t next)
{
    return next <= last && (uint64_t)last - (uint64_t)next < CLOCK_BACK_MS;
}

/* The timestamp from which a sequence goes on, once `next` has come after `last`. */
static inline int64_t last_ms_after(int64_t last, int64_t next)
{
    return is_behind(last, next) ? last : next;
}

/* Of two timestamps. */
static inline int64_t later_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
