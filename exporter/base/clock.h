/* Two kinds of time that must not be mixed: a monotonic one for schedules and deadlines, and the wall clock
 * for what users see. Both are one-member structs, so mixing them does not compile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds since some point in the past; counts time asleep. */
typedef struct {
    int64_t ms;
} mono_ms;

/* Milliseconds since 1970-01-01T00:00:00Z; may jump either way. */
typedef struct {
    int64_t ms;
} unix_ms;

/* The source of time. Tests supply their own and advance it by hand. */
struct clock {
    mono_ms (*mono)(const struct clock *);
    unix_ms (*wall)(const struct clock *);
};

/* CLOCK_BOOTTIME and CLOCK_REALTIME. */
extern const struct clock clock_system;

static inline mono_ms mono_add(mono_ms t, int64_t ms)
{
    return (mono_ms){t.ms + ms};
}

/* b - a in milliseconds. */
static inline int64_t mono_diff(mono_ms a, mono_ms b)
{
    return b.ms - a.ms;
}

static inline bool mono_before(mono_ms a, mono_ms b)
{
    return a.ms < b.ms;
}

/* Whether less than `ms` have passed since then; false if that is unset. */
static inline bool mono_within(mono_ms now, mono_ms since, int64_t ms)
{
    return since.ms && mono_before(now, mono_add(since, ms));
}

/* CLOCK_MONOTONIC, to measure how long something takes. */
double clock_seconds(void);

/* "2026-11-21T06:23:01.123Z" (24 characters and a NUL). */
void unix_ms_format(unix_ms t, char out[32]);
