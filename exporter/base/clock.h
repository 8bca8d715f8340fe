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

/* CLOCK_MONOTONIC, to measure how long something takes. */
double clock_seconds(void);

/* "2026-11-21T06:23:01.123Z" (24 characters and a NUL). */
void unix_ms_format(unix_ms t, char out[32]);

/* ---- Exponential back-off with jitter ---- */

struct backoff {
    int64_t min_ms, max_ms; /* the first pause and the longest */
    /* A longer Retry-After counts as this, so that a proxy's mistake does not stop us for a day. */
    int64_t retry_after_max_ms;
};

/* The pause before the nth retry in a row (from 1), without jitter: doubles from min_ms to max_ms. */
int64_t backoff_doubled_ms(unsigned nth, int64_t min_ms, int64_t max_ms);
/* The same with jitter: from half of it to all of it. If the server asked for more (retry_after_ms; -1: no),
 * that and up to a quarter, so that its clients do not all return at once. */
int64_t backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);

/* 64 random bits, for jitter and names. Any thread. */
uint64_t rand_u64(void);
/* Uniform in [0, n); 0 for n = 0. */
uint64_t rand_below(uint64_t n);
